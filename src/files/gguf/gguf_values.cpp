// Reading single values out of a parsed header.
#include <limits>

#include "files/gguf/gguf_format.hpp"

namespace tessera {

using detail::load;

std::string_view to_string(GgufType type) noexcept {
  switch (type) {
    case GgufType::u8: return "u8";
    case GgufType::i8: return "i8";
    case GgufType::u16: return "u16";
    case GgufType::i16: return "i16";
    case GgufType::u32: return "u32";
    case GgufType::i32: return "i32";
    case GgufType::f32: return "f32";
    case GgufType::boolean: return "boolean";
    case GgufType::string: return "string";
    case GgufType::array: return "array";
    case GgufType::u64: return "u64";
    case GgufType::i64: return "i64";
    case GgufType::f64: return "f64";
  }
  return "?";
}

std::string_view detail::ggml_type_name(std::uint32_t id) noexcept {
  constexpr std::string_view kNames[] = {
      "F32",     "F16",    "Q4_0",    "Q4_1",   "Q4_2",    "Q4_3",     "Q5_0",     "Q5_1",     "Q8_0",   "Q8_1",  "Q2_K",
      "Q3_K",    "Q4_K",   "Q5_K",    "Q6_K",   "Q8_K",    "IQ2_XXS",  "IQ2_XS",   "IQ3_XXS",  "IQ1_S",  "IQ4_NL", "IQ3_S",
      "IQ2_S",   "IQ4_XS", "I8",      "I16",    "I32",     "I64",      "F64",      "IQ1_M",    "BF16",   "Q4_0_4_4",
      "Q4_0_4_8", "Q4_0_8_8", "TQ1_0", "TQ2_0", "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4", "NVFP4", "Q1_0", "Q2_0"};
  return id < std::size(kNames) ? kNames[id] : std::string_view("unknown");
}

bool GgufArray::is_integer() const noexcept {
  switch (type_) {
    case GgufType::f32:
    case GgufType::f64:
    case GgufType::string:
    case GgufType::array: return false;
    default: return detail::is_known(type_);
  }
}

bool GgufArray::is_number() const noexcept {
  return is_integer() || type_ == GgufType::f32 || type_ == GgufType::f64;
}

std::int64_t GgufArray::integer(std::uint64_t i) const noexcept {
  if (i >= count_) return 0;
  const std::byte* at = bytes_.data() + i * detail::value_bytes(type_);
  switch (type_) {
    case GgufType::u8:
    case GgufType::boolean: return load<std::uint8_t>(at);
    case GgufType::i8: return load<std::int8_t>(at);
    case GgufType::u16: return load<std::uint16_t>(at);
    case GgufType::i16: return load<std::int16_t>(at);
    case GgufType::u32: return load<std::uint32_t>(at);
    case GgufType::i32: return load<std::int32_t>(at);
    case GgufType::u64: return static_cast<std::int64_t>(load<std::uint64_t>(at));
    case GgufType::i64: return load<std::int64_t>(at);
    default: return 0;
  }
}

double GgufArray::number(std::uint64_t i) const noexcept {
  if (i >= count_) return 0;
  const std::byte* at = bytes_.data() + i * detail::value_bytes(type_);
  switch (type_) {
    case GgufType::f32: return static_cast<double>(load<float>(at));
    case GgufType::f64: return load<double>(at);
    case GgufType::u64: return static_cast<double>(load<std::uint64_t>(at));
    default: return static_cast<double>(integer(i));
  }
}

std::string_view GgufArray::StringIterator::operator*() const noexcept {
  return {reinterpret_cast<const char*>(at_ + 8), load<std::uint64_t>(at_)};
}

GgufArray::StringIterator& GgufArray::StringIterator::operator++() noexcept {
  at_ += 8 + load<std::uint64_t>(at_);
  return *this;
}

GgufArray::Strings GgufArray::strings() const noexcept {
  if (type_ != GgufType::string) return {};
  return {StringIterator(bytes_.data()), StringIterator(bytes_.data() + bytes_.size())};
}

}  // namespace tessera
