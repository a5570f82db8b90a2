// Turns JSON into the evaluator's values, marked with their origin.
#pragma once

#include <tessera/json/json.hpp>

#include "chat/jinja/value.hpp"

namespace tessera::jinja {

// Returns the value of JSON, with all text marked as from_message. Exception: the usual roles of messages are from_template, because
// templates make control tokens of them ("<|" + role + "|>").
[[nodiscard]] Value from_json(Budget& budget, const Json& json);
[[nodiscard]] Value messages_from_json(Budget& budget, const Json& messages);

// Returns the size that limits grow with: the bytes of the JSON's text, and some bytes for each value.
[[nodiscard]] std::uint64_t json_bytes(const Json& json);

}  // namespace tessera::jinja
