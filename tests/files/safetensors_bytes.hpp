// Bytes of safetensors files for tests, and what a header that was read promises.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "files/safetensors/safetensors_types.hpp"

namespace safetensors_bytes {

// Returns a file: the length of the JSON text, the text, `data` zero bytes.
inline std::vector<std::byte> file(std::string_view json, std::size_t data = 0) {
  const std::uint64_t length = json.size();
  std::vector<std::byte> bytes(sizeof length + json.size() + data);
  std::memcpy(bytes.data(), &length, sizeof length);
  if (!json.empty()) std::memcpy(bytes.data() + sizeof length, json.data(), json.size());
  return bytes;
}

// Returns a member of a header: `"name":{"dtype":...}`.
inline std::string tensor(const std::string& name, const std::string& type, const std::string& shape, std::size_t from, std::size_t to) {
  return "\"" + name + "\":{\"dtype\":\"" + type + "\",\"shape\":[" + shape + "],\"data_offsets\":[" + std::to_string(from) + "," +
         std::to_string(to) + "]}";
}

// Whether the tensors lie one behind the other from the header's end to the file's end, and have the bytes that their shapes need.
inline bool is_sound(std::span<const tessera::detail::SafetensorsTensor> tensors, std::uint64_t header, std::uint64_t file_bytes) {
  std::uint64_t end = header;
  for (const auto& tensor : tensors) {
    std::uint64_t bits = bits_of(tensor.type);
    for (const std::uint64_t dim : tensor.dims) bits *= dim;
    if (bits / 8 != tensor.bytes || tensor.offset != end || tensor.name.empty() || tensor.dims.size() > 16) return false;
    end += tensor.bytes;
  }
  return end == file_bytes;
}

}  // namespace safetensors_bytes
