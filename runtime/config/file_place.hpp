#pragma once

/// Which place of the file system a path names, so that two spellings of one place are told from two places: links,
/// `..`, folders that are mounted twice, and names that differ by case where their folder makes no difference.
///
/// A place is an entry of a folder, which is what a rename replaces: a link and the file behind it are two places, and
/// who reads a file through a link passes both. What does not exist yet has a place, too.

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace troupe {

/// Whether an existing folder holds names that differ by case as one.
using case_folding = std::function<bool(const std::string& folder)>;

/// Asks the file system, and reads the folder where that is not enough.
bool folds_case(const std::string& folder);

/// Remembers what it has seen of folders, so it is for one look at files that nobody changes meanwhile. One thread.
class file_places {
public:
  explicit file_places(case_folding folds = folds_case) : folds_(std::move(folds)) {}

  /// The place that the absolute `path` itself names; a link there is not followed. Texts are equal where places are.
  std::string place(const std::string& path);
  /// All places on the way to the file behind `path`, in order: folders, links, and the file itself as the last one.
  std::vector<std::string> way(const std::string& path);
  /// The part of `way` that the paths of one folder share: to the folder of `path`.
  const std::vector<std::string>& way_to_folder(const std::string& path);
  /// The rest of it: the place of `path`, and where it leads if it is a link.
  std::vector<std::string> way_from_folder(const std::string& path);
  /// Equal for paths whose folders are one.
  const std::string& folder(const std::string& path);

private:
  /// A folder on the way.
  struct position {
    std::string path; ///< without links where it exists
    std::string key;
    bool exists = false;
    bool folds = false;
  };
  struct route {
    position end;
    std::vector<std::string> passed;
  };

  position at_existing(const std::string& path);
  position parent_of(const position& at);
  std::string entry(const position& at, const std::string& name) const;
  /// Goes on from the end of `so_far`.
  void walk(route& so_far, std::string_view path);
  const route& route_to_folder(const std::string& path);

  case_folding folds_;
  std::unordered_map<std::string, bool> folding_; ///< of existing folders, by path
  std::unordered_map<std::string, route> folders_;
};

} // namespace troupe
