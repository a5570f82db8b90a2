// os/file.hpp on POSIX systems.
#include "os/file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace tessera::os {
namespace {

constexpr std::size_t kMost = std::size_t{1} << 30;  // Linux moves at most 2 GiB a call, macOS refuses more. Smaller calls cost nothing

int descriptor_of(const File& file) noexcept { return static_cast<int>(file.get()); }

int open_file(const std::filesystem::path& path, int flags, ::mode_t mode, File& file) noexcept {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY, mode);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return errno;
  file = File(fd);
  return 0;
}

FileFacts facts_from(const struct ::stat& status) noexcept {
  if (S_ISDIR(status.st_mode)) return {.kind = FileKind::folder};
  if (!S_ISREG(status.st_mode) || status.st_size < 0) return {.kind = FileKind::other};
  return {.kind = FileKind::regular, .bytes = static_cast<std::uint64_t>(status.st_size)};
}

}  // namespace

void File::close() noexcept {
  // close() is not repeated after EINTR, because on Linux the descriptor is closed by then.
  if (handle_ != kNone) ::close(static_cast<int>(std::exchange(handle_, kNone)));
}

std::string text_of(const std::filesystem::path& path) { return path.native(); }

std::filesystem::path path_of(std::string_view text) { return text; }

int open_to_read(const std::filesystem::path& path, File& file) {
  return open_file(path, O_RDONLY | O_NONBLOCK, 0, file);  // O_NONBLOCK changes nothing for regular files
}

int make_new(const std::filesystem::path& path, File& file) {
  // O_EXCL: opens no file that exists, because that might be another user's file or a planted link. 0666: the usual rights of a new file;
  // the system removes those in the umask.
  return open_file(path, O_WRONLY | O_CREAT | O_EXCL, 0666, file);
}

int make_unnamed(const std::filesystem::path& path, File& file) {
  if (const int error = open_file(path, O_RDWR | O_CREAT | O_EXCL, 0600, file); error != 0) return error;
  ::unlink(path.c_str());
  return 0;
}

int facts_of(const File& file, FileFacts& facts) noexcept {
  struct ::stat status {};
  if (::fstat(descriptor_of(file), &status) != 0) return errno;
  facts = facts_from(status);
  return 0;
}

int facts_at(const std::filesystem::path& path, FileFacts& facts) {
  struct ::stat status {};
  if (::stat(path.c_str(), &status) != 0) return errno;
  facts = facts_from(status);
  return 0;
}

int names_in_folder(const std::filesystem::path& folder, std::size_t most, std::vector<std::string>& names) {
  struct Close {
    void operator()(::DIR* open) const noexcept { ::closedir(open); }
  };
  const std::unique_ptr<::DIR, Close> open(::opendir(folder.c_str()));
  if (open == nullptr) return errno;
  while (names.size() < most) {
    errno = 0;
    const struct ::dirent* const entry = ::readdir(open.get());
    if (entry == nullptr) return errno;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return 0;
}

int read_at(const File& file, std::span<std::byte> out, std::uint64_t offset, std::size_t& got) noexcept {
  ::ssize_t n = 0;
  do {
    n = ::pread(descriptor_of(file), out.data(), std::min(out.size(), kMost), static_cast<::off_t>(offset));
  } while (n < 0 && errno == EINTR);
  if (n < 0) return errno;
  got = static_cast<std::size_t>(n);
  return 0;
}

int write_at(const File& file, std::span<const std::byte> bytes, std::uint64_t offset, std::size_t& done) noexcept {
  ::ssize_t n = 0;
  do {
    n = ::pwrite(descriptor_of(file), bytes.data(), std::min(bytes.size(), kMost), static_cast<::off_t>(offset));
  } while (n < 0 && errno == EINTR);
  if (n < 0) return errno;
  done = static_cast<std::size_t>(n);
  return 0;
}

int replace(const File&, const std::filesystem::path& from, const std::filesystem::path& to) {
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

void sync_folder(const std::filesystem::path& folder) noexcept {
  File file;
  if (open_file(folder, O_RDONLY | O_DIRECTORY, 0, file) == 0) (void)sync(file);
}

void remove_file(const std::filesystem::path& path) noexcept { ::unlink(path.c_str()); }

std::uint64_t process_id() noexcept { return static_cast<std::uint64_t>(::getpid()); }

}  // namespace tessera::os
