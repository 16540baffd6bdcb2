// A bucket of more than 4 GiB, whole and by way of files. Takes some ten gigabytes of the temporary directory and a
// while: with tests/run --slow only.

#include <cstdlib>

#include "transfer_fixture.hpp"

#include <troupe/runtime/little_endian.hpp>
#include <troupe/runtime/transfer/block_connection.hpp>

namespace troupe::testing_transfer {
namespace {

std::string encode_number(std::uint64_t n) {
  std::string bytes;
  little_endian::append(bytes, n);
  return bytes;
}

TEST_F(transfer_test, blocks_beyond_4_gib_are_spilled_kept_and_read) {
  if (!std::getenv("TROUPE_SLOW_TESTS")) GTEST_SKIP() << "takes a minute and 10 GB of disk: run with tests/run --slow";
  constexpr std::uint64_t records = 4608;
  constexpr std::size_t size = 1 << 20;
  constexpr incarnation epoch = 5;
  block_directories spills{{directory.string()}};
  bucket_writer writer{{.buckets = 2, .memory = 256 << 20, .directories = &spills, .name = "large"}};
  std::string record(size, 'x');
  for (std::uint64_t i = 0; i < records; ++i) {
    record.replace(0, 8, encode_number(i));
    writer.page(1).append(record);
    writer.wrote(1);
  }
  auto content = writer.finish();
  ASSERT_GT(content.size(1), std::uint64_t{4} << 30);
  ASSERT_TRUE(store->put(key(1, 0, 0), std::move(content)));
  block_server::options o;
  o.local_socket = local_socket_path(directory, epoch);
  serve(o);
  auto options = client_options();
  for (const bool near : {false, true}) {
    if (near) options.local_directory = directory;
    block_client c{options, secret, nullptr};
    shuffle_input input;
    input.shuffle = {1};
    input.endpoints = {near ? block_endpoint{{9}, epoch, "", 0} : endpoint()};
    input.endpoint_of_map = {0};
    input.attempt_of_map = {0};
    std::uint64_t next = 0;
    c.read(input, 1, [&](std::string_view page) {
      ASSERT_EQ(page.size(), size);
      ASSERT_EQ(page.substr(0, 8), encode_number(next));
      ++next;
    });
    EXPECT_EQ(next, records) << (near ? "lent" : "over TCP");
  }
}

} // namespace
} // namespace troupe::testing_transfer
