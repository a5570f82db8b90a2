// The text files of a folder: the files to index, and the files that are left out, each with the reason.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace rag {

struct FileLimits {
  std::uint64_t most_bytes = std::uint64_t{4} << 20;  // larger files are left out
};

// A file as the system lists it, before its content is read.
struct ListedFile {
  std::string path;  // relative to the folder, with "/", in UTF-8
  std::uint64_t size = 0;  // bytes
  std::int64_t changed = 0;  // time of the last change, in nanoseconds since the epoch of the file system's clock
};

struct SkippedFile {
  std::string path;
  std::string reason;  // "too large", ...
};

struct Listing {
  std::vector<ListedFile> files;  // in order of their paths
  std::vector<SkippedFile> skipped;
};

// Lists the files to index: those with an extension of texts or sources. Left out without mention: files with another extension (pictures,
// archives), hidden files and hidden folders. Symbolic links are not followed, because a link to a file of the folder would list the file
// twice. A link that leads out of the folder, or nowhere, is listed among the skipped files. Throws Failure if the folder cannot be read.
[[nodiscard]] Listing list_folder(const std::filesystem::path& folder, const FileLimits& limits);

// Reads a file. Returns false, and sets `reason`, if the content is not UTF-8 text or cannot be read.
[[nodiscard]] bool read_text(const std::filesystem::path& file, const FileLimits& limits, std::string& text, std::string& reason);

// Returns whether the bytes are well-formed UTF-8 without control characters that no text has.
[[nodiscard]] bool is_text(std::string_view bytes) noexcept;

}  // namespace rag
