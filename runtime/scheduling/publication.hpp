#pragma once

/// How the outputs of accepted attempts get to where their job wants them: who is told to, and what came of it.
/// Immutable once sent; shared in-process, packed on the wire.

#include <cstdint>
#include <string>
#include <vector>

#include <troupe/runtime/ids.hpp>

namespace troupe {

/// What came of publishing the outputs of one attempt. Numbers are wire format.
enum class publication_outcome : std::uint8_t {
  published = 0, ///< all of them are in place
  not_seen = 1,  ///< who tried does not see them, or may not move them; nothing was touched
  failed = 2,    ///< the reason says why, and which of them are in place nevertheless
};

/// The end of one publication.
struct publication {
  stage_id stage;
  partition_index partition = 0;
  attempt_number attempt = 0;
  publication_outcome outcome = publication_outcome::published;
  std::string reason; ///< "" where published

  bool operator==(const publication&) const = default;
};

/// Those that have ended since the last ones were told, in no particular order.
struct publications {
  std::vector<publication> ends;

  bool operator==(const publications&) const = default;
};

/// Leave for the executor that made these outputs to publish them: its attempt was accepted, and the driver does not
/// see the files. Given once; no other attempt of the task may begin before its end is known.
struct publication_right {
  stage_id stage;
  partition_index partition = 0;
  attempt_number attempt = 0;
  std::vector<std::string> outputs; ///< names below the stage's output directory

  bool operator==(const publication_right&) const = default;
};

} // namespace troupe
