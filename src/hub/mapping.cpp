#include "hub/mapping.hpp"

#include <algorithm>
#include <limits>

#include "core/printable.hpp"
#include "hub/written/filling.hpp"

namespace tessera::detail::hub {

std::optional<std::int64_t> Mapping::integer_of(const Json* value, std::string_view key) {
  if (value == nullptr) return std::nullopt;
  // Limit for sizes and counts, which are added and multiplied later: the product of two of them does not overflow.
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const std::int64_t* whole = value->integer();
  if (whole != nullptr && *whole >= -kMost && *whole <= kMost) return *whole;
  if (whole != nullptr) refuse(ErrorCode::corrupt_file, key, "the value is {}; expected at most {}", *whole, kMost);
  else refuse(ErrorCode::corrupt_file, key, "expected an integer");
  return std::nullopt;
}

std::optional<double> Mapping::number_of(const Json* value, std::string_view key) {
  if (value == nullptr) return std::nullopt;
  if (const std::int64_t* whole = value->integer()) return static_cast<double>(*whole);
  if (const double* number = value->number()) return *number;
  refuse(ErrorCode::corrupt_file, key, "expected a number");
  return std::nullopt;
}

std::optional<std::string_view> Mapping::text_of(const Json* value, std::string_view key) {
  if (value == nullptr) return std::nullopt;
  if (const std::string* text = value->string()) return std::string_view(*text);
  refuse(ErrorCode::corrupt_file, key, "expected a string");
  return std::nullopt;
}

std::optional<bool> Mapping::boolean(std::string_view key) {
  const Json* value = config.find(key);
  if (value == nullptr) return std::nullopt;
  if (const bool* flag = value->boolean()) return *flag;
  refuse(ErrorCode::corrupt_file, key, "expected true or false");
  return std::nullopt;
}

std::vector<std::string_view> Mapping::texts(std::string_view key) {
  const Json* value = config.find(key);
  std::vector<std::string_view> texts;
  if (value == nullptr) return texts;
  if (value->elements() == nullptr) {
    refuse(ErrorCode::corrupt_file, key, "expected a list of strings");
    return texts;
  }
  for (const Json& element : *value->elements()) {
    const auto text = text_of(&element, key);
    if (!text) return {};
    texts.push_back(*text);
  }
  return texts;
}

std::vector<float> Mapping::numbers_of(const Json* value, std::string_view key) {
  std::vector<float> numbers;
  if (value == nullptr) return numbers;
  if (value->elements() == nullptr) {
    refuse(ErrorCode::corrupt_file, key, "expected a list of numbers");
    return numbers;
  }
  for (const Json& element : *value->elements()) {
    const auto number = number_of(&element, key);
    if (!number) return {};
    numbers.push_back(static_cast<float>(*number));
  }
  return numbers;
}

void Mapping::copy_integer(Setting setting, std::string_view key) {
  if (filling != nullptr) filling->fill_integer(key, setting);
  settings.expect(setting, key);
  if (const auto value = integer(key)) {
    set(setting, *value, key);
    settings.mark_stated(setting);
  }
}

void Mapping::copy_number(Setting setting, std::string_view key) {
  if (filling != nullptr) filling->fill_number(key, setting);
  settings.expect(setting, key);
  if (const auto value = number(key)) {
    set(setting, *value, key);
    settings.mark_stated(setting);
  }
}

void Mapping::copy_boolean(Setting setting, std::string_view key) {
  if (filling != nullptr) filling->fill_boolean(key, setting);
  settings.expect(setting, key);
  if (const auto value = boolean(key)) {
    set(setting, *value, key);
    settings.mark_stated(setting);
  }
}

std::int64_t Mapping::given(Setting setting) const noexcept {
  const auto value = settings.find(setting);
  const auto* whole = value ? std::get_if<std::int64_t>(&*value) : nullptr;
  return whole == nullptr ? 0 : *whole;
}

void Mapping::expect_text(std::string_view key, std::initializer_list<std::string_view> allowed) {
  if (filling != nullptr) filling->set(key, *allowed.begin());
  const auto value = text(key);
  if (!value || std::ranges::find(allowed, *value) != allowed.end()) return;
  refuse(ErrorCode::unsupported, key, "the value is \"{}\"; tessera computes models of this type with \"{}\" only", printable(*value),
         *allowed.begin());
}

void Mapping::expect_boolean(std::string_view key, bool allowed) {
  if (filling != nullptr) filling->set(key, allowed);
  const auto value = boolean(key);
  if (value && *value != allowed) {
    refuse(ErrorCode::unsupported, key, "the value is {}; tessera computes models of this type with {} only", *value, allowed);
  }
}

void Mapping::expect_integer(std::string_view key, std::int64_t allowed) {
  if (filling != nullptr) filling->set(key, allowed);
  const auto value = integer(key);
  if (value && *value != allowed) {
    refuse(ErrorCode::unsupported, key, "the value is {}; tessera computes models of this type with {} only", *value, allowed);
  }
}

}  // namespace tessera::detail::hub
