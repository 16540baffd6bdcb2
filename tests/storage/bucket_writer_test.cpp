#include <filesystem>
#include <stdexcept>

#include <gtest/gtest.h>

#include <troupe/tests/support/blocks.hpp>

namespace troupe {
namespace {

namespace fs = std::filesystem;
using testing::text_of;

class bucket_writer_test : public ::testing::Test {
protected:
  bucket_writer_test() {
    auto name = (fs::temp_directory_path() / "troupe-writer-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("mkdtemp failed");
    directory = name;
  }
  ~bucket_writer_test() override { fs::remove_all(directory); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator{directory}, fs::directory_iterator{}));
  }
  /// Records `r0;r1;…` dealt to three buckets in turn.
  static void write(bucket_writer& writer, int records) {
    for (int i = 0; i < records; ++i) {
      const auto bucket = static_cast<std::uint32_t>(i % 3);
      writer.page(bucket).append("r" + std::to_string(i) + ";");
      writer.wrote(bucket);
    }
  }
  static std::string expected(int records, int bucket) {
    std::string text;
    for (int i = bucket; i < records; i += 3) text += "r" + std::to_string(i) + ";";
    return text;
  }

  std::string directory;
  std::unique_ptr<block_directories> made;
  block_directories& directories() {
    if (!made) made = std::make_unique<block_directories>(std::vector{directory});
    return *made;
  }
};

TEST_F(bucket_writer_test, what_fits_stays_in_memory) {
  bucket_writer writer{{.buckets = 3, .memory = 1 << 20, .directories = &directories(), .name = "out"}};
  write(writer, 1000);
  EXPECT_EQ(writer.spills(), 0u);
  block_store store{{{directory}, 1 << 20}};
  ASSERT_TRUE(store.put(output_key({1}, 0, 0), writer.finish()));
  EXPECT_EQ(files(), 0u);
  for (int b = 0; b < 3; ++b)
    EXPECT_EQ(text_of(store.get(output_key({1}, 0, 0), static_cast<std::uint32_t>(b))), expected(1000, b));
}

TEST_F(bucket_writer_test, what_does_not_is_spilled_to_files_without_names_and_comes_back_in_its_order) {
  for (const auto codec : {page_codec::none, page_codec::lz4, page_codec::zstd}) {
    bucket_writer writer{
        {.buckets = 3, .memory = 20'000, .compression = {codec, 1}, .directories = &directories(), .name = "out"}};
    write(writer, 50'000);
    EXPECT_GT(writer.spills(), codec == page_codec::none ? 10u : 3u);
    EXPECT_EQ(files(), 0u) << "a process that is killed now leaves nothing";
    auto content = writer.finish();
    EXPECT_EQ(content.spills.size(), 1u) << "one descriptor, however often it spills";
    const auto sizes = content.sizes();
    EXPECT_EQ(sizes[0] + sizes[1] + sizes[2], content.size());
    block_store store{{{directory}, 1 << 20}};
    const auto kept = store.put(output_key({1}, 0, 0), std::move(content));
    ASSERT_TRUE(kept) << kept.error().message;
    EXPECT_EQ(store.bytes(), sizes[0] + sizes[1] + sizes[2]);
    EXPECT_EQ(files(), 1u) << "one file for all buckets";
    for (int b = 0; b < 3; ++b)
      EXPECT_TRUE(text_of(store.get(output_key({1}, 0, 0), static_cast<std::uint32_t>(b))) == expected(50'000, b));
  }
  EXPECT_EQ(files(), 0u);
}

TEST_F(bucket_writer_test, pages_are_smaller_where_there_are_many_buckets) {
  bucket_writer writer{{.buckets = 1000, .memory = 8 << 20, .directories = &directories(), .name = "out"}};
  for (std::uint32_t i = 0; i < 1'000'000; ++i) {
    writer.page(i % 1000).append("0123456");
    writer.wrote(i % 1000);
  }
  EXPECT_EQ(writer.spills(), 0u);
  const auto content = writer.finish();
  EXPECT_EQ(content.pages[0].size(), 2u) << "of 4 KiB";
}

TEST_F(bucket_writer_test, a_record_larger_than_a_page_has_one_of_its_own) {
  bucket_writer writer{{.buckets = 1, .memory = 64 << 20, .directories = &directories(), .name = "out"}};
  const std::string giant(5'000'000, 'g');
  for (const auto& record : {std::string{"before"}, giant, std::string{"after"}}) {
    writer.page(0).append(record);
    writer.wrote(0);
  }
  const auto content = writer.finish();
  ASSERT_EQ(content.pages[0].size(), 2u);
  std::vector<std::string_view> parts{content.pages[0].begin(), content.pages[0].end()};
  EXPECT_TRUE(testing::text_of(block_view{nullptr, parts, {}, 0}) == "before" + giant + "after");
}

TEST_F(bucket_writer_test, a_spill_that_cannot_be_written_is_an_error_that_names_the_file) {
  block_directories missing{{directory + "/missing"}};
  bucket_writer writer{{.buckets = 3, .memory = 1000, .directories = &missing, .name = "out"}};
  try {
    write(writer, 1000);
    FAIL() << "it went on";
  } catch (const std::runtime_error& e) {
    EXPECT_NE(std::string{e.what()}.find("/missing/out.spill"), std::string::npos) << e.what();
  }
}

TEST_F(bucket_writer_test, what_was_lost_is_not_forgotten_by_who_catches_the_exception) {
  block_directories missing{{directory + "/missing"}};
  bucket_writer writer{{.buckets = 3, .memory = 1000, .directories = &missing, .name = "out"}};
  int thrown = 0;
  for (int i = 0; i < 3000; ++i) {
    try {
      writer.page(0).append("a record");
      writer.wrote(0);
    } catch (const std::runtime_error&) { // as a task might that takes it for a bad line
      ++thrown;
    }
  }
  EXPECT_GT(thrown, 0);
  EXPECT_THROW(writer.finish(), std::runtime_error);
}

TEST_F(bucket_writer_test, a_record_that_was_not_written_whole_leaves_nothing) {
  bucket_writer writer{{.buckets = 1}};
  writer.page(0).append("whole;");
  writer.wrote(0);
  writer.page(0).append("its serialisation thro"); // no word that it was written
  writer.page(0).append("next;");
  writer.wrote(0);
  const auto content = writer.finish();
  std::vector<std::string_view> parts{content.pages[0].begin(), content.pages[0].end()};
  EXPECT_EQ(testing::text_of(block_view{nullptr, parts, {}, 0}), "whole;next;");
}

TEST_F(bucket_writer_test, the_next_directory_is_used_where_one_fails) {
  fs::create_directory(directory + "/good");
  block_directories two{{directory + "/missing", directory + "/good"}};
  bucket_writer writer{{.buckets = 3, .memory = 1000, .directories = &two, .name = "out"}};
  write(writer, 3000);
  EXPECT_GT(writer.spills(), 2u);
  block_store store{{{directory + "/missing", directory + "/good"}, 0}};
  ASSERT_TRUE(store.put(output_key({1}, 0, 0), writer.finish()));
  EXPECT_EQ(text_of(store.get(output_key({1}, 0, 0), 1)), expected(3000, 1));
}

} // namespace
} // namespace troupe
