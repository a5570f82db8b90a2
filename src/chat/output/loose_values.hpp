// Values as models write them outside of JSON: Python's literals, and Gemma's with strings between <|"|>.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tessera/chat/json.hpp>

namespace tessera::output {

// "{a:1, 'b': [True, <|"|>x<|"|>]}"; nullopt: it is none, or something follows it.
[[nodiscard]] std::optional<Json> loose_value(std::string_view text);

// "name(a=1, b='x')": the name and its arguments.
[[nodiscard]] std::optional<std::pair<std::string, Json>> python_call(std::string_view text);

// Bytes of the call at the start of a text, up to its closing bracket; nullopt: it is not all there.
[[nodiscard]] std::optional<std::size_t> python_call_size(std::string_view text);

}  // namespace tessera::output
