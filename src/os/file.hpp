// Files: opening, reading and writing at an offset, and operations of the file system on whole files. Returned numbers: os/error.hpp.
// Threads: any number of threads may read and write a File at once. While a call moves or closes a File, no other call may use it.
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

// Returns the path that a text in UTF-8 names.
[[nodiscard]] std::filesystem::path path_of(std::string_view text);

// Returns whether the system can use the path: it is not empty and has no zero character, at which the system would cut it.
[[nodiscard]] inline bool is_usable(const std::filesystem::path& path) {
  return !path.empty() && path.native().find(std::filesystem::path::value_type{}) == std::filesystem::path::string_type::npos;
}

// Opens a file or folder for reading. Never waits, not even for the writer of a pipe.
[[nodiscard]] int open_to_read(const std::filesystem::path& path, File& file);

// Makes a new file for writing. If the name exists already, even as a link, fails with a number for which says_exists() is true.
[[nodiscard]] int make_new(const std::filesystem::path& path, File& file);

// Makes a temporary file for reading and writing. No other user can open the file. It vanishes when it is closed or when the process ends,
// however it ends. Errors: those of make_new().
[[nodiscard]] int make_unnamed(const std::filesystem::path& path, File& file);

[[nodiscard]] int facts_of(const File& file, FileFacts& facts) noexcept;
[[nodiscard]] int facts_at(const std::filesystem::path& path, FileFacts& facts);

// Puts the names of a folder's entries into `names`: in UTF-8, in no particular order, without "." and "..". Stops after `most` names.
// (std::filesystem::directory_iterator is not used, because it terminates the process when memory runs out.)
[[nodiscard]] int names_in_folder(const std::filesystem::path& folder, std::size_t most, std::vector<std::string>& names);

// Reads bytes at `offset`, perhaps fewer than `out` has room for. Sets `got` to their number: at least 1; 0 means that the file ends at or
// before `offset`.
[[nodiscard]] int read_at(const File& file, std::span<std::byte> out, std::uint64_t offset, std::size_t& got) noexcept;

// Writes bytes at `offset`, perhaps fewer than `bytes` has. Sets `done` to their number.
[[nodiscard]] int write_at(const File& file, std::span<const std::byte> bytes, std::uint64_t offset, std::size_t& done) noexcept;

// Makes the file `bytes` bytes long and allocates these bytes on the disk, so that a later write cannot fail for lack of space.
[[nodiscard]] int take_room(const File& file, std::uint64_t bytes) noexcept;

// Waits until everything that was written to the file is on the disk.
[[nodiscard]] int sync(const File& file) noexcept;

// Renames a file that make_new() made and that is still open, from `from` to `to`. If `to` is a regular file, it is replaced, in one step:
// at every moment `to` is the whole old file or the whole new one.
[[nodiscard]] int replace(const File& file, const std::filesystem::path& from, const std::filesystem::path& to);

// Waits until the names in a folder are on the disk, if the file system can do that. Returns no error: if a name is lost in a crash, the
// contents of the other files are still complete.
void sync_folder(const std::filesystem::path& folder) noexcept;

void remove_file(const std::filesystem::path& path) noexcept;

// Returns a number that no other process of this machine has at present. It makes names of temporary files unique.
[[nodiscard]] std::uint64_t process_id() noexcept;

}  // namespace tessera::os
