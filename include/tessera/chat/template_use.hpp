// Checks of a model's template, and ways around what the template cannot say: tools that it does not print, calls that it prints in
// another form than the output format reads, and answers that a caller has begun.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/chat/chat_template.hpp>
#include <tessera/chat/output_format.hpp>

namespace tessera {

// Returns whether the template prints the tools of a request. Renders requests to find out. If the template refuses all of them, looks
// for the word "tools" in the template.
[[nodiscard]] Result<bool> prints_tools(const ChatTemplate& chat_template) noexcept;

// Returns whether the template shows a system message that stands in front of the user's.
[[nodiscard]] Result<bool> shows_system_message(const ChatTemplate& chat_template) noexcept;

// The message that tells a model of its tools: the system message in front, or the first user message. If there is none, one is added.
enum class ToolsIn : std::int32_t { system_message = 0, user_message = 1 };

// Writes the request's tools into a message, in the words that Hermes models are trained on, and turns calls and their results into
// text. Use it for a template that does not print tools. The answer's calls are then in the output format "hermes". Afterwards the
// request has no tools. Choose user_message for a template that shows no system message.
[[nodiscard]] Status tell_tools_in_words(ChatRequest& request, ToolsIn where = ToolsIn::system_message) noexcept;

// A template's own text of a call, and whether a format reads that text.
struct CallCheck {
  bool printed = false;  // the template prints calls of earlier messages; if false, the other fields mean nothing
  bool read = false;     // the format reads the same name and the same arguments
  std::string written{}; // the template's text of a call to a tool "get_value", behind the last message
  // A sentence for the reader of a log; empty if all is well.
  std::string warning{};
};
// Renders a call with the template, and reads it with the format.
[[nodiscard]] Result<CallCheck> check_calls(const ChatTemplate& chat_template, const OutputFormat& format) noexcept;

// Puts the beginning of an answer behind a rendered prompt. If `begun` begins with the marker of reasoning, that marker takes the place
// of the one that the template has written. Otherwise the answer begins behind the reasoning, which is closed first if the template
// has begun it. Markers of reasoning become control tokens, all other text is a message's. Returns whether the answer goes on in
// reasoning.
[[nodiscard]] Result<bool> begin_answer(RenderedText& prompt, const OutputFormat& format, std::string_view begun) noexcept;

}  // namespace tessera
