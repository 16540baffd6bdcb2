#pragma once

#include <string>
#include <string_view>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/config/settings.hpp>
#include <troupe/runtime/config/yaml_document.hpp>

namespace troupe::testing {

/// A document that must parse; errors name it `x.yaml`.
inline yaml_document document(std::string_view text) {
  auto parsed = parse_yaml(text, "x.yaml");
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed ? *parsed : yaml_document{};
}

/// The message of a failed result, a remark where it did not fail.
template <class T>
std::string message_of(const result<T>& r) {
  return r.has_value() ? "(no error)" : r.error().message;
}

/// Settings of one file's text.
inline result<settings> settings_of(std::string_view text) {
  auto parsed = parse_yaml(text, "x.yaml");
  if (!parsed) return parsed.error();
  settings_builder builder{"/base"};
  if (auto added = builder.add_file(*parsed); !added) return added.error();
  return builder.build();
}

} // namespace troupe::testing
