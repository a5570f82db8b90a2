#include <tessera/extend/files/byte_source.hpp>

#include <cstring>

#include "core/error.hpp"
#include "os/file.hpp"

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
  FileSource(os::File file, std::uint64_t size, std::string name) noexcept
      : file_(std::move(file)), size_(size), name_(std::move(name)) {}

  std::uint64_t size() const noexcept override { return size_; }
  std::string name() const override { return name_; }

  Status read(std::uint64_t offset, std::span<std::byte> out) noexcept override {
    return detail::guard([&]() -> Status {
      TESSERA_TRY_STATUS(check_range(size_, offset, out.size(), *this));
      while (!out.empty()) {
        std::size_t got = 0;
        if (const int error = os::read_at(file_, out, offset, got); error != 0) {
          return os::system_error_at(place(offset), "read the file", error);
        }
        if (got == 0) {
          return detail::error_at(ErrorCode::io, place(offset), "the file became shorter while it was being read");
        }
        offset += got;
        out = out.subspan(got);
      }
      return {};
    });
  }

 private:
  std::string place(std::uint64_t offset) const { return fmt::format("{}: offset {}", name_, offset); }

  os::File file_;
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
    if (!os::is_usable(path)) {
      return Error(ErrorCode::invalid_argument, "a path must not be empty and must not hold a zero byte", "path");
    }
    const std::string name = os::text_of(path);
    os::File file;
    if (const int error = os::open_to_read(path, file); error != 0) return os::system_error_at(name, "open the file", error);
    os::FileFacts facts;
    if (const int error = os::facts_of(file, facts); error != 0) return os::system_error_at(name, "examine the file", error);
    if (facts.kind == os::FileKind::folder) {
      return Error(ErrorCode::invalid_argument, "is a directory: give a file", name);
    }
    if (facts.kind != os::FileKind::regular) {
      return Error(ErrorCode::invalid_argument,
                   "is no regular file, and a model or a session is read in any order: copy the bytes to a file", name);
    }
    return std::shared_ptr<ByteSource>(std::make_shared<FileSource>(std::move(file), facts.bytes, name));
  });
}

Result<std::shared_ptr<ByteSource>> memory_source(std::span<const std::byte> bytes, std::string name) noexcept {
  return detail::guard([&]() -> Result<std::shared_ptr<ByteSource>> {
    return std::shared_ptr<ByteSource>(std::make_shared<MemorySource>(bytes, std::move(name)));
  });
}

}  // namespace tessera
