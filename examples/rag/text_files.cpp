#include "text_files.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "failure.hpp"
#include "system/program.hpp"

namespace rag {

namespace fs = std::filesystem;
using tessera::tool::text_of;

namespace {

constexpr std::array<std::string_view, 48> kExtensions = {
    "adoc", "bash", "bib",  "c",    "cc",    "cfg", "cmake", "conf", "cpp", "cs",   "css", "csv",  "cu",   "cuh", "cxx",  "go",
    "h",    "hh",   "hpp",  "htm",  "html",  "ini", "java",  "js",   "json", "jsonl", "kt", "log",  "lua",  "md",  "markdown", "org",
    "php",  "pl",   "py",   "r",    "rb",    "rs",  "rst",   "scala", "sh",  "sql",  "swift", "tex", "toml", "ts",  "txt",  "yaml"};
constexpr std::array<std::string_view, 4> kMoreExtensions = {"yml", "xml", "text", "tsv"};
constexpr std::array<std::string_view, 6> kNames = {"README", "LICENSE", "Makefile", "Dockerfile", "CHANGELOG", "NEWS"};

bool is_one_of(std::string_view name, const auto& list) { return std::ranges::find(list, name) != list.end(); }

bool has_text_name(const fs::path& file) {
  std::string extension = text_of(file.extension());
  if (extension.empty()) return is_one_of(text_of(file.filename()), kNames);
  extension.erase(0, 1);
  for (char& c : extension) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return is_one_of(extension, kExtensions) || is_one_of(extension, kMoreExtensions);
}

bool is_within(const fs::path& file, const fs::path& folder) {
  const auto [end, rest] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  return end == folder.end();
}

// Returns the number of bytes of the well-formed UTF-8 character at the start, 0 if there is none (Unicode 15, table 3-7).
std::size_t character(std::string_view bytes) noexcept {
  const auto at = [bytes](std::size_t i) { return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0u; };
  const auto follows = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) { return at(i) >= low && at(i) <= high; };
  const unsigned first = at(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    return follows(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf) && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    return follows(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

bool is_text(std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const auto first = static_cast<unsigned char>(bytes[0]);
    if (first < 0x20 && first != '\n' && first != '\r' && first != '\t' && first != '\f' && first != 0x1b) return false;
    const std::size_t size = character(bytes);
    if (size == 0) return false;
    bytes.remove_prefix(size);
  }
  return true;
}

Listing list_folder(const fs::path& folder, const FileLimits& limits) {
  using tessera::ErrorCode;
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  if (error || !fs::is_directory(root)) {
    throw Failure(ErrorCode::not_found, fmt::format("{} is no folder that can be read: name the folder of your texts", text_of(folder)));
  }
  Listing listing;
  fs::recursive_directory_iterator at(root, fs::directory_options::skip_permission_denied, error);
  if (error) throw Failure(ErrorCode::io, fmt::format("{}: {}", text_of(root), error.message()));
  for (; at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (error) throw Failure(ErrorCode::io, fmt::format("{}: {}", text_of(root), error.message()));
    const fs::directory_entry& entry = *at;
    std::error_code ignored;
    if (text_of(entry.path().filename()).starts_with('.')) {
      if (entry.is_directory(ignored)) at.disable_recursion_pending();
      continue;
    }
    if (!has_text_name(entry.path()) || entry.is_directory(ignored)) continue;
    const std::string path = text_of(entry.path().lexically_relative(root));
    if (entry.is_symlink(ignored)) {
      const fs::path target = fs::canonical(entry.path(), ignored);
      if (ignored || !is_within(target, root)) listing.skipped.push_back({path, ignored ? "a link that leads nowhere" : "a link out of the folder"});
      continue;
    }
    if (!entry.is_regular_file(ignored)) continue;
    const std::uint64_t size = entry.file_size(ignored);
    const auto changed = ignored ? fs::file_time_type{} : entry.last_write_time(ignored);
    if (ignored) listing.skipped.push_back({path, ignored.message()});
    else if (size > limits.most_bytes) listing.skipped.push_back({path, fmt::format("larger than {} bytes (--largest)", limits.most_bytes)});
    else listing.files.push_back({path, size, std::chrono::duration_cast<std::chrono::nanoseconds>(changed.time_since_epoch()).count()});
  }
  if (error) throw Failure(ErrorCode::io, fmt::format("{}: {}", text_of(root), error.message()));
  std::ranges::sort(listing.files, {}, &ListedFile::path);
  std::ranges::sort(listing.skipped, {}, &SkippedFile::path);
  return listing;
}

bool read_text(const fs::path& file, const FileLimits& limits, std::string& text, std::string& reason) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    reason = "cannot be opened";
    return false;
  }
  // Reads up to one byte more than the limit, because the file may have grown since it was listed.
  text.resize(limits.most_bytes + 1);
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  text.shrink_to_fit();
  if (stream.bad()) reason = "cannot be read";
  else if (text.size() > limits.most_bytes) reason = fmt::format("larger than {} bytes (--largest)", limits.most_bytes);
  else if (!is_text(text)) reason = "no UTF-8 text";
  else {
    if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
    return true;
  }
  return false;
}

}  // namespace rag
