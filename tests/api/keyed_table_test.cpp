#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <troupe/runtime/api/key_cell.hpp>
#include <troupe/runtime/api/keyed_table.hpp>
#include <troupe/runtime/api/serialize.hpp>
#include <troupe/runtime/api/stable_hash.hpp>

namespace {

using troupe::bucket_of;
using troupe::stable_hash;
using troupe::detail::key_cell;
using troupe::detail::keyed_table;

TEST(stable_hash, values_never_change) {
  // Blocks are laid out by these.
  EXPECT_EQ(stable_hash(""), 0xe220a8397b1dcdafu);
  EXPECT_EQ(stable_hash("troupe"), 0x535cebd5ff7ba52bu);
  EXPECT_EQ(stable_hash("a longer key, of more than one word"), 0xf54e0b69bc7c13cdu);
}

TEST(stable_hash, values_of_short_texts_never_change) {
  EXPECT_EQ(stable_hash("a"), 0xfee338dd95ada221u);
  EXPECT_EQ(stable_hash("ab"), 0xface2a01e788d046u);
  EXPECT_EQ(stable_hash("abc"), 0xbcc5ca623ffa8141u);
  EXPECT_EQ(stable_hash("abcd"), 0x843f9f7fa41f148u);
  EXPECT_EQ(stable_hash("abcde"), 0x19db6fe1e2d406f8u);
  EXPECT_EQ(stable_hash("abcdef"), 0x76cd349d015d63d9u);
  EXPECT_EQ(stable_hash("abcdefg"), 0x5bfd35edab4dfc03u);
}

TEST(keyed_table, keys_of_any_length_are_compared_to_their_last_byte) {
  for (std::size_t size = 0; size < 100; ++size) {
    keyed_table<int> table;
    const std::string key(size, 'k');
    table.insert(key, 7, 1);
    EXPECT_NE(table.find(key, 7), nullptr) << size;
    EXPECT_EQ(table.find(key + 'k', 7), nullptr) << size;
    for (std::size_t i = 0; i < size; ++i) {
      auto other = key;
      other[i] = 'x';
      EXPECT_EQ(table.find(other, 7), nullptr) << size << " at " << i;
    }
  }
}

TEST(key_cell, is_its_bytes_and_their_hash_whatever_stands_behind_them) {
  const std::string text{"\x80\xff!abc\0defghijklmnopqr", 22};
  for (std::size_t size = 0; size <= key_cell::most_inside; ++size) {
    const auto key = text.substr(0, size);
    const auto cell = key_cell::of(key);
    EXPECT_TRUE(cell.is_inside());
    EXPECT_EQ(cell.size(), size);
    EXPECT_EQ(cell.bytes(), key);
    EXPECT_EQ(cell.hash(), stable_hash(key)) << size;
    EXPECT_EQ(cell, key_cell::of(std::string_view{text}.substr(0, size)));
    if (size < key_cell::most_inside) {
      EXPECT_FALSE(cell == key_cell::of(key + std::string(1, '\0'))) << "zeros count";
    }
  }
}

TEST(key_cell, of_a_text_is_that_of_its_encoding) {
  const std::string letters = "\xe4 text of sixteen";
  for (std::size_t size = 0; size < key_cell::most_inside; ++size) {
    const auto text = letters.substr(0, size);
    std::string encoded;
    troupe::encoder{encoded}(text);
    EXPECT_EQ(key_cell::of_text(text), key_cell::of(encoded)) << size;
  }
}

TEST(key_cell, elsewhere_knows_where_and_how_long) {
  const auto cell = key_cell::elsewhere(123'456'789'012, 98'765'432'109);
  EXPECT_FALSE(cell.is_inside());
  EXPECT_EQ(cell.begin(), 123'456'789'012u);
  EXPECT_EQ(cell.size(), 98'765'432'109u);
}

TEST(keyed_table, finds_by_cells_also_with_a_number_that_has_become_wrong) {
  keyed_table<int> table;
  const auto cell = [](int i) { return key_cell::of(std::to_string(i)); };
  for (int i = 0; i < 100; ++i) table.insert(std::to_string(i), cell(i).hash(), i);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(table.find(cell(i), cell(i).hash())->value, i);
    const auto likely = table.prefetch_entry(cell(i).hash());
    EXPECT_EQ(table.entries().at(likely - 1).value, i);
    for (const std::uint32_t wrong : {0u, 1u, 50u, 100u, 101u})
      EXPECT_EQ(table.find(cell(i), cell(i).hash(), wrong)->value, i);
  }
  EXPECT_EQ(table.find(cell(100), cell(100).hash(), 7), nullptr);
}

TEST(stable_hash, length_counts) {
  EXPECT_NE(stable_hash(std::string("a")), stable_hash(std::string("a\0", 2)));
  EXPECT_NE(stable_hash(std::string("\0\0", 2)), stable_hash(std::string("\0\0\0", 3)));
}

TEST(stable_hash, similar_keys_spread_over_buckets) {
  constexpr std::uint32_t buckets = 16;
  std::vector<int> hits(buckets);
  for (std::uint64_t i = 0; i < 16'000; ++i) {
    std::string key(8, '\0');
    for (int b = 0; b < 8; ++b) key[b] = static_cast<char>(i >> (8 * b));
    const auto bucket = bucket_of(stable_hash(key), buckets);
    ASSERT_LT(bucket, buckets);
    ++hits[bucket];
  }
  for (const auto n : hits) EXPECT_NEAR(n, 1000, 150);
}

TEST(keyed_table, finds_what_was_inserted_in_first_seen_order) {
  keyed_table<int> table;
  EXPECT_EQ(table.find("absent", stable_hash("absent")), nullptr);
  for (int i = 0; i < 5000; ++i) {
    const auto key = std::to_string(i);
    ASSERT_EQ(table.find(key, stable_hash(key)), nullptr) << i;
    table.insert(key, stable_hash(key), i);
  }
  for (int i = 0; i < 5000; ++i) {
    const auto key = std::to_string(i);
    const auto* found = table.find(key, stable_hash(key));
    ASSERT_NE(found, nullptr) << i;
    EXPECT_EQ(found->value, i);
    EXPECT_EQ(table.key_of(*found), key);
  }
  int next = 0;
  for (const auto& entry : table.entries()) EXPECT_EQ(entry.value, next++);
}

TEST(keyed_table, equal_hashes_do_not_make_equal_keys) {
  keyed_table<int> table;
  table.insert("left", 7, 1);
  table.insert("right", 7, 2);
  ASSERT_NE(table.find("right", 7), nullptr);
  EXPECT_EQ(table.find("right", 7)->value, 2);
  EXPECT_EQ(table.find("neither", 7), nullptr);
}

} // namespace
