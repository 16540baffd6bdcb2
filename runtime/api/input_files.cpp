#include <troupe/runtime/api/input_files.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <sys/stat.h>

#include <troupe/runtime/api/serialize.hpp>
#include <troupe/runtime/config/path_search.hpp>
#include <troupe/runtime/config/path_text.hpp>

namespace troupe {

namespace {

using file_identity = std::pair<dev_t, ino_t>;

struct found_file {
  input_file file;
  bool link = false;
};

/// Files under their identity, so that a link to one that is known adds nothing.
class file_collection {
public:
  result<void> add_pattern(const std::string& pattern) {
    if (pattern.empty()) return make_error(ec::invalid_argument, "an input file has no name");
    // A name that exists is that file, whatever it looks like: as a shell hands over what it has found by `*`.
    struct stat there {};
    const bool wildcard = pattern.find_first_of("*?[") != std::string::npos && lstat(pattern.c_str(), &there) != 0;
    if (!wildcard) {
      const auto path = absolute(pattern);
      return path ? add_named(*path) : path.error();
    }

    const auto paths = matching_paths(pattern);
    if (!paths) return paths.error();
    bool any = false;
    for (const auto& found : *paths) {
      const auto path = absolute(found);
      if (!path) return path.error();
      const auto added = add_if_regular(*path);
      if (!added) return added.error();
      any = *added || any;
    }
    if (!any) return make_error(ec::not_found, "no file matches '" + pattern + "'");
    return {};
  }

  std::vector<input_file> take() {
    std::vector<input_file> files;
    files.reserve(files_.size());
    for (auto& [identity, found] : files_) files.push_back(std::move(found.file));
    std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
    return files;
  }

private:
  /// As it is: what '..' behind a link means is for the system to say.
  static result<std::string> absolute(const std::string& path) {
    std::error_code code;
    auto whole = std::filesystem::absolute(path, code).string();
    if (code) return make_error(ec::io, "cannot find '" + path + "': " + code.message());
    return whole;
  }

  result<void> add_named(const std::string& path) {
    const auto added = add_if_regular(path);
    if (!added) return added.error();
    if (*added) return {};
    if (std::error_code ignored; std::filesystem::is_directory(path, ignored))
      return make_error(ec::invalid_argument, "'" + path + "' is a directory; write '" + path + "/*' for its files");
    return make_error(ec::invalid_argument, "'" + path + "' is no regular file");
  }

  /// @returns whether it is a file
  result<bool> add_if_regular(const std::string& path) {
    struct stat target {};
    struct stat itself {};
    if (lstat(path.c_str(), &itself) != 0 || stat(path.c_str(), &target) != 0) {
      const int why = errno;
      if (why == ENOENT && lstat(path.c_str(), &itself) != 0)
        return make_error(ec::not_found,
                          "there is no file '" + path + "'" +
                              (has_part_for_a_shell(path) ? "; ~ and $ are for a shell to expand: give the path" : ""));
      return make_error(why == ENOENT ? ec::not_found : ec::io,
                        "cannot look at '" + path +
                            "': " + (why == ENOENT ? "it is a link to what is not there" : std::strerror(why)));
    }
    if (!S_ISREG(target.st_mode)) return false;
    found_file found{{path, static_cast<std::uint64_t>(target.st_size)}, S_ISLNK(itself.st_mode)};
    const auto [known, added] = files_.try_emplace(file_identity{target.st_dev, target.st_ino}, found);
    const auto order = [](const found_file& f) { return std::pair{f.link, std::string_view{f.file.path}}; };
    if (!added && order(found) < order(known->second)) known->second = std::move(found);
    return true;
  }

  std::map<file_identity, found_file> files_;
};

} // namespace

result<std::vector<input_file>> find_input_files(const std::vector<std::string>& patterns) {
  file_collection files;
  for (const auto& pattern : patterns)
    if (const auto added = files.add_pattern(pattern); !added) return added.error();
  auto found = files.take();
  if (found.empty()) return make_error(ec::invalid_argument, "no input files were named");
  return found;
}

namespace detail {

namespace {

/// Where part `i` of `parts` begins.
std::uint64_t share_of(std::uint64_t bytes, std::uint64_t i, std::uint64_t parts) {
  return bytes / parts * i + bytes % parts * i / parts;
}

} // namespace

std::shared_ptr<const packed_column> group_files(const std::vector<input_file>& files, std::uint32_t partitions) {
  const auto most = static_cast<std::uint32_t>(std::min<std::size_t>(files.size(), max_tasks_per_stage));
  const auto groups = partitions == 0 ? most : std::min(partitions, most);
  std::uint64_t left = 0; // every file weighs a byte more than it has, so that empty ones count too
  for (const auto& file : files) left += file.bytes + 1;

  auto column = std::make_shared<packed_column>();
  std::size_t next = 0;
  for (std::uint32_t group = 0; group < groups; ++group) {
    const std::uint64_t fair = left / (groups - group);
    const std::size_t last = files.size() - (groups - group - 1); // leave one file for each later group
    std::vector<file_range> ranges;
    std::uint64_t taken = 0;
    do {
      taken += files[next].bytes + 1;
      ranges.push_back({files[next].path, 0, files[next].bytes, files[next].bytes});
      ++next;
    } while (next < last && (group + 1 == groups || 2 * taken + files[next].bytes + 1 <= 2 * fair));
    left -= taken;
    column->push_back(encode_value(ranges));
  }
  return column;
}

std::shared_ptr<const packed_column> cut_files(const std::vector<input_file>& files, std::uint32_t partitions,
                                               const cutting& how) {
  std::uint64_t left = 0;
  for (const auto& file : files) left += file.bytes;
  auto column = std::make_shared<packed_column>();
  if (partitions == 0) {
    // Large ones in equal pieces, so that all who could work have something to do.
    auto most =
        std::max<std::uint64_t>(1, std::min(how.most, std::max(how.least, left / std::max(1u, how.parallelism))));
    most = std::max(most, left / how.most_partitions * 2);
    if (files.size() <= how.most_partitions / 2) {
      for (const auto& file : files) {
        const auto pieces = std::max<std::uint64_t>(1, (file.bytes + most - 1) / most);
        for (std::uint64_t i = 0; i < pieces; ++i)
          column->push_back(encode_value(std::vector<file_range>{
              {file.path, share_of(file.bytes, i, pieces), share_of(file.bytes, i + 1, pieces), file.bytes}}));
      }
      return column;
    }
    partitions = how.most_partitions / 2;
  }
  // So many runs of equally many bytes, over the ends of files.
  const auto runs = std::clamp<std::uint64_t>(left, 1, std::min(partitions, how.most_partitions));
  std::size_t next = 0;
  std::uint64_t begin = 0; // within that file
  const auto total = left;
  for (std::uint64_t i = 0; i < runs; ++i) {
    auto wanted = share_of(total, i + 1, runs) - share_of(total, i, runs);
    std::vector<file_range> ranges;
    while (wanted > 0) {
      const auto& file = files[next];
      const auto taken = std::min(wanted, file.bytes - begin);
      if (taken > 0) ranges.push_back({file.path, begin, begin + taken, file.bytes});
      wanted -= taken;
      begin += taken;
      if (begin < file.bytes) continue;
      ++next;
      begin = 0;
    }
    column->push_back(encode_value(ranges));
  }
  return column;
}

} // namespace detail

} // namespace troupe
