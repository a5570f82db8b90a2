// ValueList: reads the elements of a setting's list out of the file's bytes.
#include <tessera/extend/files/settings.hpp>

#include "files/value_types.hpp"

namespace tessera {

using detail::load;

bool ValueList::is_integer() const noexcept {
  switch (type_) {
    case ValueType::f32:
    case ValueType::f64:
    case ValueType::string:
    case ValueType::array: return false;
    default: return detail::is_known(type_);
  }
}

bool ValueList::is_number() const noexcept {
  return is_integer() || type_ == ValueType::f32 || type_ == ValueType::f64;
}

bool ValueList::is_whole() const noexcept {
  if (texts_ != nullptr) return true;
  if (type_ != ValueType::string) {
    const std::uint64_t of_one = detail::value_bytes(type_);
    return of_one == 0 || count_ <= bytes_.size() / of_one;
  }
  std::span<const std::byte> left = bytes_;
  for (std::uint64_t i = 0; i < count_; ++i) {
    if (left.size() < sizeof(std::uint64_t)) return false;
    const auto length = load<std::uint64_t>(left.data());
    left = left.subspan(sizeof(std::uint64_t));
    if (length > left.size()) return false;
    left = left.subspan(length);
  }
  return left.empty();
}

std::int64_t ValueList::integer(std::uint64_t i) const noexcept {
  if (i >= count_) return 0;
  const std::byte* at = bytes_.data() + i * detail::value_bytes(type_);
  switch (type_) {
    case ValueType::u8:
    case ValueType::boolean: return load<std::uint8_t>(at);
    case ValueType::i8: return load<std::int8_t>(at);
    case ValueType::u16: return load<std::uint16_t>(at);
    case ValueType::i16: return load<std::int16_t>(at);
    case ValueType::u32: return load<std::uint32_t>(at);
    case ValueType::i32: return load<std::int32_t>(at);
    case ValueType::u64: return static_cast<std::int64_t>(load<std::uint64_t>(at));
    case ValueType::i64: return load<std::int64_t>(at);
    default: return 0;
  }
}

double ValueList::number(std::uint64_t i) const noexcept {
  if (i >= count_) return 0;
  const std::byte* at = bytes_.data() + i * detail::value_bytes(type_);
  switch (type_) {
    case ValueType::f32: return static_cast<double>(load<float>(at));
    case ValueType::f64: return load<double>(at);
    case ValueType::u64: return static_cast<double>(load<std::uint64_t>(at));
    default: return static_cast<double>(integer(i));
  }
}

std::uint64_t ValueList::text_bytes() const noexcept {
  if (type_ != ValueType::string) return 0;
  if (texts_ == nullptr) return bytes_.size() - 8 * count_;
  std::uint64_t bytes = 0;
  for (const std::string_view text : strings()) bytes += text.size();
  return bytes;
}

std::string_view ValueList::StringIterator::operator*() const noexcept {
  if (text_ != nullptr) return *text_;
  return {reinterpret_cast<const char*>(at_ + 8), load<std::uint64_t>(at_)};
}

ValueList::StringIterator& ValueList::StringIterator::operator++() noexcept {
  if (text_ != nullptr) ++text_;
  else at_ += 8 + load<std::uint64_t>(at_);
  return *this;
}

ValueList::Strings ValueList::strings() const noexcept {
  if (type_ != ValueType::string) return {};
  if (texts_ != nullptr) return {StringIterator(texts_), StringIterator(texts_ + count_)};
  return {StringIterator(bytes_.data()), StringIterator(bytes_.data() + bytes_.size())};
}

}  // namespace tessera
