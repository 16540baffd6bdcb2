#pragma once

/// Where datasets start that hold no files: ranges of numbers and values that travel with the job.

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/runtime/api/operation_entry.hpp>
#include <troupe/runtime/api/serialize.hpp>
#include <troupe/runtime/dag/job_spec.hpp>
#include <troupe/runtime/execution/task_context.hpp>

namespace troupe::detail {

/// Where part `index` of `parts` nearly equal parts of `count` things begins. @pre index <= parts, parts > 0
constexpr std::uint64_t part_begin(std::uint64_t count, std::uint32_t parts, std::uint32_t index) noexcept {
  // count * index / parts without overflow.
  return count / parts * index + count % parts * index / parts;
}

/// Numbers `first` to below `first + count`; every task finds its own part from its partition index.
struct range_source {
  static void make(task_context& context, std::string_view captures, std::string_view, erased_sink& erased) {
    auto& out = typed_sink<std::int64_t>(erased);
    const auto [first, count] = decode_value<std::pair<std::int64_t, std::uint64_t>>(captures);
    if (context.tasks == 0) throw std::logic_error("a range in a stage without tasks");
    const auto begin = part_begin(count, context.tasks, context.partition);
    const auto end = part_begin(count, context.tasks, context.partition + 1);
    for (auto i = begin; i < end; ++i) {
      stop_if_cancelled(context);
      out.push(static_cast<std::int64_t>(static_cast<std::uint64_t>(first) + i));
    }
  }
};

/// The values of the task's argument.
template <class T>
struct values_source {
  static void make(task_context& context, std::string_view, std::string_view argument, erased_sink& erased) {
    auto& out = typed_sink<T>(erased);
    decoder in{argument};
    while (!in.at_end()) {
      stop_if_cancelled(context);
      out.push(serializer<T>::read(in));
    }
  }
};

/// One entry per part of `values`.
template <class T>
std::shared_ptr<const packed_column> values_column(const std::vector<T>& values, std::uint32_t parts) {
  auto column = std::make_shared<packed_column>();
  for (std::uint32_t part = 0; part < parts; ++part) {
    encoder out{column->data};
    const auto end = static_cast<std::size_t>(part_begin(values.size(), parts, part + 1));
    for (auto i = static_cast<std::size_t>(part_begin(values.size(), parts, part)); i < end; ++i)
      serializer<T>::write(out, values[i]);
    if (column->data.size() > UINT32_MAX)
      throw std::length_error("values of more than 4 GiB do not travel with a job: put them into files");
    column->ends.push_back(static_cast<std::uint32_t>(column->data.size()));
  }
  return column;
}

} // namespace troupe::detail
