// Tables of the filters, by name. Each file of filters has one table.
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

// Returns the part of an item to which `path` leads, such as "a.b.0". map, sort and other filters get the path as their argument `attribute`.
[[nodiscard]] Value attribute_path(Evaluator& evaluator, Value item, const Value& path);

// Returns whether an optional argument was given and is not none.
[[nodiscard]] inline bool given(const Value& value) { return !value.is(Kind::undefined) && !value.is(Kind::none); }

}  // namespace tessera::jinja
