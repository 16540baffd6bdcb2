#include <troupe/messages/wire.hpp>

namespace troupe::wire {

namespace {

const std::string empty_text;

} // namespace

void place::fail(std::string_view why) const {
  if (!ok()) return;
  const place* message = this;
  while (message->outer_) message = message->outer_;
  const auto field = path();
  first_->code = code_;
  first_->message = code_ == ec::malformed ? "malformed " : "cannot encode ";
  first_->message += message->name_;
  first_->message += ": ";
  if (!field.empty()) first_->message += field + " ";
  first_->message += why;
}

const std::string& place::text(std::string_view field, const std::string& value, std::size_t limit) const {
  if (value.size() <= limit) return value;
  fail(field, "has " + std::to_string(value.size()) + " bytes, at most " + std::to_string(limit) + " are allowed");
  return empty_text;
}

const std::string& place::exactly(std::string_view field, const std::string& value, std::size_t size) const {
  if (value.size() == size) return value;
  fail(field, "has " + std::to_string(value.size()) + " bytes, must have " + std::to_string(size));
  return empty_text;
}

std::string place::path() const {
  if (!outer_) return {};
  auto text = outer_->path();
  if (!text.empty()) text += '.';
  text += name_;
  if (index_ != no_index) text += '[' + std::to_string(index_) + ']';
  return text;
}

} // namespace troupe::wire
