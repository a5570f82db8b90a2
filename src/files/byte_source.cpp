#include <tessera/extend/files/byte_source.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "os/posix_file.hpp"

namespace tessera {
namespace {

// Checks that [offset, offset + bytes) lies within the source.
Status check_range(std::uint64_t size, std::uint64_t offset, std::size_t bytes, const ByteSource& source) {
  if (offset <= size && bytes <= size - offset) return {};
  return detail::error_at(ErrorCode::io, source.name(), "cannot read {} bytes at offset {}: the end is at {}", bytes,
                          offset, size);
}

class FileSource final : public ByteSource {
 public:
  FileSource(detail::FileDescriptor fd, std::uint64_t size, std::string name) noexcept
      : fd_(std::move(fd)), size_(size), name_(std::move(name)) {}

  std::uint64_t size() const noexcept override { return size_; }
  std::string name() const override { return name_; }

  Status read(std::uint64_t offset, std::span<std::byte> out) noexcept override {
    return detail::guard([&]() -> Status {
      TESSERA_TRY_STATUS(check_range(size_, offset, out.size(), *this));
      while (!out.empty()) {
        // Linux moves at most 2 GiB a call; smaller steps cost nothing.
        const std::size_t step = std::min(out.size(), std::size_t{1} << 30);
        const ::ssize_t got = ::pread(fd_.get(), out.data(), step, static_cast<::off_t>(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return detail::system_error_at(place(offset), "read the file", errno);
        if (got == 0) {
          return detail::error_at(ErrorCode::io, place(offset), "the file became shorter while it was being read");
        }
        offset += static_cast<std::uint64_t>(got);
        out = out.subspan(static_cast<std::size_t>(got));
      }
      return {};
    });
  }

 private:
  std::string place(std::uint64_t offset) const { return fmt::format("{}: offset {}", name_, offset); }

  detail::FileDescriptor fd_;
  std::uint64_t size_;
  std::string name_;
};

class MemorySource final : public ByteSource {
 public:
  MemorySource(std::span<const std::byte> bytes, std::string name) noexcept : bytes_(bytes), name_(std::move(name)) {}

  std::uint64_t size() const noexcept override { return bytes_.size(); }
  std::string name() const override { return name_; }

  Status read(std::uint64_t offset, std::span<std::byte> out) noexcept override {
    return detail::guard([&]() -> Status {
      TESSERA_TRY_STATUS(check_range(bytes_.size(), offset, out.size(), *this));
      if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
      return {};
    });
  }

 private:
  std::span<const std::byte> bytes_;
  std::string name_;
};

}  // namespace

Result<std::shared_ptr<ByteSource>> open_file(const std::filesystem::path& path) noexcept {
  return detail::guard([&]() -> Result<std::shared_ptr<ByteSource>> {
    const std::string& name = path.native();
    if (name.empty() || name.find('\0') != std::string::npos) {
      return Error(ErrorCode::invalid_argument, "a path must not be empty and must not hold a zero byte", "path");
    }
    // O_NONBLOCK: opening a pipe without a writer must not wait. It changes nothing for regular files.
    int fd = -1;
    do {
      fd = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) return detail::system_error_at(name, "open the file", errno);
    detail::FileDescriptor file(fd);
    struct ::stat status {};
    if (::fstat(fd, &status) != 0) return detail::system_error_at(name, "examine the file", errno);
    if (S_ISDIR(status.st_mode)) {
      return Error(ErrorCode::invalid_argument, "is a directory: give a file", name);
    }
    if (!S_ISREG(status.st_mode) || status.st_size < 0) {
      return Error(ErrorCode::invalid_argument,
                   "is no regular file, and a model or a session is read in any order: copy the bytes to a file", name);
    }
    return std::shared_ptr<ByteSource>(
        std::make_shared<FileSource>(std::move(file), static_cast<std::uint64_t>(status.st_size), name));
  });
}

Result<std::shared_ptr<ByteSource>> memory_source(std::span<const std::byte> bytes, std::string name) noexcept {
  return detail::guard([&]() -> Result<std::shared_ptr<ByteSource>> {
    return std::shared_ptr<ByteSource>(std::make_shared<MemorySource>(bytes, std::move(name)));
  });
}

}  // namespace tessera
