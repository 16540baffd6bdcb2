#include <filesystem>
#include <fstream>
#include <future>
#include <set>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/runtime/transfer/handshake.hpp>

namespace troupe {
namespace {

namespace fs = std::filesystem;

class secret_file : public ::testing::Test {
protected:
  secret_file() {
    std::string name = (fs::temp_directory_path() / "troupe-secret-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("mkdtemp failed");
    directory = name;
    path = directory / "secret";
  }
  ~secret_file() override { fs::remove_all(directory); }
  void write(const std::string& text, mode_t mode = 0600) {
    std::ofstream{path, std::ios::binary} << text;
    ::chmod(path.c_str(), mode);
  }
  error load_error() {
    const auto loaded = session_secret::load(path);
    return loaded ? error{} : loaded.error();
  }
  fs::path directory;
  fs::path path;
};

TEST_F(secret_file, what_was_saved_signs_alike_when_loaded) {
  const auto secret = session_secret::generate();
  ASSERT_TRUE(secret.save(path));
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  const auto loaded = session_secret::load(path);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->sign({"text"}), secret.sign({"text"}));
}

TEST_F(secret_file, may_end_without_a_line_end) {
  const std::string digits(64, 'a');
  write(digits + "\n");
  const auto with = session_secret::load(path);
  ASSERT_TRUE(with);
  write(digits);
  const auto without = session_secret::load(path);
  ASSERT_TRUE(without) << without.error().message;
  EXPECT_EQ(with->sign({"text"}), without->sign({"text"}));
  for (const auto& wrong : {digits.substr(1), digits + " ", digits + "\n\n", digits.substr(1) + "\n"}) {
    write(wrong);
    EXPECT_TRUE(load_error()) << wrong;
  }
}

TEST_F(secret_file, is_never_overwritten) {
  const auto first = session_secret::generate();
  ASSERT_TRUE(first.save(path));
  EXPECT_FALSE(session_secret::generate().save(path));
  EXPECT_TRUE(session_secret::load(path)->verify(first.sign({"x"}), {"x"}));
  fs::remove(path);
  fs::create_symlink(directory / "elsewhere", path);
  EXPECT_FALSE(first.save(path));
  EXPECT_FALSE(fs::exists(directory / "elsewhere"));
}

TEST_F(secret_file, is_the_same_for_all_who_make_it_at_once) {
  const int probe = ::open(directory.c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (probe < 0) GTEST_SKIP() << "files here have names from the beginning, and can be read half written";
  ::close(probe);
  for (int round = 0; round < 50; ++round) {
    const auto made = directory / std::to_string(round);
    std::vector<std::future<std::string>> signed_by;
    for (int i = 0; i < 4; ++i)
      signed_by.push_back(std::async(std::launch::async, [&] {
        const auto secret = session_secret::load_or_make(made);
        return secret ? secret->sign({"text"}) : secret.error().message;
      }));
    const auto first = signed_by.front().get();
    EXPECT_EQ(first.size(), proof_size) << first;
    for (std::size_t i = 1; i < signed_by.size(); ++i) EXPECT_EQ(signed_by[i].get(), first);
  }
}

TEST_F(secret_file, of_a_mode_that_others_can_read_is_refused) {
  for (const mode_t mode : {0640u, 0604u, 0610u, 0602u}) {
    write(std::string(64, 'a') + "\n", mode);
    EXPECT_NE(load_error().message.find("0600"), std::string::npos) << std::oct << mode;
    EXPECT_EQ(load_error().code, ec::invalid_configuration) << std::oct << mode;
  }
  write(std::string(64, 'a') + "\n", 0400);
  EXPECT_FALSE(load_error()) << load_error().message;
}

TEST_F(secret_file, that_is_no_regular_file_is_refused) {
  EXPECT_EQ(load_error().code, ec::invalid_configuration);
  fs::create_directory(path);
  EXPECT_EQ(load_error().code, ec::invalid_configuration);
  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(load_error().code, ec::invalid_configuration);
  fs::remove(path);
  ASSERT_TRUE(session_secret::generate().save(directory / "real"));
  fs::create_symlink(directory / "real", path);
  EXPECT_EQ(load_error().code, ec::invalid_configuration);
}

TEST_F(secret_file, with_other_content_is_refused_without_showing_it) {
  for (const auto& text : {std::string{}, std::string(63, 'a') + "\n", std::string(65, 'a') + "\n",
                           std::string(64, 'A') + "\n", std::string(64, 'g') + "\n", std::string(64, 'a') + "\n\n"}) {
    write(text);
    const auto refused = load_error();
    EXPECT_EQ(refused.code, ec::invalid_configuration) << text;
    EXPECT_EQ(refused.message.find("aaaa"), std::string::npos);
  }
}

TEST(session_secret, is_different_each_time) {
  EXPECT_NE(session_secret::generate().sign({"x"}), session_secret::generate().sign({"x"}));
  EXPECT_NE(make_nonce(), make_nonce());
  EXPECT_EQ(make_nonce().size(), nonce_size);
  EXPECT_NE(make_incarnation(), make_incarnation());
  EXPECT_EQ(make_random_name().size(), 16u);
  EXPECT_EQ(make_random_name().find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST(session_secret, signs_the_parts_and_not_only_their_bytes) {
  const auto secret = session_secret::generate();
  const std::set<std::string> proofs{secret.sign({"ab", "c"}), secret.sign({"a", "bc"}), secret.sign({"abc"}),
                                     secret.sign({"abc", ""}), secret.sign({})};
  EXPECT_EQ(proofs.size(), 5u);
  for (const auto& p : proofs) EXPECT_EQ(p.size(), proof_size);
}

TEST(session_secret, verifies_its_own_proofs_only) {
  const auto secret = session_secret::generate();
  auto proof = secret.sign({"a", "b"});
  EXPECT_TRUE(secret.verify(proof, {"a", "b"}));
  EXPECT_FALSE(secret.verify(proof, {"a", "c"}));
  EXPECT_FALSE(session_secret::generate().verify(proof, {"a", "b"}));
  EXPECT_FALSE(secret.verify(proof.substr(0, 31), {"a", "b"}));
  EXPECT_FALSE(secret.verify("", {"a", "b"}));
  proof.back() = static_cast<char>(proof.back() ^ 1);
  EXPECT_FALSE(secret.verify(proof, {"a", "b"}));
}

} // namespace
} // namespace troupe
