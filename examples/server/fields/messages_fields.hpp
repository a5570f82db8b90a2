// Reads a request of Anthropic's Messages API as chat fields.
#pragma once

#include "fields/chat_fields.hpp"

namespace server {

// Reads messages, system, tools, tool_choice, thinking and output_config: everything that the model reads and count_tokens counts. If the
// last message is an assistant's, the answer continues this message.
[[nodiscard]] ChatFields read_messages_chat(Fields& fields, const RequestLimits& limits, Notes& notes);

}  // namespace server
