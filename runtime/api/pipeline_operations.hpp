#pragma once

/// The two halves of a cut: where a stage ends because the profile changes, its tasks write their records, and the
/// tasks of the next one read them, each those of the same partition, in their order.

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <troupe/runtime/api/operation_entry.hpp>
#include <troupe/runtime/api/serialize.hpp>
#include <troupe/runtime/execution/task_context.hpp>

namespace troupe::detail {

/// The last step of a stage: one record after another, encoded.
template <class T>
class partition_write final : public terminal<T> {
public:
  explicit partition_write(task_context& context) : output_(context.map_output()) {}
  static std::unique_ptr<terminal_sink> make(task_context& context, std::string_view) {
    return std::make_unique<partition_write>(context);
  }

  void push(T&& record) override {
    encoder{output_.page(0)}(record);
    output_.wrote(0);
  }
  void finish() override {}
  std::string take_result() override { return {}; }

private:
  bucket_writer& output_;
};

/// The first step of the next one.
template <class T>
struct partition_read {
  static void make(task_context& context, std::string_view, std::string_view, erased_sink& erased) {
    auto& out = typed_sink<T>(erased);
    context.read_partition(0, [&](std::string_view bytes) {
      decoder in{bytes};
      while (!in.at_end()) {
        stop_if_cancelled(context);
        out.push(serializer<T>::read(in));
      }
    });
  }
};

} // namespace troupe::detail
