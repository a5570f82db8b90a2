// Where a model's or a saved session's bytes come from: a file, a buffer, or whatever a host implements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include <tessera/core/result.hpp>

namespace tessera {

// Random access to immutable bytes. read() may be called from several threads at once.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  [[nodiscard]] virtual std::uint64_t size() const noexcept = 0;
  // Fills all of `out` from `offset`, or fails; reading past the end is an error.
  [[nodiscard]] virtual Status read(std::uint64_t offset, std::span<std::byte> out) noexcept = 0;
  // For error messages: a path, "buffer".
  [[nodiscard]] virtual std::string name() const = 0;
};

// Reads with pread; the file may be a symbolic link, but must be a regular file.
[[nodiscard]] Result<std::shared_ptr<ByteSource>> open_file(const std::filesystem::path& path) noexcept;

// A view: the caller keeps the bytes alive and unchanged.
[[nodiscard]] Result<std::shared_ptr<ByteSource>> memory_source(std::span<const std::byte> bytes,
                                                                std::string name = "buffer") noexcept;

}  // namespace tessera
