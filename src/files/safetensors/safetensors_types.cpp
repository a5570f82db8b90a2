#include "files/safetensors/safetensors_types.hpp"

#include <cstddef>
#include <iterator>

namespace tessera::detail {
namespace {

struct SafetensorsTypeFacts {
  std::string_view name;
  std::uint32_t bits;
};

// In the order of SafetensorsType.
constexpr SafetensorsTypeFacts kSafetensorsTypes[] = {
    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6},     {"F6_E3M2", 6},     {"U8", 8},      {"I8", 8},
    {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E5M2FNUZ", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E8M0", 8}, {"I16", 16},
    {"U16", 16},    {"F16", 16},    {"BF16", 16},       {"I32", 32},        {"U32", 32},    {"F32", 32},
    {"C64", 64},    {"F64", 64},    {"I64", 64},        {"U64", 64},
};
static_assert(std::size(kSafetensorsTypes) == static_cast<std::size_t>(SafetensorsType::u64) + 1);

}  // namespace

std::string_view to_string(SafetensorsType type) noexcept {
  const auto index = static_cast<std::size_t>(type);
  return index < std::size(kSafetensorsTypes) ? kSafetensorsTypes[index].name : "?";
}

std::uint32_t bits_of(SafetensorsType type) noexcept {
  const auto index = static_cast<std::size_t>(type);
  return index < std::size(kSafetensorsTypes) ? kSafetensorsTypes[index].bits : 0;
}

std::optional<SafetensorsType> safetensors_type(std::string_view name) noexcept {
  for (std::size_t i = 0; i < std::size(kSafetensorsTypes); ++i) {
    if (kSafetensorsTypes[i].name == name) return static_cast<SafetensorsType>(i);
  }
  return std::nullopt;
}

}  // namespace tessera::detail
