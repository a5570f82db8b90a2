// A file descriptor that closes itself, and errors of the system as Errors.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "core/error.hpp"

namespace tessera::detail {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) noexcept : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() { close(); }

  [[nodiscard]] int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  // Closes the descriptor. Not repeated after EINTR, because on Linux the descriptor is closed by then.
  void close() noexcept {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

// Makes an Error of `number`, a value of errno. `doing` completes the sentence "cannot ...".
inline Error system_error_at(std::string place, const char* doing, int number) {
  const ErrorCode code = number == ENOENT || number == ENOTDIR ? ErrorCode::not_found
                         : number == ENOMEM                    ? ErrorCode::out_of_memory
                                                               : ErrorCode::io;
  return error_at(code, std::move(place), "cannot {}: {}", doing, std::generic_category().message(number));
}

}  // namespace tessera::detail
