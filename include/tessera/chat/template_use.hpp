// Checks of a model's template, and ways around what the template cannot say: tools that it does not print, calls that it prints in
// another form than the output format reads, and answers that a caller has begun.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/chat/chat_template.hpp>
#include <tessera/chat/output_format.hpp>

namespace tessera {

// Returns whether the template prints the tools of a request. Found out by rendering one; a template that refuses every such request is
// looked at for the word "tools".
[[nodiscard]] Result<bool> prints_tools(const ChatTemplate& chat_template) noexcept;

// Returns whether the template shows a system's message that stands in front of the user's.
[[nodiscard]] Result<bool> shows_system_message(const ChatTemplate& chat_template) noexcept;

// The message in which a model is told of its tools: the system's in front, or the user's first. One is made where there is none.
enum class ToolsIn : std::int32_t { system_message = 0, user_message = 1 };

// For a template that does not print tools: the request's tools are told in a message, in the words that Hermes models are trained
// on, and calls and their results become text. The answer's calls are then in the output format "hermes". Afterwards the request
// has no tools. Choose user_message for a template that shows no system's message.
[[nodiscard]] Status tell_tools_in_words(ChatRequest& request, ToolsIn where = ToolsIn::system_message) noexcept;

// The template's own text of a call, and whether the format reads that text.
struct CallCheck {
  bool printed = false;  // the template prints calls of its history; if it does not, the rest says nothing
  bool read = false;     // the format reads the same name and the same arguments
  std::string written{}; // for the call of a tool "get_value", behind the last message
  // A sentence for the reader of a log; empty where all is well.
  std::string warning{};
};
[[nodiscard]] Result<CallCheck> check_calls(const ChatTemplate& chat_template, const OutputFormat& format) noexcept;

// Puts the beginning of an answer behind a rendered prompt. An answer that begins with the reasoning's marker takes the place of the
// one that the template has written; one that does not begins behind the reasoning, which is closed where the template has begun
// it. Markers of the reasoning are control tokens, all other text is a message's. Returns whether the answer goes on in reasoning.
[[nodiscard]] Result<bool> begin_answer(RenderedText& prompt, const OutputFormat& format, std::string_view begun) noexcept;

}  // namespace tessera
