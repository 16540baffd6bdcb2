// Frames that were good until somebody changed something of them: what random bytes never get to.

#include <mutex>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <troupe/runtime/little_endian.hpp>

#include "transfer_fixture.hpp"

namespace troupe::testing_transfer {
namespace {

namespace protocol = block_protocol;

class mutations {
public:
  explicit mutations(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  /// One to three changes: a bit, a byte, an odd number, bytes that go, come twice, or come out of the other text.
  std::string operator()(std::string bytes, const std::string& other) {
    for (auto left = 1 + below(3); left > 0 && !bytes.empty(); --left) {
      const auto at = below(bytes.size());
      const auto count = std::min(bytes.size() - at, 1 + below(16));
      switch (below(6)) {
      case 0: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;
      case 1: bytes[at] = static_cast<char>(random_()); break;
      case 2: {
        static constexpr std::uint64_t odd[] = {
            0, 1, 0x7f, 0xff, 0xffff, 0x7fff'ffff, 0xffff'ffff, ~std::uint64_t{0} >> 1, ~std::uint64_t{0}};
        std::string number;
        little_endian::append(number, odd[below(std::size(odd))]);
        bytes.replace(at, count, number.substr(0, std::min<std::size_t>(count, number.size())));
        break;
      }
      case 3: bytes.erase(at, count); break;
      case 4: bytes.insert(at, bytes.substr(at, count)); break;
      default: bytes.replace(at, std::string::npos, other.substr(below(other.size())));
      }
    }
    return bytes;
  }

private:
  std::mt19937_64 random_;
};

/// From who knows the secret: what follows the handshake.
TEST_F(transfer_test, mutated_requests_harm_nobody_else) {
  serve();
  const std::string content(3000, 'c');
  ASSERT_TRUE(store->put(key(1, 0, 0), content_of({content, "second"})));
  const std::vector<std::string> good{
      protocol::encode(protocol::fetch{100, false, {{key(1, 0, 0), 0, 0}, {key(1, 0, 0), 1, 0}}}),
      protocol::encode(protocol::fetch{1 << 20, true, {{key(1, 0, 0), protocol::whole_set, 0}}}),
      protocol::encode(protocol::grant{5000}),
      protocol::encode(protocol::fetch{1 << 20, false, {{key(1, 0, 0), 0, 100}, {key(1, 7, 0), 0, 0}}})};
  mutations mutate{31};
  const auto before = anonymous_memory();
  auto c = client();
  for (int round = 0; round < 600; ++round) {
    auto s = authenticated();
    const auto& first = good[mutate.below(good.size())];
    const auto& second = good[mutate.below(good.size())];
    s.send(round % 2 == 0 ? mutate(first, second) + second : first + mutate(second, first));
    s.end_sending();
    ASSERT_TRUE(s.ended()) << "round " << round;
    if (round % 20 != 0) continue;
    const auto still = c.fetch_value(endpoint(), key(1, 0, 0), 0);
    ASSERT_TRUE(still) << "round " << round << ": " << still.error().message;
    ASSERT_TRUE(*still == content);
  }
  EXPECT_LT(anonymous_memory(), before + (1u << 30)) << "it believes what is announced";
}

/// From a server that knows the secret: the reader gets what was written, or says what is wrong; nothing else.
TEST_F(transfer_test, mutated_answers_are_never_taken_for_the_content) {
  std::vector<std::string> pages;
  std::string content;
  for (int i = 0; i < 4; ++i) {
    content += std::string(500, static_cast<char>('a' + i));
    pages.push_back(page_of(std::string(500, static_cast<char>('a' + i))));
  }
  const auto all = pages[0] + pages[1] + pages[2] + pages[3];
  const auto good = protocol::encode(protocol::data{all.size()}) + all;
  const auto failure = protocol::encode(make_error(ec::not_found, "no such block"));
  const auto lend = protocol::encode(protocol::lend{0, all.size()});
  mutations mutate{47};
  std::mutex mutex; // the reader may be done with a connection that is still being served
  std::string next;
  lying_server liar{secret, [&](raw_socket& peer) {
                      std::unique_lock lock{mutex};
                      const auto bytes = next;
                      lock.unlock();
                      peer.send(bytes);
                      peer.end_sending();
                    }};
  auto options = client_options();
  options.attempts = 1;
  block_client c{options, secret, nullptr};
  const auto before = anonymous_memory();
  int right = 0;
  int wrong = 0;
  for (int round = 0; round < 240; ++round) {
    auto bytes = mutate(round % 8 == 0 ? lend : round % 8 == 1 ? failure : good, round % 3 == 0 ? failure : good);
    {
      const std::lock_guard lock{mutex};
      next = std::move(bytes);
    }
    const auto got = c.fetch_value(at(liar.port()), key(1, 0, 0), 0);
    if (got) {
      ++right;
      // Whole pages may come twice or be left out where the frame says so: they hold what was written.
      for (std::size_t begin = 0; begin < got->size(); begin += 500) {
        const auto page = got->substr(begin, 500);
        ASSERT_TRUE(page.size() == 500 && page == std::string(500, page[0]) && page[0] >= 'a' && page[0] <= 'd')
            << "round " << round;
      }
    } else {
      ++wrong;
      EXPECT_FALSE(got.error().message.empty());
    }
  }
  EXPECT_GT(wrong, 150);
  EXPECT_LT(right, 90);
  EXPECT_LT(anonymous_memory(), before + (1u << 30)) << "it believes what is announced";
}

} // namespace
} // namespace troupe::testing_transfer
