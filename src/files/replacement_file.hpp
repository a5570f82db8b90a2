// A file that appears complete or not at all: the data are written under a temporary name in the same folder and synced; then the file is
// renamed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "os/file.hpp"

namespace tessera::detail {

class ReplacementFile {
 public:
  ReplacementFile() noexcept = default;  // no file
  [[nodiscard]] static Result<ReplacementFile> create(const std::filesystem::path& path);
  ReplacementFile(ReplacementFile&&) noexcept = default;
  ReplacementFile& operator=(ReplacementFile&&) = delete;
  ~ReplacementFile();  // removes the temporary unless commit() succeeded

  Status write(std::span<const std::byte> bytes);
  Status commit();

 private:
  ReplacementFile(os::File file, std::filesystem::path temporary, std::filesystem::path path,
                  std::unique_ptr<std::byte[]> buffer) noexcept
      : file_(std::move(file)), temporary_(std::move(temporary)), path_(std::move(path)), buffer_(std::move(buffer)) {}

  Status flush();
  Status write_through(std::span<const std::byte> bytes);

  os::File file_;  // closed after commit() and after a move, so that the destructor removes nothing
  std::filesystem::path temporary_, path_;
  std::unique_ptr<std::byte[]> buffer_;
  std::size_t buffered_ = 0;
  std::uint64_t written_ = 0;  // bytes in the file
};

}  // namespace tessera::detail
