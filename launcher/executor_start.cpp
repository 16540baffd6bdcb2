#include <troupe/launcher/executor_start.hpp>

#include <filesystem>
#include <sstream>

#include <troupe/messages/codec.hpp>

namespace troupe {
namespace {

std::string hex(std::string_view bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char c : bytes) {
    out += digits[c >> 4];
    out += digits[c & 15];
  }
  return out;
}

result<std::string> unhex(std::string_view text) {
  const auto value = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  std::string out;
  if (text.size() % 2 != 0) return make_error(ec::malformed, "odd number of hexadecimal digits");
  for (std::size_t i = 0; i < text.size(); i += 2) {
    if (value(text[i]) < 0 || value(text[i + 1]) < 0) return make_error(ec::malformed, "not a hexadecimal digit");
    out += static_cast<char>(value(text[i]) * 16 + value(text[i + 1]));
  }
  return out;
}

/// The lines that say what the process may take, each behind a newline.
std::string limits_text(const executor_start& start) {
  std::string out;
  for (const auto& part : start.limits.group.parts()) {
    out += "\ngroup " + std::to_string(part.version);
    for (const auto controller : part.controllers) out += " " + std::string{to_string(controller)};
    out += " " + part.directory;
  }
  if (start.limits.memory > 0) out += "\nmemory-limit " + std::to_string(start.limits.memory);
  if (start.shuffle_service) out += "\nshuffle-service 1";
  if (start.command_processes > 0) out += "\ncommand-processes " + std::to_string(start.command_processes);
  if (!start.limits.cpus.empty()) out += "\ncpus";
  for (const auto cpu : start.limits.cpus) out += " " + std::to_string(cpu);
  return out;
}

/// Reads one of them. @returns false where it is none of them
result<bool> read_limit(const std::string& key, const std::string& value, executor_start& out) {
  std::istringstream in{value};
  if (key == "memory-limit") {
    in >> out.limits.memory;
  } else if (key == "command-processes") {
    in >> out.command_processes;
  } else if (key == "shuffle-service") {
    in >> out.shuffle_service;
  } else if (key == "cpus") {
    for (int cpu = 0; in >> cpu;) out.limits.cpus.push_back(cpu);
    return true;
  } else if (key == "group") {
    cgroup_part part;
    in >> part.version;
    std::string word;
    for (in >> std::ws; in && in.peek() != '/' && in >> word; in >> std::ws)
      for (const auto controller : {cgroup_controller::memory, cgroup_controller::cpu, cgroup_controller::pids})
        if (word == to_string(controller)) part.controllers.push_back(controller);
    std::getline(in, part.directory);
    auto parts = out.limits.group.parts();
    parts.push_back(std::move(part));
    out.limits.group = cgroup{std::move(parts)};
  } else {
    return false;
  }
  if (!in) return make_error(ec::malformed, "entry " + key + " is malformed");
  return true;
}

} // namespace

result<std::string> encode_executor_start(const executor_start& start, const settings& s) {
  auto info = encode(start.info);
  if (!info) return info.error();
  std::string storage;
  std::vector<const std::string*> texts{&start.cluster_id, &start.secret_file, &start.run_directory};
  for (const auto& local : start.local_directories) texts.push_back(&local);
  for (const auto* text : texts)
    if (text->find('\n') != std::string::npos)
      return make_error(ec::invalid_configuration, "an executor cannot be told of " + *text + ": it has a line break");
  for (const auto& local : start.local_directories) storage += "\nstorage " + local;
  return "driver " + to_string(start.driver) + "\ncluster " + start.cluster_id + "\nsecret " + start.secret_file +
         "\ndirectory " + start.run_directory + storage + "\ninfo " + hex(*info) + limits_text(start) + "\nsettings\n" +
         s.to_yaml();
}

result<executor_document> decode_executor_start(std::string_view text) {
  std::istringstream file{std::string{text}};
  executor_document out;
  const std::string what = "start of the executor";
  if (text.empty())
    return make_error(ec::malformed, what + ": it did not arrive; was the program started by way of another one that "
                                            "closes descriptors?");
  std::string key;
  while (file >> key && key != "settings") {
    std::string value;
    file.get();
    std::getline(file, value);
    if (key == "driver") {
      auto parsed = parse_endpoint(value);
      if (!parsed) return parsed.error();
      out.start.driver = *parsed;
    } else if (key == "cluster") {
      out.start.cluster_id = value;
    } else if (key == "secret") {
      out.start.secret_file = value;
    } else if (key == "directory") {
      out.start.run_directory = value;
    } else if (key == "storage") {
      out.start.local_directories.push_back(value);
    } else if (auto taken = read_limit(key, value, out.start); !taken) {
      return make_error(ec::malformed, what + ": " + taken.error().message);
    } else if (*taken) {
      continue;
    } else if (key == "info") {
      auto bytes = unhex(value);
      if (!bytes) return bytes.error();
      auto info = decode<executor_info>(*bytes);
      if (!info) return info.error();
      out.start.info = std::move(*info);
    } else {
      return make_error(ec::malformed, what + ": unknown entry " + key);
    }
  }
  std::ostringstream rest;
  rest << file.rdbuf();
  auto document = parse_yaml(rest.str(), what);
  if (!document) return document.error();
  std::error_code unknown; // of a folder that is gone; what is settled here has absolute paths
  settings_builder builder{std::filesystem::current_path(unknown).string(), expand_nothing()};
  if (auto added = builder.add_file(*document); !added) return added.error();
  auto built = builder.build();
  if (!built) return built.error();
  out.effective = std::move(*built);
  return out;
}

} // namespace troupe
