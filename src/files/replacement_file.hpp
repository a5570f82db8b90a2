// A file that appears whole or not at all: it is written under a temporary name beside its path, synced, then renamed.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "os/posix_file.hpp"

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
  ReplacementFile(FileDescriptor file, std::string temporary, std::string path, std::unique_ptr<std::byte[]> buffer) noexcept
      : file_(std::move(file)), temporary_(std::move(temporary)), path_(std::move(path)), buffer_(std::move(buffer)) {}

  Status flush();
  Status write_through(std::span<const std::byte> bytes);

  FileDescriptor file_;  // closed after commit() and after a move, so that the destructor removes nothing
  std::string temporary_, path_;
  std::unique_ptr<std::byte[]> buffer_;
  std::size_t buffered_ = 0;
};

}  // namespace tessera::detail
