#include <atomic>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <thread>

#include <gtest/gtest.h>

#include <troupe/runtime/storage/block_store.hpp>
#include <troupe/tests/support/blocks.hpp>

namespace troupe {
namespace {

namespace fs = std::filesystem;
using testing::content_of;
using testing::memory_of;
using testing::stored;
using testing::text_of;

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
    return output_key({stage}, partition, attempt);
  }

  fs::path directory;
};

TEST_F(block_store_test, gives_back_each_bucket) {
  block_store store{{{directory}, 1000}};
  EXPECT_EQ(content_of({"first", "", "third"}).sizes(), (std::vector{stored(5), stored(0), stored(5)}));
  ASSERT_TRUE(store.put(key(1, 2, 3), content_of({"first", "", "third"})));
  const std::vector<std::string> expected{"first", "", "third"};
  for (std::uint32_t b = 0; b < 3; ++b) {
    const auto view = store.get(key(1, 2, 3), b);
    ASSERT_TRUE(view);
    EXPECT_EQ(text_of(*view), expected[b]);
  }
  EXPECT_EQ(files(), 0u);
}

TEST_F(block_store_test, what_is_not_there_is_named) {
  block_store store{{{directory}, 1000}};
  ASSERT_TRUE(store.put(key(1, 2, 3), content_of({"one"})));
  auto missing = store.get(key(1, 2, 4), 0);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ec::not_found);
  EXPECT_NE(missing.error().message.find("stage 1 partition 2 attempt 4"), std::string::npos);
  missing = store.get(key(1, 2, 3), 1);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ec::not_found);
}

TEST_F(block_store_test, a_repeated_key_changes_nothing) {
  block_store store{{{directory}, 1000}};
  ASSERT_TRUE(store.put(key(1, 0), content_of({"one"})));
  const auto again = store.put(key(1, 0), content_of({"another"}));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ec::invalid_argument);
  EXPECT_EQ(text_of(store.get(key(1, 0), 0)), "one");
  EXPECT_EQ(store.bytes(), stored(3));
}

TEST_F(block_store_test, pages_of_several_pieces_are_read_one_after_another) {
  block_store store{{{directory}, 1 << 20}};
  bucket_writer writer{{.buckets = 1}};
  std::string all;
  for (const char c : {'a', 'b', 'c'}) all += std::string(100'000, c);
  for (std::size_t at = 0; at < all.size(); at += 100'000) writer.write_whole(0, all.substr(at, 100'000));
  ASSERT_TRUE(store.put(key(1, 0), writer.finish()));
  const auto view = store.get(key(1, 0), 0);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->parts.size(), 3u);
  EXPECT_TRUE(text_of(*view) == all);
}

TEST_F(block_store_test, sets_beyond_the_limit_lie_in_one_private_file_each) {
  block_store store{{{directory}, memory_of({"12345", "67890"})}};
  ASSERT_TRUE(store.put(key(1, 0), content_of({"12345", "67890"})));
  EXPECT_EQ(files(), 0u);
  ASSERT_TRUE(store.put(key(1, 1), content_of({"a", "", "bc"})));
  ASSERT_EQ(files(), 1u);
  struct stat status {};
  ASSERT_EQ(::stat(
                fs::directory_iterator { directory } -> path().c_str(), &status),
            0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(text_of(store.get(key(1, 1), 0)), "a");
  EXPECT_EQ(text_of(store.get(key(1, 1), 1)), "");
  EXPECT_EQ(text_of(store.get(key(1, 1), 2)), "bc");
  EXPECT_EQ(store.bytes(), 2 * stored(5) + stored(1) + stored(2));
}

TEST_F(block_store_test, removal_makes_room_in_memory_and_removes_files) {
  block_store store{{{directory}, memory_of({"1234567890"})}};
  ASSERT_TRUE(store.put(key(1, 0), content_of({"1234567890"})));
  ASSERT_TRUE(store.put(key(2, 0), content_of({"x"})));
  ASSERT_TRUE(store.put(key(2, 1), content_of({"y"})));
  EXPECT_EQ(files(), 2u);
  store.remove(stage_id{1});
  EXPECT_FALSE(store.get(key(1, 0), 0));
  EXPECT_EQ(store.bytes(), 2 * stored(1));
  ASSERT_TRUE(store.put(key(3, 0), content_of({"0987654321"})));
  EXPECT_EQ(files(), 2u) << "freed memory is used again";
  store.remove(key(2, 0));
  EXPECT_EQ(files(), 1u);
  EXPECT_TRUE(store.get(key(2, 1), 0));
  store.remove(stage_id{2});
  store.remove(stage_id{2});
  EXPECT_EQ(files(), 0u);
  EXPECT_EQ(store.held(), (std::vector<held_block>{{{3}, 0, 0, stored(10)}}));
}

TEST_F(block_store_test, views_outlive_removal_and_the_store) {
  auto store = std::make_unique<block_store>(block_store::options{{directory}, memory_of({"short"})});
  ASSERT_TRUE(store->put(key(1, 0), content_of({"short"})));
  ASSERT_TRUE(store->put(key(1, 1), content_of({std::string(100'000, 'f')})));
  const auto memory = store->get(key(1, 0), 0);
  const auto file = store->get(key(1, 1), 0);
  ASSERT_TRUE(memory && file);
  store->remove(stage_id{1});
  store.reset();
  EXPECT_EQ(files(), 0u);
  EXPECT_EQ(text_of(*memory), "short");
  EXPECT_EQ(text_of(*file), std::string(100'000, 'f'));
}

TEST_F(block_store_test, large_sets_in_memory_can_be_shared_and_count_the_same) {
  block_store store{{{directory}, 1 << 20, 10'000}};
  ASSERT_TRUE(store.put(key(1, 0), content_of({std::string(50'000, 's'), "t"})));
  ASSERT_TRUE(store.put(key(1, 1), content_of({"small"})));
  EXPECT_EQ(files(), 0u);
  EXPECT_TRUE(store.get(key(1, 0), 1)->in_file());
  EXPECT_FALSE(store.get(key(1, 1), 0)->in_file());
  EXPECT_EQ(text_of(store.get(key(1, 0), 0)), std::string(50'000, 's'));
  EXPECT_EQ(text_of(store.get(key(1, 0), 1)), "t");
  EXPECT_EQ(store.bytes_in_memory(), memory_of({std::string(50'000, 's'), "t"}) + memory_of({"small"}));
  auto view = store.get(key(1, 0), 0);
  store.remove(stage_id{1});
  EXPECT_EQ(store.bytes_in_memory(), memory_of({std::string(50'000, 's'), "t"})) << "somebody still reads it";
  view = block_view{};
  EXPECT_EQ(store.bytes_in_memory(), 0u);
}

TEST_F(block_store_test, large_sets_that_would_take_too_many_descriptors_are_kept_in_memory_all_the_same) {
  block_store store{{{directory}, 1 << 20, 10'000, /*max_descriptors=*/1}};
  for (partition_index p = 0; p < 2; ++p) ASSERT_TRUE(store.put(key(1, p), content_of({std::string(50'000, 's')})));
  EXPECT_TRUE(store.get(key(1, 0), 0)->in_file());
  EXPECT_FALSE(store.get(key(1, 1), 0)->in_file());
  EXPECT_EQ(text_of(store.get(key(1, 1), 0)), std::string(50'000, 's'));
  EXPECT_EQ(files(), 0u);
  EXPECT_EQ(store.bytes_in_memory(), 2 * memory_of({std::string(50'000, 's')}));
  store.remove(key(1, 0));
  ASSERT_TRUE(store.put(key(2, 0), content_of({std::string(50'000, 't')})));
  EXPECT_TRUE(store.get(key(2, 0), 0)->in_file()) << "one is free again";
}

TEST_F(block_store_test, a_set_whose_key_was_removed_meanwhile_is_not_kept_in_place_of_another) {
  // The first one is being written to a file, slowly; the key goes, and another set takes it.
  block_store store{{{directory}, 0}};
  const std::string large(40 << 20, 'l');
  std::atomic<bool> begun = false;
  std::thread first{[&] {
    auto content = content_of({large});
    begun = true;
    EXPECT_TRUE(store.put(key(1, 0), std::move(content)));
  }};
  while (!begun || files() == 0) std::this_thread::yield();
  store.remove(key(1, 0));
  ASSERT_TRUE(store.put(key(1, 0), content_of({"second"})));
  first.join();
  EXPECT_EQ(text_of(store.get(key(1, 0), 0)), "second");
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(store.bytes(), stored(6));
}

TEST_F(block_store_test, its_end_removes_its_files) {
  {
    block_store store{{{directory}, 0}};
    ASSERT_TRUE(store.put(key(1, 0), content_of({"one"})));
    EXPECT_EQ(files(), 1u);
  }
  EXPECT_EQ(files(), 0u);
}

TEST_F(block_store_test, a_file_that_cannot_be_written_is_an_error_and_leaves_nothing) {
  block_store store{{{directory / "missing"}, 0}};
  const auto kept = store.put(key(1, 0), content_of({"one"}));
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().code, ec::io);
  EXPECT_NE(kept.error().message.find("missing"), std::string::npos);
  EXPECT_EQ(store.bytes(), 0u);
  fs::create_directory(directory / "missing");
  EXPECT_TRUE(store.put(key(1, 0), content_of({"one"}))) << "the key is free again";
}

TEST_F(block_store_test, a_file_cut_short_by_others_is_an_error_instead_of_a_crash) {
  block_store store{{{directory}, 0}};
  ASSERT_TRUE(store.put(key(1, 0), content_of({std::string(100'000, 'x')})));
  fs::resize_file(
      fs::directory_iterator { directory } -> path(), 10);
  const auto view = store.get(key(1, 0), 0);
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().code, ec::io);
}

TEST_F(block_store_test, many_threads_store_read_and_remove) {
  block_store store{{{directory}, 4000}};
  std::vector<std::thread> threads;
  for (std::uint64_t stage = 1; stage <= 4; ++stage) {
    threads.emplace_back([&, stage] {
      for (int round = 0; round < 20; ++round) {
        for (partition_index p = 0; p < 20; ++p) {
          const auto text = std::to_string(stage) + "." + std::to_string(p);
          ASSERT_TRUE(store.put(key(stage, p), content_of({text, std::string(100, 'x')})));
          const auto view = store.get(key(stage, p), 0);
          ASSERT_TRUE(view);
          ASSERT_EQ(text_of(*view), text);
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

/// Cached partitions of datasets; each takes the same.
class cached_blocks : public block_store_test {
protected:
  static block_key part(std::uint64_t dataset, partition_index partition) {
    return {block_kind::cached, dataset, partition, 0};
  }
  result<void> keep(std::uint64_t dataset, partition_index partition, storage_level level) {
    return store.put(part(dataset, partition), content_of({text}), level);
  }
  bool is_kept(std::uint64_t dataset, partition_index partition) {
    return store.get(part(dataset, partition), 0).has_value();
  }

  const std::string text = std::string(76, 't');
  block_store store{{{directory}, 2 * memory_of({text})}};
};

TEST_F(cached_blocks, that_were_used_longest_ago_make_room) {
  ASSERT_TRUE(keep(1, 0, storage_level::memory));
  ASSERT_TRUE(keep(2, 0, storage_level::memory));
  EXPECT_TRUE(is_kept(1, 0)) << "and is now the one that was used last";
  ASSERT_TRUE(keep(3, 0, storage_level::memory));
  EXPECT_TRUE(is_kept(1, 0));
  EXPECT_FALSE(is_kept(2, 0));
  EXPECT_EQ(store.take_evicted(), std::vector{part(2, 0)});
  EXPECT_EQ(store.take_evicted(), std::vector<block_key>{});
  EXPECT_EQ(store.bytes(), 2 * stored(76));
  EXPECT_EQ(files(), 0u);
}

TEST_F(cached_blocks, that_are_an_output_too_stay_until_that_was_read) {
  const auto kept = store.put_cached(part(1, 0), key(7, 0), content_of({text}), storage_level::memory);
  ASSERT_TRUE(kept);
  EXPECT_TRUE(*kept);
  EXPECT_EQ(store.bytes(), stored(76)) << "it is there once";
  EXPECT_EQ(store.bytes_in_memory(), memory_of({text}));
  ASSERT_TRUE(keep(2, 0, storage_level::memory));
  EXPECT_TRUE(store.get(key(7, 0), 0));
  EXPECT_FALSE(keep(3, 0, storage_level::memory) && !is_kept(1, 0)) << "somebody is to read it yet";
  EXPECT_TRUE(is_kept(1, 0));
  store.remove(stage_id{7});
  EXPECT_FALSE(store.get(key(7, 0), 0));
  EXPECT_TRUE(is_kept(1, 0));
  ASSERT_TRUE(keep(4, 0, storage_level::memory));
  ASSERT_TRUE(keep(5, 0, storage_level::memory));
  EXPECT_FALSE(is_kept(1, 0)) << "now it may go";
}

TEST_F(cached_blocks, for_which_there_is_no_room_are_outputs_alone) {
  ASSERT_TRUE(store.put(key(6, 0), content_of({text}))); // which do not go
  ASSERT_TRUE(store.put(key(6, 1), content_of({text})));
  const auto kept = store.put_cached(part(1, 0), key(7, 0), content_of({text}), storage_level::memory);
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_FALSE(*kept);
  EXPECT_FALSE(is_kept(1, 0));
  EXPECT_TRUE(store.get(key(7, 0), 0)) << "in a file";
  EXPECT_EQ(files(), 1u);
  const auto on_disk = store.put_cached(part(1, 1), key(7, 1), content_of({text}), storage_level::memory_and_disk);
  ASSERT_TRUE(on_disk);
  EXPECT_TRUE(*on_disk);
  const auto read = store.get(part(1, 1), 0);
  const auto again = store.put_cached(part(1, 1), key(7, 2), content_of({"other"}), storage_level::disk);
  ASSERT_TRUE(again);
  EXPECT_TRUE(*again) << "in the place of the one before, although somebody reads that";
  EXPECT_EQ(text_of(*store.get(part(1, 1), 0)), "other");
  EXPECT_EQ(text_of(*read), text);
  EXPECT_FALSE(store.put_cached(part(1, 3), key(7, 2), content_of({text}), storage_level::disk)) << "the key is taken";
  EXPECT_FALSE(is_kept(1, 3));
  store.remove(cache_id{1});
  EXPECT_FALSE(is_kept(1, 1));
  EXPECT_TRUE(store.get(key(7, 1), 0)) << "the task's readers have it";
}

TEST_F(cached_blocks, whose_successor_finds_no_room_are_said_to_be_gone) {
  ASSERT_TRUE(keep(1, 0, storage_level::memory));
  ASSERT_TRUE(store.put(key(6, 0), content_of({text})));
  const auto kept = store.put_cached(part(1, 0), key(7, 0), content_of({text + text}), storage_level::memory);
  ASSERT_TRUE(kept);
  EXPECT_FALSE(*kept);
  EXPECT_FALSE(is_kept(1, 0));
  EXPECT_EQ(store.take_evicted(), std::vector{part(1, 0)});
  store.remove(stage_id{7});
  EXPECT_TRUE(*store.put_cached(part(1, 0), key(8, 0), content_of({text}), storage_level::memory));
  EXPECT_TRUE(*store.put_cached(part(1, 0), key(8, 1), content_of({text}), storage_level::disk));
  EXPECT_EQ(store.take_evicted(), std::vector<block_key>{}) << "another one is there";
}

TEST_F(cached_blocks, that_are_evicted_are_said_to_be_gone) {
  ASSERT_TRUE(keep(1, 0, storage_level::memory));
  store.evict(cache_id{1}, 0);
  store.evict(cache_id{1}, 1);
  EXPECT_FALSE(is_kept(1, 0));
  EXPECT_EQ(store.take_evicted(), std::vector{part(1, 0)}) << "there was no other";
}

TEST_F(cached_blocks, of_one_dataset_do_not_chase_each_other) {
  ASSERT_TRUE(keep(1, 0, storage_level::memory));
  ASSERT_TRUE(keep(1, 1, storage_level::memory));
  const auto third = keep(1, 2, storage_level::memory);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, ec::overloaded);
  EXPECT_TRUE(is_kept(1, 0) && is_kept(1, 1));
  ASSERT_TRUE(keep(1, 2, storage_level::memory_and_disk)) << "goes to a file instead";
  EXPECT_EQ(files(), 1u);
}

TEST_F(cached_blocks, go_to_a_file_where_they_may_and_are_there_still) {
  ASSERT_TRUE(keep(1, 0, storage_level::memory_and_disk));
  ASSERT_TRUE(keep(2, 0, storage_level::disk));
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(store.bytes_in_memory(), memory_of({text}));
  ASSERT_TRUE(store.put(key(7, 0), content_of({text, text.substr(0, 50)})));
  EXPECT_EQ(files(), 2u) << "a map output has made it go";
  EXPECT_EQ(text_of(store.get(part(1, 0), 0)), text);
  EXPECT_EQ(text_of(store.get(part(2, 0), 0)), text);
  EXPECT_TRUE(store.take_evicted().empty());
  ASSERT_TRUE(store.put(key(2, 0), content_of({std::string(1000, 'x')})));
  EXPECT_EQ(files(), 3u);
  EXPECT_EQ(text_of(store.get(part(2, 0), 0)), text) << "a file beside that of an output with the same numbers";
  store.remove(stage_id{2});
  store.remove(part(1, 0));
  store.remove(part(2, 0));
  EXPECT_EQ(files(), 0u);
  EXPECT_EQ(store.held().size(), 1u) << "cached blocks are no outputs";
}

TEST_F(cached_blocks, of_memory_alone_leave_nothing_where_there_is_no_room) {
  EXPECT_FALSE(store.put(part(1, 0), content_of({std::string(1000, 'x')}), storage_level::memory));
  EXPECT_FALSE(is_kept(1, 0));
  EXPECT_TRUE(keep(1, 0, storage_level::memory)) << "the key is free";
  ASSERT_TRUE(store.put(key(7, 0), content_of({std::string(1000, 'x')}))) << "larger than all memory";
  EXPECT_TRUE(is_kept(1, 0)) << "nobody goes for what will not fit anyway";
}

TEST_F(cached_blocks, stay_where_their_going_would_not_make_room_enough) {
  block_store full{{{directory}, memory_of({std::string(1000, 'o')}) + 3 * memory_of({text})}};
  ASSERT_TRUE(full.put(key(7, 0), content_of({std::string(1000, 'o')}))); // an output, which does not go
  for (partition_index p = 0; p < 3; ++p) ASSERT_TRUE(full.put(part(1, p), content_of({text}), storage_level::memory));
  ASSERT_TRUE(full.put(key(7, 1), content_of({std::string(500, 'x')})));
  EXPECT_EQ(files(), 1u) << "the new one";
  EXPECT_TRUE(full.take_evicted().empty());
  // The same where somebody reads what would have to go.
  const auto view = full.get(part(1, 0), 0);
  ASSERT_TRUE(full.put(key(7, 2), content_of({text, text})));
  EXPECT_EQ(full.take_evicted().size(), 2u) << "the two that nobody reads";
}

TEST_F(cached_blocks, take_memory_as_long_as_somebody_reads_them) {
  ASSERT_TRUE(keep(1, 0, storage_level::memory));
  auto view = store.get(part(1, 0), 0);
  store.remove(part(1, 0));
  EXPECT_EQ(store.bytes(), 0u);
  EXPECT_EQ(store.bytes_in_memory(), memory_of({text}));
  EXPECT_EQ(text_of(*view), text);
  *view = {};
  EXPECT_EQ(store.bytes_in_memory(), 0u);
}

} // namespace
} // namespace troupe
