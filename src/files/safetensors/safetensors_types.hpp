// The value types of safetensors files, and the description of a tensor in a file's header.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tessera::detail {

// Names and sizes are the reference implementation's (safetensors 0.8, enum Dtype).
enum class SafetensorsType : std::uint8_t {
  boolean,
  f4,
  f6_e2m3,
  f6_e3m2,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  f8_e5m2fnuz,
  f8_e4m3fnuz,
  f8_e8m0,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  c64,
  f64,
  i64,
  u64,
};

[[nodiscard]] std::string_view to_string(
    SafetensorsType type) noexcept;                                  // as in files: "BF16", "F8_E4M3"; "?" for no type
[[nodiscard]] std::uint32_t bits_of(SafetensorsType type) noexcept;  // bits of one value: 4 to 64; 0 for no type
[[nodiscard]] std::optional<SafetensorsType> safetensors_type(std::string_view name) noexcept;

// A tensor as its file's header describes it. The memory of `name` and `dims` belongs to the SafetensorsFile or SafetensorsFolder.
struct SafetensorsTensor {
  std::string_view name;
  SafetensorsType type;
  std::span<const std::uint64_t> dims;  // outermost first, as in the file; none for a single value; a dim may be 0
  std::uint64_t offset;                 // offset of the data in the file
  std::uint64_t bytes;                  // bytes of the data: dims x bits / 8
  std::uint32_t part = 0;               // index of the file that has the tensor, if a model consists of several files
};

}  // namespace tessera::detail
