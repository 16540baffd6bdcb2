#include <troupe/runtime/discovery/resource_json.hpp>

#include <random>
#include <string>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::HasSubstr;

void expect_malformed(std::string_view text, const std::string& words) {
  const auto found = parse_resource_json(text);
  ASSERT_FALSE(found) << text;
  EXPECT_EQ(found.error().code, ec::malformed);
  EXPECT_THAT(found.error().message, HasSubstr(words));
  EXPECT_THAT(found.error().message, HasSubstr(R"(expected {"name": "gpu", "addresses": ["0", "1"]})"));
  EXPECT_LT(found.error().message.size(), 700u);
}

TEST(resource_json, reads_name_and_addresses_in_order) {
  EXPECT_EQ(parse_resource_json(R"({"name": "gpu", "addresses": ["1", "0", "f1"]})").value(),
            (resource_information{"gpu", {"1", "0", "f1"}}));
  EXPECT_EQ(parse_resource_json("\n {\"addresses\":[],\"name\":\"fpga\"}\n").value(),
            (resource_information{"fpga", {}}));
  EXPECT_EQ(parse_resource_json(R"({"name": "gpu"})").value(), (resource_information{"gpu", {}}));
}

TEST(resource_json, passes_over_keys_that_it_does_not_know) {
  const auto* text =
      R"({"a": 1, "b": [1, {"name": "x", "addresses": [2]}], "name": "gpu", "c": null, "addresses": ["0"], "d": {"e": true}})";
  EXPECT_EQ(parse_resource_json(text).value(), (resource_information{"gpu", {"0"}}));
}

TEST(resource_json, refuses_what_is_no_resource) {
  expect_malformed("", "not JSON");
  expect_malformed("gpu 0 1", "not JSON");
  expect_malformed(R"({"name": "gpu")", "not JSON");
  expect_malformed(R"({"name": "gpu"} {})", "not JSON");
  expect_malformed("[]", "not an object");
  expect_malformed("\"gpu\"", "not an object");
  expect_malformed("3", "not an object");
  expect_malformed("{}", "no name");
  expect_malformed(R"({"addresses": ["0"]})", "no name");
  expect_malformed(R"({"name": 3})", "name must be a string");
  expect_malformed(R"({"name": ["gpu"]})", "name must be a string");
  expect_malformed(R"({"name": {"a": 1}})", "name must be a string");
  expect_malformed(R"({"name": ""})", "a resource name has");
  expect_malformed(R"({"name": "a b"})", "a resource name has");
  expect_malformed(R"({"name": "gpu", "name": "gpu"})", "key \"name\" is there twice");
}

TEST(resource_json, refuses_addresses_that_are_none) {
  expect_malformed(R"({"name": "gpu", "addresses": [0]})", "addresses must be a list of strings");
  expect_malformed(R"({"name": "gpu", "addresses": [null]})", "addresses must be a list of strings");
  expect_malformed(R"({"name": "gpu", "addresses": [["0"]]})", "addresses must be a list of strings");
  expect_malformed(R"({"name": "gpu", "addresses": [{"0": "0"}]})", "addresses must be a list of strings");
  expect_malformed(R"({"name": "gpu", "addresses": "0"})", "addresses must be a list of strings");
  expect_malformed(R"({"name": "gpu", "addresses": null})", "addresses must be a list of strings");
  expect_malformed(R"({"name": "gpu", "addresses": {"a": "0"}})", "addresses must be a list of strings");
  expect_malformed(R"({"name": "gpu", "addresses": ["0", "1", "0"]})", "address \"0\" is there twice");
  expect_malformed(R"({"name": "gpu", "addresses": [""]})", "an address has");
  expect_malformed(R"({"name": "gpu", "addresses": ["0,1"]})", "an address has");
  expect_malformed(R"({"name": "gpu", "addresses": ["a\u0000b"]})", "a\\x00b");
  expect_malformed(R"({"name": "gpu", "addresses": ["\u00e9"]})", "an address has");
}

TEST(resource_json, survives_hostile_texts) {
  expect_malformed(std::string{"{\"name\": \"gpu\xff\"}"}, "not UTF-8");
  expect_malformed(std::string(1 << 20, '['), "not an object");
  const std::string deep = R"({"name": "gpu", "x": )";
  expect_malformed(deep + std::string(1 << 20, '['), "deeper than 16");
  std::string nested = deep;
  for (int i = 0; i < 100'000; ++i) nested += R"({"a":)";
  expect_malformed(nested, "deeper than 16");
  EXPECT_TRUE(parse_resource_json(deep + std::string(15, '[') + std::string(15, ']') + "}"));
  expect_malformed(R"({"name": ")" + std::string(1 << 20, 'a') + "\"}", "a resource name has");
  expect_malformed(R"({"name": "gpu", "x": 1e99999})", "not JSON");

  std::string many = R"({"name": "gpu", "addresses": ["x")";
  for (int i = 1; i < 4096; ++i) many += ",\"" + std::to_string(i) + "\"";
  EXPECT_TRUE(parse_resource_json(many + "]}"));
  expect_malformed(many + ",\"y\"]}", "more than 4096");
}

TEST(resource_json, never_fails_in_another_way_on_damaged_texts) {
  const std::string good = R"({"name": "gpu", "addresses": ["0", "1"], "x": [1, {"y": null}]})";
  std::mt19937_64 random{5};
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    auto text = good;
    for (int edit = 0; edit < 3; ++edit) {
      const auto at = random() % text.size();
      switch (random() % 3) {
      case 0: text[at] = static_cast<char>(random()); break;
      case 1: text.erase(at, 1); break;
      default: text.insert(at, 1, "{}[]\",:\\0"[random() % 9]); break;
      }
    }
    const auto found = parse_resource_json(text);
    if (!found) {
      ASSERT_EQ(found.error().code, ec::malformed);
      ++refused;
    }
  }
  EXPECT_GT(refused, 10'000);
}

} // namespace
} // namespace troupe
