// take_room() and sync() of os/file.hpp on Linux.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "os/file.hpp"

namespace tessera::os {

int take_room(const File& file, std::uint64_t bytes) noexcept {
  int error = EINTR;
  while (error == EINTR) error = ::posix_fallocate(static_cast<int>(file.get()), 0, static_cast<::off_t>(bytes));
  return error;
}

int sync(const File& file) noexcept { return ::fsync(static_cast<int>(file.get())) == 0 ? 0 : errno; }

}  // namespace tessera::os
