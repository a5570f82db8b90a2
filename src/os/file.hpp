// Files: opening, reading and writing at an offset, and operations of the file system on whole files. Errors: os/error.hpp. Any thread may
// read and write a File at any time. While a call moves or closes a File, no other call may use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "os/error.hpp"

namespace tessera::os {

// An open file. The destructor closes it.
class File {
 public:
  using Handle = std::intptr_t;  // a descriptor, or a HANDLE of Windows
  static constexpr Handle kNone = -1;

  explicit File(Handle handle = kNone) noexcept : handle_(handle) {}
  File(File&& other) noexcept : handle_(std::exchange(other.handle_, kNone)) {}
  File& operator=(File&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~File() { close(); }

  [[nodiscard]] Handle get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != kNone; }
  void close() noexcept;

 private:
  Handle handle_;
};

enum class FileKind : std::uint8_t { regular, folder, other };
struct FileFacts {
  FileKind kind = FileKind::other;
  std::uint64_t bytes = 0;
};

// Returns the path in UTF-8, for messages.
[[nodiscard]] std::string text_of(const std::filesystem::path& path);

// Returns the path of a text in UTF-8.
[[nodiscard]] std::filesystem::path path_of(std::string_view text);

// Returns whether the path is not empty and has no zero character. (The system would cut the path at such a character.)
[[nodiscard]] inline bool is_usable(const std::filesystem::path& path) {
  return !path.empty() && path.native().find(std::filesystem::path::value_type{}) == std::filesystem::path::string_type::npos;
}

// Opens a file or folder for reading. A pipe without a writer is opened too, without waiting.
[[nodiscard]] int open_to_read(const std::filesystem::path& path, File& file);

// Makes a new file for writing. Error: says_exists(), if the name exists already, even as a link.
[[nodiscard]] int make_new(const std::filesystem::path& path, File& file);

// Makes a temporary file for reading and writing. Other users cannot open it, and it vanishes when it is closed, however the process ends.
// Errors: those of make_new().
[[nodiscard]] int make_unnamed(const std::filesystem::path& path, File& file);

[[nodiscard]] int facts_of(const File& file, FileFacts& facts) noexcept;
[[nodiscard]] int facts_at(const std::filesystem::path& path, FileFacts& facts);

// Puts the names of a folder's entries into `names`, in UTF-8 and in no order, without "." and "..". Stops after `most` names. (A
// std::filesystem::directory_iterator terminates the process when memory runs out.)
[[nodiscard]] int names_in_folder(const std::filesystem::path& folder, std::size_t most, std::vector<std::string>& names);

// Reads some bytes at `offset`. Sets `got` to their number: at least 1, or 0 at the end of the file.
[[nodiscard]] int read_at(const File& file, std::span<std::byte> out, std::uint64_t offset, std::size_t& got) noexcept;

// Writes some of the bytes at `offset`. Sets `done` to their number.
[[nodiscard]] int write_at(const File& file, std::span<const std::byte> bytes, std::uint64_t offset, std::size_t& done) noexcept;

// Makes the file `bytes` bytes long, and allocates these bytes on the disk.
[[nodiscard]] int take_room(const File& file, std::uint64_t bytes) noexcept;

// Waits until all written data are on the disk.
[[nodiscard]] int sync(const File& file) noexcept;

// Renames an open file that make_new() made: from `from` to `to`. Replaces a regular file of that name. At every moment `to` is the old
// file or the new one.
[[nodiscard]] int replace(const File& file, const std::filesystem::path& from, const std::filesystem::path& to);

// Waits until the names in a folder are on the disk, if the file system can do that. Reports no failure, because the contents of the files
// are complete in any case.
void sync_folder(const std::filesystem::path& folder) noexcept;

void remove_file(const std::filesystem::path& path) noexcept;

// Returns a number that no other process of this machine has now, for names of temporary files.
[[nodiscard]] std::uint64_t process_id() noexcept;

}  // namespace tessera::os
