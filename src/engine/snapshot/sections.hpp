// Reads the sections of a saved session in order, each byte once. Lengths are checked against the source's size, and contents against their
// checksum, before they are used.
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
  // `buffer` has kChunkBytes bytes. `name` names the source in errors.
  SectionReader(ByteSource& source, std::string name, std::span<std::byte> buffer)
      : source_(source), name_(std::move(name)), buffer_(buffer), held_(buffer.first(0)), size_(source.size()) {}

  // Reads and checks the file's header.
  Status begin();
  // Opens the next section, which must be of this type. Skips sections of unknown types before it, if they may be skipped.
  Status open(SectionType type);
  // Opens the section and reads its payload, which must have `length` bytes; the checksum is checked.
  Result<std::vector<std::byte>> whole(SectionType type, std::uint64_t length);
  // Does the same for a payload of at most `most` bytes.
  Result<std::vector<std::byte>> whole_up_to(SectionType type, std::uint64_t most);
  // Returns the next whole records of the open section's payload, at least one and at most `most`, valid until the next call. Their
  // checksum is checked by close().
  Result<std::span<const std::byte>> records(std::uint64_t record_bytes, std::uint64_t most);
  // Closes the section: checks that it ends here, and its checksum.
  Status close();
  // Checks, after the last section, that the seal fits and that nothing follows.
  Status finish();

  [[nodiscard]] std::uint64_t length() const noexcept { return section_.length; }  // bytes of the open section's payload
  // Returns the bytes of the file that were not taken yet.
  [[nodiscard]] std::uint64_t remaining() const noexcept { return size_ - offset_; }

  // Return an error whose place is the open section.
  template <class... Args>
  Error error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) const {
    return error_at(code, place(), format, std::forward<Args>(args)...);
  }
  template <class... Args>
  Error corrupt(fmt::format_string<Args...> format, Args&&... args) const {
    return error(ErrorCode::corrupt_file, format, std::forward<Args>(args)...);
  }
  // Returns the place of the open section, for errors.
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
  std::span<const std::byte> held_;  // bytes of the buffer that are read and not taken yet
  std::uint64_t size_;
  std::uint64_t offset_ = 0;  // offset in the file of the next byte to be taken

  Header header_;
  SectionHeader section_;              // the section opened last; type 0: unknown
  std::uint32_t opened_ = 0;           // sections opened
  std::uint32_t layers_ = 0;           // layer sections opened
  std::uint64_t section_offset_ = 0;
  std::uint64_t left_ = 0;             // bytes of the open section's payload that were not taken yet
  Hasher64 payload_, seal_;
};

}  // namespace tessera::detail::snapshot
