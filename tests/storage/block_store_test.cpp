#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <thread>

#include <gtest/gtest.h>

#include <troupe/runtime/storage/block_store.hpp>

namespace troupe {
namespace {

namespace fs = std::filesystem;

class block_store_test : public ::testing::Test {
protected:
  block_store_test() {
    std::string name = (fs::temp_directory_path() / "troupe-store-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("mkdtemp failed");
    directory = name;
  }
  ~block_store_test() override { fs::remove_all(directory); }

  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator{directory}, fs::directory_iterator{}));
  }
  static block_key key(std::uint64_t stage, partition_index partition, attempt_number attempt = 0) {
    return {{stage}, partition, attempt};
  }

  fs::path directory;
};

TEST_F(block_store_test, gives_back_each_bucket_with_its_checksum) {
  block_store store{{directory, 1000}};
  const auto size = store.put(key(1, 2, 3), {"first", "", "third"});
  ASSERT_TRUE(size);
  EXPECT_EQ(*size, 10u);
  const std::vector<std::string> expected{"first", "", "third"};
  for (std::uint32_t b = 0; b < 3; ++b) {
    const auto view = store.get(key(1, 2, 3), b);
    ASSERT_TRUE(view);
    EXPECT_EQ(view->bytes, expected[b]);
    EXPECT_EQ(view->checksum, block_checksum(expected[b]));
  }
  EXPECT_EQ(files(), 0u);
}

TEST_F(block_store_test, the_checksum_is_xxh3) {
  EXPECT_EQ(block_checksum(""), 0x2d06800538d394c2u); // published value of the empty input
  EXPECT_NE(block_checksum("a"), block_checksum("b"));
}

TEST_F(block_store_test, what_is_not_there_is_named) {
  block_store store{{directory, 1000}};
  ASSERT_TRUE(store.put(key(1, 2, 3), {"one"}));
  auto missing = store.get(key(1, 2, 4), 0);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ec::not_found);
  EXPECT_NE(missing.error().message.find("stage 1 partition 2 attempt 4"), std::string::npos);
  missing = store.get(key(1, 2, 3), 1);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ec::not_found);
}

TEST_F(block_store_test, a_repeated_key_changes_nothing) {
  block_store store{{directory, 1000}};
  ASSERT_TRUE(store.put(key(1, 0), {"one"}));
  const auto again = store.put(key(1, 0), {"another"});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ec::invalid_argument);
  EXPECT_EQ(store.get(key(1, 0), 0)->bytes, "one");
  EXPECT_EQ(store.bytes(), 3u);
}

TEST_F(block_store_test, sets_beyond_the_limit_lie_in_one_private_file_each) {
  block_store store{{directory, 10}};
  ASSERT_TRUE(store.put(key(1, 0), {"12345", "67890"}));
  EXPECT_EQ(files(), 0u);
  ASSERT_TRUE(store.put(key(1, 1), {"a", "", "bc"}));
  ASSERT_EQ(files(), 1u);
  struct stat status {};
  ASSERT_EQ(::stat(
                fs::directory_iterator { directory } -> path().c_str(), &status),
            0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(store.get(key(1, 1), 0)->bytes, "a");
  EXPECT_EQ(store.get(key(1, 1), 1)->bytes, "");
  EXPECT_EQ(store.get(key(1, 1), 2)->bytes, "bc");
  EXPECT_EQ(store.get(key(1, 1), 2)->checksum, block_checksum("bc"));
  EXPECT_EQ(store.bytes(), 13u);
}

TEST_F(block_store_test, removal_makes_room_in_memory_and_removes_files) {
  block_store store{{directory, 10}};
  ASSERT_TRUE(store.put(key(1, 0), {"1234567890"}));
  ASSERT_TRUE(store.put(key(2, 0), {"x"}));
  ASSERT_TRUE(store.put(key(2, 1), {"y"}));
  EXPECT_EQ(files(), 2u);
  store.remove(stage_id{1});
  EXPECT_FALSE(store.get(key(1, 0), 0));
  EXPECT_EQ(store.bytes(), 2u);
  ASSERT_TRUE(store.put(key(3, 0), {"0987654321"}));
  EXPECT_EQ(files(), 2u) << "freed memory is used again";
  store.remove(key(2, 0));
  EXPECT_EQ(files(), 1u);
  EXPECT_TRUE(store.get(key(2, 1), 0));
  store.remove(stage_id{2});
  store.remove(stage_id{2});
  EXPECT_EQ(files(), 0u);
  EXPECT_EQ(store.held(), (std::vector<held_block>{{{3}, 0, 0, 10}}));
}

TEST_F(block_store_test, views_outlive_removal_and_the_store) {
  auto store = std::make_unique<block_store>(block_store::options{directory, 5});
  ASSERT_TRUE(store->put(key(1, 0), {"short"}));
  ASSERT_TRUE(store->put(key(1, 1), {std::string(100'000, 'f')}));
  const auto memory = store->get(key(1, 0), 0);
  const auto file = store->get(key(1, 1), 0);
  ASSERT_TRUE(memory && file);
  store->remove(stage_id{1});
  store.reset();
  EXPECT_EQ(files(), 0u);
  EXPECT_EQ(memory->bytes, "short");
  EXPECT_EQ(file->bytes, std::string(100'000, 'f'));
}

TEST_F(block_store_test, its_end_removes_its_files) {
  {
    block_store store{{directory, 0}};
    ASSERT_TRUE(store.put(key(1, 0), {"one"}));
    EXPECT_EQ(files(), 1u);
  }
  EXPECT_EQ(files(), 0u);
}

TEST_F(block_store_test, a_file_that_cannot_be_written_is_an_error_and_leaves_nothing) {
  block_store store{{directory / "missing", 0}};
  const auto stored = store.put(key(1, 0), {"one"});
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code, ec::io);
  EXPECT_NE(stored.error().message.find("missing"), std::string::npos);
  EXPECT_EQ(store.bytes(), 0u);
  fs::create_directory(directory / "missing");
  EXPECT_TRUE(store.put(key(1, 0), {"one"})) << "the key is free again";
}

TEST_F(block_store_test, a_file_cut_short_by_others_is_an_error_instead_of_a_crash) {
  block_store store{{directory, 0}};
  ASSERT_TRUE(store.put(key(1, 0), {std::string(100'000, 'x')}));
  fs::resize_file(
      fs::directory_iterator { directory } -> path(), 10);
  const auto view = store.get(key(1, 0), 0);
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().code, ec::io);
}

TEST_F(block_store_test, many_threads_store_read_and_remove) {
  block_store store{{directory, 4000}};
  std::vector<std::thread> threads;
  for (std::uint64_t stage = 1; stage <= 4; ++stage) {
    threads.emplace_back([&, stage] {
      for (int round = 0; round < 20; ++round) {
        for (partition_index p = 0; p < 20; ++p) {
          const auto text = std::to_string(stage) + "." + std::to_string(p);
          ASSERT_TRUE(store.put(key(stage, p), {text, std::string(100, 'x')}));
          const auto view = store.get(key(stage, p), 0);
          ASSERT_TRUE(view);
          ASSERT_EQ(view->bytes, text);
        }
        store.remove(stage_id{stage});
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(store.bytes(), 0u);
  EXPECT_EQ(files(), 0u);
  EXPECT_TRUE(store.held().empty());
}

} // namespace
} // namespace troupe
