// A request of Anthropic's Messages as chat fields.
#pragma once

#include "chat_fields.hpp"

namespace server {

// messages, system, tools, tool_choice, thinking, output_config: what the model reads, which is what count_tokens counts. With an
// assistant's message as the last one, the answer goes on with it.
[[nodiscard]] ChatFields read_messages_chat(Fields& fields, const RequestLimits& limits, Notes& notes);

}  // namespace server
