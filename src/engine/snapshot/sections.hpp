// Reads the sections of a saved session in order, each byte once. Checks lengths against the file's size, and contents against checksums,
// before the caller may rely on them.
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
  // `buffer` must have kChunkBytes bytes. `name` is the source's name in errors.
  SectionReader(ByteSource& source, std::string name, std::span<std::byte> buffer)
      : source_(source), name_(std::move(name)), buffer_(buffer), held_(buffer.first(0)), size_(source.size()) {}

  // Reads and checks the file's header.
  Status begin();
  // Opens the next section, which must have this type. Skips sections of unknown types before it, unless they are marked as required.
  Status open(SectionType type);
  // Opens the next section of this type, reads its payload, which must have `length` bytes, checks the checksum, and returns the payload.
  Result<std::vector<std::byte>> whole(SectionType type, std::uint64_t length);
  // Like whole(), for a payload whose length is not known, but is at most `most` bytes.
  Result<std::vector<std::byte>> whole_up_to(SectionType type, std::uint64_t most);
  // Returns the next records of the open section's payload: whole records of `record_bytes` bytes each, at least 1 and at most `most`.
  // The returned bytes are valid until the next call. Do not rely on them before close(), which checks their checksum.
  Result<std::span<const std::byte>> records(std::uint64_t record_bytes, std::uint64_t most);
  // Closes the section. Checks that its payload was read to the end, and checks the checksum.
  Status close();
  // Call this after the last section. Checks the seal (a checksum over all sections), and that no bytes follow it.
  Status finish();

  [[nodiscard]] std::uint64_t length() const noexcept { return section_.length; }  // bytes of the open section's payload
  // Returns the number of bytes of the file that have not been read.
  [[nodiscard]] std::uint64_t remaining() const noexcept { return size_ - offset_; }

  // Returns an error whose place is the open section.
  template <class... Args>
  Error error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) const {
    return error_at(code, place(), format, std::forward<Args>(args)...);
  }
  template <class... Args>
  Error corrupt(fmt::format_string<Args...> format, Args&&... args) const {
    return error(ErrorCode::corrupt_file, format, std::forward<Args>(args)...);
  }
  // Returns the open section's place for errors: the name of the source, and the section's number, name and offset.
  [[nodiscard]] std::string place() const;

 private:
  // Reads from the file until the buffer holds n bytes; n is at most kChunkBytes.
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
  std::span<const std::byte> held_;  // bytes of the buffer that were read from the file and not yet returned to the caller
  std::uint64_t size_;
  std::uint64_t offset_ = 0;  // offset in the file of the next byte to return to the caller

  Header header_;
  SectionHeader section_;              // the section that was opened last; type 0: unknown
  std::uint32_t opened_ = 0;           // sections opened
  std::uint32_t layers_ = 0;           // layer sections opened
  std::uint64_t section_offset_ = 0;
  std::uint64_t left_ = 0;             // bytes of the open section's payload that were not yet returned to the caller
  Hasher64 payload_, seal_;
};

}  // namespace tessera::detail::snapshot
