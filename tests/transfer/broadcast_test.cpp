// Broadcasts: one copy per host, one value per process, whoever dies meanwhile.

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>

#include <troupe/runtime/transfer/broadcast_file.hpp>
#include <troupe/runtime/transfer/broadcast_publisher.hpp>
#include <troupe/runtime/transfer/broadcast_reader.hpp>

#include "transfer_fixture.hpp"

namespace troupe::testing_transfer {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const duration long_enough = testing::patience();
constexpr broadcast_id id{0x0123456789abcdefu, 7};

bool never() { return false; }

class host_copy : public transfer_test {
protected:
  host_copy() : path(broadcast_path(directory.string(), id)) {}

  broadcast_fetch fetch_of(std::string text) {
    return [this, text = std::move(text)](const std::function<void(std::string_view)>& each) -> result<void> {
      ++fetched;
      each(std::string_view{text}.substr(0, 2));
      each(std::string_view{text}.substr(2));
      return {};
    };
  }
  std::string read(const std::string& text = "value") {
    auto content = read_broadcast(path, fetch_of(text), long_enough, never);
    return content ? *content : "error: " + content.error().message;
  }

  const std::string path;
  int fetched = 0;
};

TEST_F(host_copy, is_fetched_by_the_first_reader_alone) {
  EXPECT_EQ(read(), "value");
  EXPECT_EQ(read("another"), "value");
  EXPECT_EQ(fetched, 1);
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(host_copy, of_the_program_itself_needs_no_fetch) {
  std::string large(3'000'000, 'x');
  large += "end";
  const auto own = write_broadcast(path, large, {page_codec::lz4, 1});
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_LT(fs::file_size(path), 1'000'000u);
  EXPECT_TRUE(read() == large);
  EXPECT_EQ(fetched, 0);
}

TEST_F(host_copy, that_is_spoiled_or_a_part_is_fetched_anew) {
  EXPECT_EQ(read(), "value");
  const auto whole = fs::file_size(path);
  fs::resize_file(path, whole - 1); // as one leaves it who is killed
  EXPECT_EQ(read(), "value");
  EXPECT_EQ(fetched, 2);
  {
    std::fstream file{path, std::ios::in | std::ios::out | std::ios::binary};
    file.seekp(page_header_size);
    file.put('?');
  }
  EXPECT_EQ(read(), "value");
  EXPECT_EQ(fetched, 3);
}

TEST_F(host_copy, is_not_left_where_the_fetch_fails) {
  const broadcast_fetch broken = [](const std::function<void(std::string_view)>& each) -> result<void> {
    each("val");
    return make_error(ec::unreachable, "the wire was cut");
  };
  const auto content = read_broadcast(path, broken, long_enough, never);
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().code, ec::unreachable);
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(read(), "value");
}

TEST_F(host_copy, waits_for_who_fetches_it_and_not_for_who_was_killed) {
  EXPECT_EQ(read(), "value");
  descriptor other{::open((path + ".lock").c_str(), O_RDWR | O_CLOEXEC)};
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  const auto late = read_broadcast(path, fetch_of("value"), duration::zero(), never);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ec::unreachable);
  const auto stopped = read_broadcast(path, fetch_of("value"), long_enough, [] { return true; });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ec::cancelled);
  std::atomic<bool> looked = false;
  std::thread frees{[&] {
    while (!looked) std::this_thread::yield();
    other = descriptor{}; // as the system does when a process ends
  }};
  const auto content = read_broadcast(path, fetch_of("value"), long_enough, [&] {
    looked = true;
    return false;
  });
  frees.join();
  ASSERT_TRUE(content);
  EXPECT_EQ(fetched, 1);
}

TEST_F(host_copy, is_waited_for_as_long_as_it_grows) {
  EXPECT_EQ(read(), "value");
  const auto half = fs::path{path}.replace_extension("half");
  fs::rename(path, half);
  descriptor other{::open((path + ".lock").c_str(), O_RDWR | O_CLOEXEC)};
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  int looked = 0;
  const auto content = read_broadcast(path, fetch_of("value"), std::chrono::milliseconds{2}, [&] {
    if (++looked < 8) {
      std::ofstream{path, std::ios::app} << "more";
    } else {
      fs::rename(half, path);
      other = descriptor{};
    }
    return false;
  });
  ASSERT_TRUE(content) << content.error().message;
  EXPECT_EQ(*content, "value");
  EXPECT_EQ(fetched, 1);
}

/// Other processes of the host may be able to read it, and the program itself may have no other.
TEST_F(host_copy, that_cannot_be_opened_stays) {
  fs::create_symlink(directory, path);
  EXPECT_THAT(read(), ::testing::StartsWith("error: cannot open"));
  EXPECT_TRUE(fs::is_symlink(path));
  EXPECT_EQ(fetched, 0);
}

TEST_F(host_copy, that_cannot_be_written_is_not_fetched_to_its_end) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto signal_before = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit little{100, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  int pages = 0;
  const broadcast_fetch fetch = [&](const std::function<void(std::string_view)>& each) -> result<void> {
    for (; pages < 10; ++pages) each(std::string(1 << 20, 'x'));
    return {};
  };
  const auto content = read_broadcast(path, fetch, long_enough, never);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, signal_before);
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().code, ec::io);
  EXPECT_EQ(pages, 0) << "the first page was in vain";
  EXPECT_FALSE(fs::exists(path));
}

/// A program with its server, and the readers of executors.
class broadcasts : public transfer_test {
protected:
  broadcasts() {
    fs::create_directory(program_files());
    fs::create_directory(host_files());
  }
  std::string program_files() const { return directory.string() + "/program"; }
  std::string host_files() const { return directory.string() + "/host"; }
  broadcast_publisher::options publishing() const {
    broadcast_publisher::options o;
    o.program = id.program;
    o.directory = program_files();
    o.serving.cluster_id = cluster;
    return o;
  }
  broadcast_reader::options on_host() const { return {host_files(), "127.0.0.1", long_enough}; }
  broadcast_reader::options alone() const { return {"", "127.0.0.1", long_enough}; }
  broadcast_reference publish(const std::string& text) {
    auto made = program.publish(text);
    EXPECT_TRUE(made) << made.error().message;
    return made ? *made : broadcast_reference{};
  }
  /// Counts what is decoded.
  std::string text_from(broadcast_reader& reader, const broadcast_reference& which) {
    return *std::static_pointer_cast<const std::string>(
        reader.get(which, typeid(std::string), [this](std::string_view encoded) {
          ++decoded;
          return std::make_shared<const std::string>(encoded);
        }));
  }
  std::size_t copies_on_host() const {
    const auto has_copy = [](const fs::directory_entry& e) { return e.path().extension() != ".lock"; };
    return static_cast<std::size_t>(
        std::count_if(fs::directory_iterator{host_files()}, fs::directory_iterator{}, has_copy));
  }

  broadcast_publisher program{publishing(), secret};
  block_client client{client_options(), secret, nullptr};
  std::atomic<int> decoded = 0;
};

TEST_F(broadcasts, are_decoded_once_per_process_and_copied_once_per_host) {
  const auto which = publish("value");
  EXPECT_EQ(which.id, (broadcast_id{id.program, 1}));
  broadcast_reader one{on_host(), &client};
  std::vector<std::thread> tasks;
  for (int i = 0; i < 8; ++i) tasks.emplace_back([&] { EXPECT_EQ(text_from(one, which), "value"); });
  for (auto& task : tasks) task.join();
  EXPECT_EQ(decoded, 1);
  program.withdraw(which.id); // the second process finds the host's copy
  broadcast_reader two{on_host(), &client};
  EXPECT_EQ(text_from(two, which), "value");
  EXPECT_EQ(decoded, 2);
  EXPECT_EQ(copies_on_host(), 1u);
}

TEST_F(broadcasts, are_read_alone_where_nothing_is_shared_or_can_be_written) {
  const auto which = publish(std::string(5'000'000, 'v'));
  broadcast_reader own{alone(), &client};
  EXPECT_EQ(text_from(own, which).size(), 5'000'000u);
  EXPECT_EQ(copies_on_host(), 0u);
  broadcast_reader full{{"/proc/no-such-place", "127.0.0.1", long_enough}, &client};
  EXPECT_EQ(text_from(full, which).size(), 5'000'000u);
}

TEST_F(broadcasts, that_were_withdrawn_are_refused_by_name) {
  const auto which = publish("value");
  program.withdraw({id.program + 1, which.id.number}); // another program's
  broadcast_reader early{alone(), &client};
  EXPECT_EQ(text_from(early, which), "value");
  program.withdraw(which.id);
  EXPECT_TRUE(fs::is_empty(program_files()));
  broadcast_reader late{on_host(), &client};
  EXPECT_THAT([&] { text_from(late, which); }, ThrowsMessage<std::runtime_error>(HasSubstr("broadcast 1")));
  EXPECT_EQ(copies_on_host(), 0u);
  EXPECT_EQ(text_from(early, which), "value") << "who has it keeps it until told";
}

TEST_F(broadcasts, are_dropped_with_the_copy_of_the_host) {
  const auto first = publish("first");
  const auto second = publish("second");
  broadcast_reader reader{on_host(), &client};
  for (const auto& which : {first, second}) text_from(reader, which);
  EXPECT_EQ(copies_on_host(), 2u);
  reader.drop(first.id);
  EXPECT_EQ(copies_on_host(), 1u);
  EXPECT_EQ(text_from(reader, second), "second");
  EXPECT_EQ(decoded, 2);
  EXPECT_EQ(text_from(reader, first), "first") << "read again, since the program still has it";
  reader.drop({id.program, 0});
  EXPECT_TRUE(fs::is_empty(host_files())) << "locks go, too";
  reader.drop({id.program, 0});
}

TEST_F(broadcasts, that_are_dropped_while_they_are_read_leave_nothing) {
  const auto which = publish("value");
  broadcast_reader reader{on_host(), &client};
  const auto value = reader.get(which, typeid(std::string), [&](std::string_view encoded) {
    reader.drop(which.id);
    return std::make_shared<const std::string>(encoded);
  });
  EXPECT_EQ(*std::static_pointer_cast<const std::string>(value), "value");
  EXPECT_TRUE(fs::is_empty(host_files()));
}

TEST_F(broadcasts, that_could_not_be_decoded_are_tried_again) {
  const auto which = publish("value");
  broadcast_reader reader{on_host(), &client};
  const auto fail = [](std::string_view) -> std::shared_ptr<const void> { throw std::runtime_error("no memory"); };
  EXPECT_THROW(reader.get(which, typeid(std::string), fail), std::runtime_error);
  EXPECT_EQ(text_from(reader, which), "value");
}

TEST_F(broadcasts, have_one_type) {
  const auto which = publish("value");
  broadcast_reader reader{alone(), &client};
  text_from(reader, which);
  EXPECT_THROW(reader.get(which, typeid(int), {}), std::logic_error);
}

TEST_F(broadcasts, of_the_same_process_are_the_very_value) {
  broadcast_reader reader;
  const auto value = std::make_shared<const std::string>("value");
  reader.keep(id, typeid(std::string), value);
  EXPECT_EQ(reader.get({id, {}, 0}, typeid(std::string), {}), value);
  reader.drop(id);
  EXPECT_THAT(
      [&] {
        reader.get({id, {}, 0}, typeid(std::string), {});
      },
      ThrowsMessage<std::runtime_error>(HasSubstr("withdrawn")));
}

} // namespace
} // namespace troupe::testing_transfer
