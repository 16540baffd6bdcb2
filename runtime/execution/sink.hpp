#pragma once

/// Records of a native stage flow through a chain of sinks: a source pushes, narrow operations pass on, a terminal
/// sink keeps. One virtual call a record and operation; element types are checked where the chain is built (api/).

#include <string>
#include <string_view>
#include <utility>

namespace troupe {

/// Any sink, whatever it takes.
class erased_sink {
public:
  virtual ~erased_sink() = default;
  /// No record follows. Called once, first on the sink nearest to the source; passes on to the next one.
  virtual void finish() = 0;
};

/// Takes records of type `T`.
template <class T>
class sink : public erased_sink {
public:
  virtual void push(T&& record) = 0;
};

/// The same for those whose keys are texts: whoever only looks at the key needs no string of its own.
template <class V>
class sink<std::pair<std::string, V>> : public erased_sink {
public:
  virtual void push(std::pair<std::string, V>&& record) = 0;
  virtual void push_text(std::string_view key, V&& value) { push({std::string{key}, std::move(value)}); }
};

/// The end of a chain.
class terminal_sink : public erased_sink {
public:
  /// The task's result bytes. Called once, after `finish`. A shuffle sink hands its buckets to the task context before.
  virtual std::string take_result() = 0;
};

} // namespace troupe
