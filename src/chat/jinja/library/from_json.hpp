// Converts JSON to the evaluator's values. Their texts are marked as coming from a message.
#pragma once

#include <tessera/json/json.hpp>

#include "chat/jinja/value.hpp"

namespace tessera::jinja {

// Converts JSON to a value. All its text is marked as from_message. Exception, in messages_from_json(): the usual roles are marked as
// from_template, because templates make control tokens of them ("<|" + role + "|>").
[[nodiscard]] Value from_json(Budget& budget, const Json& json);
[[nodiscard]] Value messages_from_json(Budget& budget, const Json& messages);

// Returns the size of a rendering's input: the bytes of all texts in the JSON, and a few bytes for each value. The limits of a rendering
// grow with this size.
[[nodiscard]] std::uint64_t json_bytes(const Json& json);

}  // namespace tessera::jinja
