#include <troupe/messages/session.hpp>

namespace troupe {

bool job_submission::operator==(const job_submission& other) const {
  return profiles == other.profiles && (job && other.job ? *job == *other.job : job == other.job);
}

} // namespace troupe
