#include <troupe/runtime/execution/native_plan.hpp>

#include <troupe/runtime/execution/task_context.hpp>

namespace troupe {

namespace {

error bad_program(std::string why) { return make_error(ec::malformed, "native program: " + std::move(why)); }

} // namespace

result<native_plan> native_plan::make(const native_program& program, const function_table& table) {
  const auto& operations = program.operations;
  if (operations.empty()) return bad_program("it has no operations");
  native_plan plan;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const auto& op = operations[i];
    const auto* const function = table.find(op.function);
    if (!function)
      return bad_program("operation " + std::to_string(i) + " names function " + std::to_string(op.function) +
                         "; the table of this executable has " + std::to_string(table.size()) +
                         " entries; start executors from the program that submits the job");
    const bool first = i == 0;
    const bool last = i + 1 == operations.size();
    if (const auto* whole = std::get_if<task_function>(function); whole && first && last) {
      plan.whole_ = *whole;
      plan.head_captures_ = op.arguments;
    } else if (const auto* source = std::get_if<source_function>(function); source && first && !last) {
      plan.source_ = *source;
      plan.head_captures_ = op.arguments;
    } else if (const auto* narrow = std::get_if<narrow_function>(function); narrow && !first && !last) {
      plan.narrow_.push_back({*narrow, op.arguments});
    } else if (const auto* terminal = std::get_if<terminal_function>(function); terminal && !first && last) {
      plan.terminal_ = *terminal;
      plan.terminal_captures_ = op.arguments;
    } else {
      return bad_program("operation " + std::to_string(i) + " of " + std::to_string(operations.size()) +
                         " is of the wrong kind for its place");
    }
  }
  return plan;
}

std::string native_plan::run(task_context& context, std::string_view argument) const {
  if (whole_) return whole_(context, head_captures_, argument);
  const auto end = terminal_(context, terminal_captures_);
  // Made from the end backwards, since each sink passes on to the next; destroyed in the opposite order.
  std::vector<std::unique_ptr<erased_sink>> chain;
  chain.reserve(narrow_.size());
  erased_sink* head = end.get();
  for (auto step = narrow_.rbegin(); step != narrow_.rend(); ++step) {
    chain.push_back(step->make(context, step->captures, *head));
    head = chain.back().get();
  }
  source_(context, head_captures_, argument, *head);
  head->finish();
  return end->take_result();
}

} // namespace troupe
