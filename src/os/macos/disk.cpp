// take_room() and sync() of os/file.hpp on macOS.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "os/file.hpp"

namespace tessera::os {

int take_room(const File& file, std::uint64_t bytes) noexcept {
  const int fd = static_cast<int>(file.get());
  const auto length = static_cast<::off_t>(bytes);
  ::fstore_t room{.fst_flags = F_ALLOCATECONTIG, .fst_posmode = F_PEOFPOSMODE, .fst_offset = 0, .fst_length = length, .fst_bytesalloc = 0};
  if (::fcntl(fd, F_PREALLOCATE, &room) != 0) {
    room.fst_flags = F_ALLOCATEALL;  // all bytes, perhaps in several pieces
    // Some file systems cannot preallocate (those of networks, for example). They allocate the space when the file is written, so this is
    // no error.
    if (::fcntl(fd, F_PREALLOCATE, &room) != 0 && errno != ENOTSUP && errno != EINVAL) return errno;
  }
  return ::ftruncate(fd, length) == 0 ? 0 : errno;
}

int sync(const File& file) noexcept {
  const int fd = static_cast<int>(file.get());
  // Tries F_FULLFSYNC first, because fsync() leaves the bytes in the drive's cache. Some file systems support only fsync().
  return ::fcntl(fd, F_FULLFSYNC) == 0 || ::fsync(fd) == 0 ? 0 : errno;
}

}  // namespace tessera::os
