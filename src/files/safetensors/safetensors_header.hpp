// Parses the header of one safetensors file, for SafetensorsFile and SafetensorsFolder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string_view>
#include <vector>

#include <tessera/extend/files/byte_source.hpp>

#include "files/safetensors/safetensors_types.hpp"

namespace tessera::detail {

inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;  // bytes; the reference implementation's limit
inline constexpr std::size_t kMaxSafetensorsTensors = std::size_t{1} << 18;  // tensors of one file
inline constexpr std::size_t kMaxSafetensorsName = 4096;                     // bytes of a tensor's name
inline constexpr std::size_t kMaxSafetensorsDims = 16;

// A member of a file's `__metadata__`.
struct SafetensorsNote {
  std::string_view key, value;
};

struct SafetensorsHeader {
  std::uint64_t bytes = 0;                 // everything before the data: the length and the JSON text
  std::size_t text_bytes = 0, n_dims = 0;  // sizes of `texts` and `dims`
  std::unique_ptr<char[]> texts;           // the string_views of `tensors` and `notes` point into it
  std::unique_ptr<std::uint64_t[]> dims;   // the spans of `tensors` point into it
  std::vector<SafetensorsTensor> tensors;  // in the order of their data
  std::vector<SafetensorsNote> notes;      // in file order

  // Returns the bytes of memory that the pointers and vectors own.
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept {
    return text_bytes + n_dims * sizeof(std::uint64_t) + tensors.capacity() * sizeof(SafetensorsTensor) +
           notes.capacity() * sizeof(SafetensorsNote);
  }
};

// Returns the size of a header's JSON text in bytes, as the file's first 8 bytes state it. Errors: corrupt_file, the file is no safetensors
// file, or is shorter than its header; unsupported, it is a file of another kind; io.
[[nodiscard]] Result<std::uint64_t> safetensors_text_bytes(ByteSource& source);

// Reads and checks a header. The caller must check that no name occurs twice. Errors: corrupt_file; unsupported; io; cancelled.
[[nodiscard]] Result<SafetensorsHeader> parse_safetensors(ByteSource& source, const std::stop_token& stop);

}  // namespace tessera::detail
