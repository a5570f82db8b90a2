#include "models/file_state.hpp"

#include <algorithm>
#include <regex>
#include <system_error>

#include "system/program.hpp"

namespace server {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 4096;

void add(FileState& state, const fs::path& file, const fs::path& folder) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  if (error) return;
  const auto changed = fs::last_write_time(file, error);
  if (error) return;
  state.files.push_back({.name = tessera::tool::text_of(file.lexically_relative(folder)), .size = size,
                         .changed = static_cast<std::int64_t>(changed.time_since_epoch().count())});
}

// Adds the files of a folder for which `is_part(path)` returns true. Ends the list early if the folder cannot be read further.
template <class Iterator, class IsPart>
void add_all(FileState& state, const fs::path& folder, IsPart is_part) {
  std::error_code error;
  for (Iterator each(folder, fs::directory_options::skip_permission_denied, error), end; !error && each != end; each.increment(error)) {
    if (state.files.size() >= kMostFiles) return;
    std::error_code ignored;
    if (fs::is_regular_file(each->path(), ignored) && is_part(each->path())) add(state, each->path(), folder);
  }
}

}  // namespace

FileState file_state(const fs::path& model) {
  FileState state;
  if (model.empty()) return state;
  std::error_code error;
  static const std::regex part("^(.*)-[0-9]{5}-of-[0-9]{5}$");
  const std::string stem = tessera::tool::text_of(model.stem());
  std::smatch found;
  if (fs::is_directory(model, error)) {
    add_all<fs::recursive_directory_iterator>(state, model, [](const fs::path&) { return true; });
  } else if (std::regex_match(stem, found, part)) {
    const std::string name = found[1];
    add_all<fs::directory_iterator>(state, model.has_parent_path() ? model.parent_path() : fs::path("."), [&](const fs::path& file) {
      const std::string other = tessera::tool::text_of(file.stem());
      std::smatch same;
      return std::regex_match(other, same, part) && same[1] == name;
    });
  } else {
    add(state, model, model.parent_path());
  }
  std::ranges::sort(state.files);
  return state;
}

}  // namespace server
