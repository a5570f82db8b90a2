// A source for the bytes of a model or of a saved session: a file, a buffer, or an object of the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include <tessera/core/result.hpp>

namespace tessera {

// Random access to immutable bytes. Threads: read() may be called from several at once.
//
//   auto file = open_file("model.gguf");
//   std::array<std::byte, 4> magic{};
//   if (file && (*file)->read(0, magic)) std::fwrite(magic.data(), 1, magic.size(), stdout);
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  [[nodiscard]] virtual std::uint64_t size() const noexcept = 0;
  // Fills all of `out` with the bytes from `offset` on. Errors: io, a byte cannot be read or lies beyond the end.
  [[nodiscard]] virtual Status read(std::uint64_t offset, std::span<std::byte> out) noexcept = 0;
  // Returns the source's name for error messages: a path, or "buffer".
  [[nodiscard]] virtual std::string name() const = 0;
};

// Opens a regular file, or a symbolic link to a regular file. read() uses pread.
[[nodiscard]] Result<std::shared_ptr<ByteSource>> open_file(const std::filesystem::path& path) noexcept;

// Makes a source that reads the caller's bytes without a copy. The caller keeps the bytes alive and unchanged.
[[nodiscard]] Result<std::shared_ptr<ByteSource>> memory_source(std::span<const std::byte> bytes,
                                                                std::string name = "buffer") noexcept;

}  // namespace tessera
