// Blocks that go to readers of the same machine as descriptors.

#include <exception>

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "transfer_fixture.hpp"

#include <troupe/runtime/transfer/block_connection.hpp>
#include <troupe/tests/support/patience.hpp>

namespace troupe::testing_transfer {
namespace {

namespace protocol = block_protocol;

constexpr incarnation epoch = 0xfeedbeef12345678;

class local_transfer_test : public transfer_test {
protected:
  local_transfer_test() {
    store = std::make_shared<block_store>(block_store::options{{directory}, memory_limit, 1000});
  }
  std::string socket_path() const { return local_socket_path(directory, epoch); }
  void serve_locally() {
    block_server::options o;
    o.local_socket = socket_path();
    serve(o);
    EXPECT_TRUE(server->is_local());
  }
  block_connection::options near_options() const { return {cluster, directory}; }
  /// Where only the local socket can be reached.
  block_endpoint near() const { return {{9}, epoch, "", 0}; }
  block_client near_client() const {
    auto o = client_options();
    o.local_directory = directory;
    return block_client{o, secret, nullptr};
  }
  static bool never() { return false; }
};

TEST_F(local_transfer_test, what_lies_in_files_is_lent_and_the_rest_is_sent) {
  serve_locally();
  const std::string in_file(2 * memory_limit, 'f');
  const std::string in_memory(100'000, 'm');
  ASSERT_TRUE(store->put(key(1, 0, 0), content_of({"first", in_file})));
  ASSERT_TRUE(store->put(key(1, 1, 0), content_of({in_memory})));
  ASSERT_TRUE(store->put(key(1, 2, 0), content_of({"small", ""})));
  auto connection = block_connection::open(near(), secret, near_options(), never);
  ASSERT_TRUE(connection) << connection.error().message;
  const std::vector<protocol::block_request> wanted{
      {key(1, 0, 0), 1, 0}, {key(1, 1, 0), 0, 0}, {key(1, 2, 0), 0, 0}, {key(1, 2, 0), 1, 0}, {key(1, 0, 0), 0, 0}};
  ASSERT_TRUE(connection->ask(wanted, 1 << 20, never));
  page_buffer buffer;
  for (const auto* const expected : {&in_file, &in_memory}) {
    const auto answer = connection->next_answer(never);
    ASSERT_TRUE(answer) << answer.error().message;
    ASSERT_TRUE(answer->piece.file);
    const int fd = answer->piece.file->get();
    EXPECT_EQ(::fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    EXPECT_EQ(testing::text_of(block_view{nullptr, {}, answer->piece, answer->size}), *expected);
    if (expected == &in_memory) {
      EXPECT_EQ(::fcntl(fd, F_GET_SEALS), F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    }
    ASSERT_TRUE(connection->lent_was_read(never));
  }
  for (const auto size : {testing::stored(5), std::uint64_t{0}}) {
    const auto answer = connection->next_answer(never);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_FALSE(answer->piece.file) << "too small for a file";
    EXPECT_EQ(answer->size, size);
    std::string bytes(size, '\0');
    for (std::size_t n = 0; n < size;) n += *connection->receive_some(bytes.data() + n, size - n, never);
  }
  const auto again = connection->next_answer(never);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(testing::text_of(block_view{nullptr, {}, again->piece, again->size}), "first");
  EXPECT_TRUE(connection->reusable());
}

TEST_F(local_transfer_test, what_the_reader_lacks_is_not_the_fault_of_the_block) {
  serve_locally();
  ASSERT_TRUE(store->put(key(1, 0, 0), content_of({std::string(10'000, 'b')})));
  auto client = near_client();
  ASSERT_TRUE(client.fetch_value(near(), key(1, 0, 0))); // the connection is kept
  shuffle_input input;
  input.shuffle = stage_id{1};
  input.endpoints = {near()};
  input.endpoint_of_map = {0};
  input.attempt_of_map = {0};
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  const descriptor next{::fcntl(0, F_DUPFD_CLOEXEC, 0)};
  auto none = files;
  none.rlim_cur = static_cast<rlim_t>(next.get()) + 1;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  // The failure is looked at afterwards: the check of a virtual call takes descriptors with some sanitizers.
  std::exception_ptr failure;
  try {
    client.read(input, 0, [](std::string_view) { ADD_FAILURE() << "there was a number for it"; });
  } catch (...) {
    failure = std::current_exception();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  ASSERT_TRUE(failure) << "nothing was read";
  try {
    std::rethrow_exception(failure);
  } catch (const fetch_failure& e) {
    ADD_FAILURE() << "a good map output is made again: " << e.what();
  } catch (const std::runtime_error& e) {
    EXPECT_NE(std::string{e.what()}.find("ulimit -n"), std::string::npos) << e.what();
  }
}

/// Threads that begin meanwhile may have no more descriptors on their way than anybody.
class without_privileges {
public:
  without_privileges() {
    change([](std::uint32_t& effective) { effective &= ~((1u << CAP_SYS_RESOURCE) | (1u << CAP_SYS_ADMIN)); });
  }
  ~without_privileges() {
    change([this](std::uint32_t& effective) { effective = before_; });
  }

private:
  template <class Change>
  void change(Change how) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2]{};
    ASSERT_EQ(::syscall(SYS_capget, &header, data), 0);
    if (!before_) before_ = data[0].effective;
    how(data[0].effective);
    ASSERT_EQ(::syscall(SYS_capset, &header, data), 0);
  }
  std::uint32_t before_ = 0;
};

TEST_F(local_transfer_test, what_the_system_lets_nobody_lend_is_sent) {
  {
    const without_privileges of_the_server;
    serve_locally();
  }
  constexpr std::uint32_t buckets = 200;
  std::vector<std::string> texts;
  for (std::uint32_t b = 0; b < buckets; ++b) texts.push_back("bucket " + std::to_string(b) + std::string(10'000, '.'));
  ASSERT_TRUE(store->put(key(1, 0, 0), content_of(texts)));
  ASSERT_TRUE(store->put(key(2, 0, 0), content_of({"small"})));
  auto other = block_connection::open(near(), secret, near_options(), never);
  auto connection = block_connection::open(near(), secret, near_options(), never);
  ASSERT_TRUE(other && connection);
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  const auto lent_of_all = [&] {
    auto few = files;
    few.rlim_cur = 100; // descriptors on their way count, too
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    std::vector<protocol::block_request> wanted;
    for (std::uint32_t b = 0; b < buckets; ++b) wanted.push_back({key(1, 0, 0), b, 0});
    EXPECT_TRUE(connection->ask(wanted, 1 << 30, never));
    // The server's one thread has done what it can for the other when it has answered this a few times.
    const std::vector<protocol::block_request> one{{key(2, 0, 0), 0, 0}};
    for (int turn = 0; turn < 3; ++turn) {
      EXPECT_TRUE(other->ask(one, 1 << 20, never));
      const auto answer = other->next_answer(never);
      if (!answer) {
        ADD_FAILURE() << answer.error().message;
        break;
      }
      std::string bytes(answer->size, '\0');
      EXPECT_EQ(*other->receive_some(bytes.data(), bytes.size(), never), bytes.size());
    }
    std::uint32_t lent = 0;
    for (std::uint32_t b = 0; b < buckets; ++b) {
      const auto answer = connection->next_answer(never);
      if (!answer) {
        ADD_FAILURE() << b << ": " << answer.error().message;
        break;
      }
      if (answer->piece.file) {
        ++lent;
        EXPECT_EQ(testing::text_of(block_view{nullptr, {}, answer->piece, answer->size}), texts[b]);
        EXPECT_TRUE(connection->lent_was_read(never));
        continue;
      }
      std::string bytes(answer->size, '\0');
      for (std::size_t n = 0; n < bytes.size();) {
        const auto got = connection->receive_some(bytes.data() + n, bytes.size() - n, never);
        if (!got) break;
        n += *got;
      }
      EXPECT_EQ(bytes, page_of(texts[b]));
    }
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
    EXPECT_LT(lent, buckets);
    return lent;
  };
  // What other processes of this user have on the way counts as well, and may be all that is allowed for a while.
  const auto end = std::chrono::steady_clock::now() + testing::patience();
  while (lent_of_all() == 0 && !HasFailure()) ASSERT_LT(std::chrono::steady_clock::now(), end);
}

TEST_F(local_transfer_test, a_reader_finds_the_socket_by_the_incarnation) {
  serve_locally();
  std::string expected;
  shuffle_input input;
  input.shuffle = {3};
  input.endpoints = {near()};
  for (partition_index p = 0; p < 700; ++p) {
    const auto text = std::to_string(p) + std::string(p % 3 == 0 ? 2000 : 10, 't');
    ASSERT_TRUE(store->put(key(3, p, 0), content_of({"", text})));
    expected += text;
    input.endpoint_of_map.push_back(0);
    input.attempt_of_map.push_back(0);
  }
  auto c = near_client();
  for (int i = 0; i < 2; ++i) {
    std::string all;
    c.read(input, 1, [&](std::string_view content) { all += content; });
    EXPECT_EQ(all, expected);
  }
  auto another = near();
  ++another.epoch;
  EXPECT_EQ(c.fetch_value(another, key(3, 0, 0), 1).error().code, ec::unreachable);
  EXPECT_EQ(client().fetch_value(near(), key(3, 0, 0), 1).error().code, ec::unreachable) << "it was not to look there";
}

TEST_F(local_transfer_test, the_network_is_the_way_where_there_is_no_socket) {
  serve_locally();
  ASSERT_TRUE(store->put(key(1, 0, 0), content_of({std::string(50'000, 'x')})));
  auto c = near_client();
  std::filesystem::remove(socket_path());
  EXPECT_EQ(text_of(c.fetch_value({{9}, epoch, "127.0.0.1", server->port()}, key(1, 0, 0))), std::string(50'000, 'x'));
  // Something else under that name, such as what a killed process leaves.
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  socket_path().copy(at.sun_path, sizeof at.sun_path - 1);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  ::close(fd);
  EXPECT_TRUE(c.fetch_value({{8}, epoch, "127.0.0.1", server->port()}, key(1, 0, 0)));
}

TEST_F(local_transfer_test, the_handshake_is_asked_for_there_too) {
  serve_locally();
  const auto stranger = block_connection::open(near(), session_secret::generate(), near_options(), never);
  ASSERT_FALSE(stranger);
  EXPECT_EQ(stranger.error().code, ec::unauthenticated);
}

TEST_F(local_transfer_test, another_users_process_is_turned_away_by_either_side) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  serve_locally();
  ::chmod(directory.c_str(), 0755); // in earnest nobody else gets as far as the socket
  ::chmod(socket_path().c_str(), 0777);
  const auto path = socket_path();
  const auto child = ::fork();
  if (child == 0) {
    if (::setresuid(65534, 65534, 65534) != 0) ::_exit(3);
    if (stream_socket::connect_local(path).error().code != ec::unauthenticated) ::_exit(1);
    raw_socket s{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (!s.connect_to(path)) ::_exit(4);
    ::_exit(protocol::read_failure(s.receive_frame()).message.starts_with("another user") ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "1: it would have talked to another user's process; 2: it was not turned away as such";
}

TEST_F(local_transfer_test, garbage_on_the_local_socket_is_survived) {
  serve_locally();
  ASSERT_TRUE(store->put(key(1, 0, 0), content_of({"still here"})));
  unsigned seed = 5;
  for (int i = 0; i < 100; ++i) {
    raw_socket s{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    ASSERT_TRUE(s.connect_to(socket_path()));
    std::string bytes;
    for (int n = 0; n < 200; ++n) bytes.push_back(static_cast<char>((seed = seed * 1664525 + 1013904223) >> 16));
    s.send(bytes);
    s.end_sending();
    ASSERT_TRUE(s.ended());
  }
  EXPECT_EQ(server->rejected(), 100u);
  auto c = near_client();
  EXPECT_EQ(text_of(c.fetch_value(near(), key(1, 0, 0))), "still here");
}

TEST_F(local_transfer_test, the_socket_goes_with_its_server) {
  serve_locally();
  EXPECT_TRUE(std::filesystem::exists(socket_path()));
  server.reset();
  EXPECT_FALSE(std::filesystem::exists(socket_path()));
  block_server::options o;
  o.local_socket = directory.string() + "/" + std::string(200, 'l');
  serve(o);
  EXPECT_FALSE(server->is_local()) << "a path that long is none for a socket";
}

} // namespace
} // namespace troupe::testing_transfer
