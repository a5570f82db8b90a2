// Takes room on the disk for a file, and writes a file to the disk, by calls of macOS.
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
    room.fst_flags = F_ALLOCATEALL;  // in several pieces, but all of them
    // A file system without preallocation, as those of networks, gives the room when it is written.
    if (::fcntl(fd, F_PREALLOCATE, &room) != 0 && errno != ENOTSUP && errno != EINVAL) return errno;
  }
  return ::ftruncate(fd, length) == 0 ? 0 : errno;
}

int sync(const File& file) noexcept {
  const int fd = static_cast<int>(file.get());
  // fsync() leaves the bytes in the drive's cache, F_FULLFSYNC does not; some file systems have only the first.
  return ::fcntl(fd, F_FULLFSYNC) == 0 || ::fsync(fd) == 0 ? 0 : errno;
}

}  // namespace tessera::os
