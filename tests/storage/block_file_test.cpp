#include <filesystem>
#include <fstream>
#include <random>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <troupe/runtime/storage/block_file.hpp>
#include <troupe/tests/support/blocks.hpp>

namespace troupe {
namespace {

namespace fs = std::filesystem;

class block_file_test : public ::testing::Test {
protected:
  block_file_test() {
    std::string name = (fs::temp_directory_path() / "troupe-file-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("mkdtemp failed");
    directory = name;
  }
  ~block_file_test() override { fs::remove_all(directory); }

  static std::unique_ptr<block_file> fill(result<block_file_writer> writer, const std::vector<std::string>& buckets) {
    for (const auto& bytes : buckets) {
      EXPECT_TRUE(writer->append(bytes));
      writer->end_bucket();
    }
    auto file = writer->finish();
    EXPECT_TRUE(file);
    return std::move(*file);
  }
  static std::string bytes_of(const block_file& file, std::uint32_t bucket) {
    const auto piece = file.open(bucket);
    EXPECT_TRUE(piece);
    std::string bytes(piece->size, '\0');
    if (!bytes.empty()) {
      EXPECT_EQ(::pread(piece->file->get(), bytes.data(), bytes.size(), static_cast<off_t>(piece->offset)),
                static_cast<ssize_t>(bytes.size()));
    }
    return bytes;
  }
  static descriptor open(const std::string& path) { return descriptor{::open(path.c_str(), O_RDONLY | O_CLOEXEC)}; }

  fs::path directory;
};

const std::vector<std::string> buckets_of_file{"first", "", std::string(300'000, 'x'), "last"};

TEST_F(block_file_test, can_be_read_by_who_knows_a_descriptor_alone) {
  const auto path = (directory / "file").string();
  const auto written = fill(block_file_writer::create(path), buckets_of_file);
  const auto adopted = block_file::adopt(open(path));
  ASSERT_TRUE(adopted) << adopted.error().message;
  fs::remove(path);
  ASSERT_EQ((*adopted)->buckets(), 4u);
  for (std::uint32_t b = 0; b < 4; ++b) {
    EXPECT_EQ(bytes_of(**adopted, b), buckets_of_file[b]);
    EXPECT_EQ((*adopted)->open(b)->size, buckets_of_file[b].size());
  }
}

TEST_F(block_file_test, keeps_the_order_of_pieces_of_every_size) {
  std::mt19937 random{7};
  std::vector<std::string> buckets;
  for (int i = 0; i < 300; ++i) buckets.emplace_back(std::size_t{1} << random() % 19, static_cast<char>('a' + i % 26));
  const auto file = fill(block_file_writer::create((directory / "file").string()), buckets);
  for (std::uint32_t b = 0; b < buckets.size(); ++b) ASSERT_TRUE(bytes_of(*file, b) == buckets[b]) << b;
}

TEST_F(block_file_test, in_memory_cannot_be_written_by_anybody) {
  const auto file = fill(block_file_writer::create_in_memory("test"), buckets_of_file);
  EXPECT_TRUE(file->in_memory());
  for (std::uint32_t b = 0; b < 4; ++b) EXPECT_EQ(bytes_of(*file, b), buckets_of_file[b]);
  const auto piece = file->open(0);
  ASSERT_TRUE(piece);
  const int fd = piece->file->get();
  EXPECT_LT(::pwrite(fd, "x", 1, 0), 0);
  EXPECT_NE(::ftruncate(fd, 0), 0);
  const descriptor writable{::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDWR | O_CLOEXEC)};
  if (writable) {
    EXPECT_LT(::pwrite(writable.get(), "x", 1, 0), 0) << "it is not sealed";
    EXPECT_NE(::ftruncate(writable.get(), 0), 0);
  }
}

TEST_F(block_file_test, is_not_what_ends_or_differs_anywhere_in_its_index) {
  const auto path = (directory / "file").string();
  const auto written = fill(block_file_writer::create(path), buckets_of_file);
  std::ifstream in{path, std::ios::binary};
  const std::string good{std::istreambuf_iterator<char>{in}, {}};
  const auto other = (directory / "other").string();
  const auto adopts = [&](const std::string& bytes) {
    std::ofstream{other, std::ios::binary} << bytes;
    const auto adopted = block_file::adopt(open(other));
    if (!adopted) {
      EXPECT_EQ(adopted.error().code, ec::malformed);
    }
    return adopted.has_value();
  };
  EXPECT_TRUE(adopts(good));
  const auto index = good.size() - 24 - 4 * 16;
  for (auto at = index; at < good.size(); ++at)
    for (const int bit : {0, 3, 7}) {
      auto bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      EXPECT_FALSE(adopts(bad)) << "byte " << at - index << " bit " << bit;
    }
  EXPECT_FALSE(adopts(""));
  EXPECT_FALSE(adopts(good.substr(1)));
  EXPECT_FALSE(adopts(good.substr(0, good.size() - 1)));
  EXPECT_FALSE(adopts("x" + good));
  EXPECT_FALSE(adopts(std::string(100, '\xff') + good.substr(good.size() - 8)));
  EXPECT_FALSE(block_file::adopt(open(directory))) << "a directory";
}

/// Whoever serves one bucket reads its entry of the index alone; whole pages of another bucket would pass for its own.
TEST_F(block_file_test, gives_nothing_of_a_bucket_whose_entry_is_damaged) {
  const auto path = (directory / "file").string();
  const auto file = fill(block_file_writer::create(path), buckets_of_file);
  const auto index = static_cast<std::streamoff>(fs::file_size(path)) - 24 - 4 * 16;
  const auto put = [&](std::streamoff at, const std::string& bytes) {
    std::fstream{path, std::ios::in | std::ios::out | std::ios::binary}.seekp(at) << bytes;
  };
  std::ifstream in{path, std::ios::binary};
  const std::string good{std::istreambuf_iterator<char>{in}, {}};
  const auto entry = [&](int bucket) { return good.substr(static_cast<std::size_t>(index + 16 * bucket), 16); };
  const auto fails = [&](std::uint32_t bucket) {
    const auto piece = file->open(bucket);
    if (!piece) {
      EXPECT_EQ(piece.error().code, ec::io);
    }
    return !piece;
  };
  put(index, std::string(16, '\0'));
  EXPECT_TRUE(fails(0)) << "what is 0 is not empty";
  EXPECT_TRUE(fails(1)) << "it does not begin there";
  EXPECT_EQ(bytes_of(*file, 2), buckets_of_file[2]) << "what is whole is still given";
  put(index, good.substr(static_cast<std::size_t>(index), 16));
  put(index + 2 * 16, entry(3));
  EXPECT_TRUE(fails(2)) << "the entry of another bucket";
  EXPECT_TRUE(fails(3));
  put(index + 2 * 16, entry(2));
  for (std::uint32_t b = 0; b < 4; ++b) EXPECT_EQ(bytes_of(*file, b), buckets_of_file[b]);
}

} // namespace
} // namespace troupe
