#include "model/spec/spec_text.hpp"

#include <algorithm>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "model/spec/spec_fields.hpp"

namespace tessera::detail {

namespace {

template <class T>
std::string value_text(const T& value) {
  if constexpr (std::is_enum_v<T>) return fmt::format("{}", static_cast<std::underlying_type_t<T>>(value));
  else return fmt::format("{}", value);
}

template <class T>
void add_field(std::string& text, const Field<T>& field) {
  if (field.counts == Counts::yes || (field.counts == Counts::if_set && field.value != T{})) text += fmt::format("{} {}\n", field.name, value_text(field.value));
}

// Adds a line with one field of all items (ropes or layers). `index` is the field's index in the item's list of fields.
template <std::size_t index, class Item>
void add_column(std::string& text, std::string_view list, const std::vector<Item>& items) {
  const auto field = [&](std::size_t i) { return std::get<index>(fields_of(items[i])); };
  const auto value = [&](std::size_t i) { return value_text(field(i).value); };
  const auto is_default = [&](const Item& item) {
    const auto& own = std::get<index>(fields_of(item)).value;
    return own == std::remove_cvref_t<decltype(own)>{};
  };
  if (field(0).counts == Counts::if_set && std::ranges::all_of(items, is_default)) return;
  text += fmt::format("{}.{}", list, std::get<index>(fields_of(Item())).name);
  for (std::size_t i = 0; i < items.size();) {
    const std::string at = value(i);
    std::size_t end = i + 1;
    while (end < items.size() && value(end) == at) ++end;
    text += end - i == 1 ? fmt::format(" {}", at) : fmt::format(" {}*{}", at, end - i);
    i = end;
  }
  text += '\n';
}

template <class Item>
void add_field(std::string& text, const Field<std::vector<Item>>& field) {
  if (field.value.empty()) return;
  [&]<std::size_t... index>(std::index_sequence<index...>) {
    (add_column<index>(text, field.name, field.value), ...);
  }(std::make_index_sequence<kListedFields<Item>>());
}

}  // namespace

std::string spec_text(const ModelSpec& spec) {
  std::string text;
  std::apply([&](const auto&... fields) { (add_field(text, fields), ...); }, fields_of(spec));
  return text;
}

}  // namespace tessera::detail
