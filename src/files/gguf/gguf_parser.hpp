// Parses a GGUF header, for GgufFile::read().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include <tessera/extend/files/gguf.hpp>

#include "files/sorted_names.hpp"

namespace tessera::detail {

struct GgufHeader {
  std::uint32_t version = 0;
  std::uint64_t alignment = 0;
  std::uint64_t bytes = 0;                     // everything before the first tensor's data, padding included
  std::uint64_t blob_bytes = 0;                // everything up to the end of the last tensor's description
  std::unique_ptr<std::byte[]> blob;           // copy of the first blob_bytes bytes; `entries` and `tensors` point into it
  std::vector<GgufEntry> entries;              // in file order
  std::vector<GgufTensor> tensors;             // in file order
  std::vector<std::uint32_t> entries_by_key;   // indices into `entries`, sorted by key
  std::vector<std::uint32_t> tensors_by_name;  // indices into `tensors`, sorted by name

  [[nodiscard]] const GgufEntry* find(std::string_view key) const noexcept;  // nullptr if absent
};

[[nodiscard]] Result<GgufHeader> parse_gguf(ByteSource& source, const std::stop_token& stop);

inline const GgufEntry* GgufHeader::find(std::string_view key) const noexcept {
  return find_sorted(std::span(entries), entries_by_key, key, [](const GgufEntry& entry) { return entry.key; });
}

}  // namespace tessera::detail
