// The sections of a saved session, read in order, each byte once. Nothing is believed before it has been checked:
// lengths against the source's size, contents against their checksum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <tessera/extend/files/byte_source.hpp>

#include "core/error.hpp"
#include "engine/snapshot/format.hpp"

namespace tessera::detail::snapshot {

class SectionReader {
 public:
  // `buffer`: kChunkBytes. The name is for errors.
  SectionReader(ByteSource& source, std::string name, std::span<std::byte> buffer)
      : source_(source), name_(std::move(name)), buffer_(buffer), held_(buffer.first(0)), size_(source.size()) {}

  // The file's header.
  Status begin();
  // Opens the next section, which must be of this type; sections of unknown types that may be skipped are.
  Status open(SectionType type);
  // Opens the section and reads its payload, which its checksum confirms. It has `length` bytes, or at most so many.
  Result<std::vector<std::byte>> whole(SectionType type, std::uint64_t length);
  Result<std::vector<std::byte>> whole_up_to(SectionType type, std::uint64_t most);
  // The next whole records of the open section's payload, at least one and at most `most`; not confirmed before
  // close(). Valid until the next call.
  Result<std::span<const std::byte>> records(std::uint64_t record_bytes, std::uint64_t most);
  // The open section ends here, and its checksum is right.
  Status close();
  // After the last section: the seal fits, and nothing follows.
  Status finish();

  [[nodiscard]] std::uint64_t length() const noexcept { return section_.length; }  // of the open section's payload
  // Bytes after the open section.
  [[nodiscard]] std::uint64_t remaining() const noexcept { return size_ - offset_; }

  // An error about the open section.
  template <class... Args>
  Error error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) const {
    return error_at(code, place(), format, std::forward<Args>(args)...);
  }
  template <class... Args>
  Error corrupt(fmt::format_string<Args...> format, Args&&... args) const {
    return error(ErrorCode::corrupt_file, format, std::forward<Args>(args)...);
  }
  // Where that is.
  [[nodiscard]] std::string place() const;

 private:
  // Bytes of the file into the buffer, until it holds n; n is at most kChunkBytes.
  Status fill(std::size_t n);
  Result<std::span<const std::byte>> take(std::size_t n);
  template <class T>
  Status take_into(T& value) {
    TESSERA_TRY(const auto bytes, take(sizeof value));
    std::memcpy(&value, bytes.data(), sizeof value);
    return {};
  }
  Status next_header();
  Result<std::vector<std::byte>> payload();

  ByteSource& source_;
  std::string name_;
  std::span<std::byte> buffer_;
  std::span<const std::byte> held_;  // of the buffer: read, and not taken yet
  std::uint64_t size_;
  std::uint64_t offset_ = 0;  // of the next byte to be taken

  Header header_;
  SectionHeader section_;              // the last that was opened; type 0: not known
  std::uint32_t opened_ = 0;           // sections
  std::uint32_t layers_ = 0;           // of these, layers
  std::uint64_t section_offset_ = 0;
  std::uint64_t left_ = 0;             // of the open section's payload
  Hasher64 payload_, seal_;
};

}  // namespace tessera::detail::snapshot
