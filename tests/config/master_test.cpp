#include "support.hpp"

#include <troupe/runtime/config/master.hpp>

namespace troupe::testing {
namespace {

using ::testing::HasSubstr;

master_address master(std::string_view text) {
  const auto parsed = parse_master(text);
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed ? *parsed : master_address{};
}

TEST(master, reads_every_form) {
  EXPECT_EQ(master("local[4]"), master_address{local_master{4}});
  EXPECT_EQ(master("local[*]"), master_address{local_master{0}});
  EXPECT_EQ(master("local-cluster[2,4,8g]"), (master_address{local_cluster_master{2, 4, std::int64_t{8} << 30}}));
  EXPECT_EQ(master("local-cluster[2,4,8m]"), (master_address{local_cluster_master{2, 4, std::int64_t{8} << 20}}));
  EXPECT_EQ(master("local-cluster[2,1,1024]"), (master_address{local_cluster_master{2, 1, std::int64_t{1} << 30}}));
  EXPECT_EQ(master("troupe://h.example:7077"), (master_address{endpoint{"h.example", 7077}}));
  EXPECT_EQ(master("127.0.0.1:1"), (master_address{endpoint{"127.0.0.1", 1}}));
  EXPECT_EQ(master("localhost:65535"), (master_address{endpoint{"localhost", 65535}}));
  EXPECT_EQ(master("troupe://[::1]:80"), (master_address{endpoint{"::1", 80}}));
}

TEST(master, is_written_as_it_is_read) {
  for (const std::string_view text :
       {"local[4]", "local[*]", "local-cluster[2,4,8g]", "troupe://h:7077", "troupe://[::1]:80"}) {
    EXPECT_EQ(to_string(master(text)), text);
  }
}

TEST(master, errors_name_the_text_the_fault_and_the_valid_forms) {
  const std::pair<std::string_view, std::string_view> bad[] = {
      {"", "is not a master"},
      {"local", "is not a master"},
      {"local[]", "must name from 1 to 100000 cores"},
      {"local[0]", "must name from 1 to 100000 cores"},
      {"local[04]", "must name from 1 to 100000 cores"},
      {"local[-1]", "must name from 1 to 100000 cores"},
      {"local[4", "is not a master"},
      {"local-cluster[2,4]", "must have three parts"},
      {"local-cluster[2,4,8g,1]", "must have three parts"},
      {"local-cluster[0,4,8g]", "must have from 1 to 10000 hosts"},
      {"local-cluster[2,0,8g]", "must have at least 1 core"},
      {"local-cluster[2,4,]", "must have a memory size"},
      {"local-cluster[2,4,0]", "must have a memory size"},
      {"local-cluster[2,4,1.5g]", "must have a memory size"},
      {"local-cluster[2,4,8]", "has hosts of 8 MiB, which is too little for any executor: write 8g for GiB, or 8m if"},
      {"slurm", "is not a master"},
      {"host", "is not a master"},
      {"host:0", "is not a master"},
      {"host:70000", "is not a master"},
      {":7077", "is not a master"},
      {"spark://host:7077", "is not a master"},
      {"::1:80", "is not a master"},
  };
  for (const auto& [text, why] : bad) {
    const auto parsed = parse_master(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ec::invalid_configuration);
    EXPECT_THAT(parsed.error().message, HasSubstr("`" + std::string{text} + "` " + std::string{why}));
    EXPECT_THAT(parsed.error().message, HasSubstr("valid forms: local[4], local[*], local-cluster[2,4,8g]"));
  }
}

TEST(endpoint, errors_say_what_to_write) {
  EXPECT_EQ(message_of(parse_endpoint("host")), "`host` has no port; write host:port, such as 127.0.0.1:7077");
  EXPECT_THAT(message_of(parse_endpoint("host:")), HasSubstr("must end with a port from 1 to 65535"));
  EXPECT_THAT(message_of(parse_endpoint("ho st:1")), HasSubstr("does not begin with an address or a host name"));
  EXPECT_THAT(message_of(parse_endpoint("1.2.3:1")), HasSubstr("does not begin with an address or a host name"));
  EXPECT_THAT(message_of(parse_endpoint("fe80::1:1")), HasSubstr("an IPv6 address without brackets"));
}

TEST(loopback, is_known_by_address_and_one_name) {
  for (const std::string_view host : {"127.0.0.1", "127.255.0.9", "::1", "localhost"}) EXPECT_TRUE(is_loopback(host));
  for (const std::string_view host :
       {"0.0.0.0", "126.0.0.1", "128.0.0.1", "::", "::2", "localhost.example", "", "1127.0.0.1"})
    EXPECT_FALSE(is_loopback(host)) << host;
}

} // namespace
} // namespace troupe::testing
