// Filters by name: each file has a table.
#pragma once

#include <span>
#include <string_view>

#include "chat/jinja/evaluator.hpp"

namespace tessera::jinja {

struct Filter {
  std::string_view name;
  Value (*run)(Evaluator&, const Value&, const Args&);
};

[[nodiscard]] std::span<const Filter> text_filters() noexcept;      // filters_text.cpp
[[nodiscard]] std::span<const Filter> value_filters() noexcept;     // filters_value.cpp
[[nodiscard]] std::span<const Filter> sequence_filters() noexcept;  // filters_sequence.cpp
[[nodiscard]] std::span<const Filter> choice_filters() noexcept;    // filters_choice.cpp

// Returns "a.b.0" of an item, as the argument `attribute` of map, sort and other filters means it.
[[nodiscard]] Value attribute_path(Evaluator& evaluator, Value item, const Value& path);

// Returns whether an argument that may be left out, or be none, is given.
[[nodiscard]] inline bool given(const Value& value) { return !value.is(Kind::undefined) && !value.is(Kind::none); }

}  // namespace tessera::jinja
