#include <gtest/gtest.h>

#include <troupe/runtime/scheduling/job_status.hpp>

namespace troupe {
namespace {

job_end end_with_results_of(std::size_t bytes) {
  auto results = std::make_shared<job_results>();
  results->values.push_back(std::string(bytes, 'x'));
  job_end end;
  end.progress.state = job_state::succeeded;
  end.results = std::move(results);
  return end;
}

TEST(results_for_another_process, go_in_one_message_or_not_at_all) {
  auto end = end_with_results_of(100);
  const auto size = end.results->values.data.size() + sizeof(std::uint32_t);
  EXPECT_FALSE(drop_what_cannot_travel(end, size));
  EXPECT_TRUE(end.results);
  EXPECT_FALSE(end.failure);

  EXPECT_TRUE(drop_what_cannot_travel(end, size - 1));
  EXPECT_FALSE(end.results);
  EXPECT_EQ(end.failure.code, ec::overloaded);
  EXPECT_EQ(end.progress.state, job_state::failed);
  EXPECT_NE(end.failure.message.find("troupe.task.max-inline-result"), std::string::npos) << end.failure.message;

  end = end_with_results_of(100);
  auto scattered = std::make_shared<job_results>(*end.results);
  scattered->elsewhere.resize(1000);
  end.results = std::move(scattered);
  EXPECT_TRUE(drop_what_cannot_travel(end, 100'000)) << "places take room, too";

  job_end failed;
  EXPECT_FALSE(drop_what_cannot_travel(failed, 0));
}

} // namespace
} // namespace troupe
