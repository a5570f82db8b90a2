// JSON to the evaluator's values, marked with where it came from.
#pragma once

#include <tessera/json/json.hpp>

#include "chat/jinja/value.hpp"

namespace tessera::jinja {

// All text in it is from_message, but for the roles of messages where they are the usual words: templates make control
// tokens of them ("<|" + role + "|>").
[[nodiscard]] Value from_json(Budget& budget, const Json& json);
[[nodiscard]] Value messages_from_json(Budget& budget, const Json& messages);

// What limits grow with: the bytes of its text, and some for each value.
[[nodiscard]] std::uint64_t json_bytes(const Json& json);

}  // namespace tessera::jinja
