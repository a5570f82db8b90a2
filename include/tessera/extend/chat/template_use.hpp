// Checks of a model's chat template, and help for what a template cannot do: tools that it does not print, calls that it prints in another
// form than the output format reads, and answers whose beginning the caller gives.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/chat/chat_template.hpp>
#include <tessera/extend/chat/output_format.hpp>

namespace tessera {

// Returns whether the template prints the tools of a request. Renders a few test requests to find out. If the template raises an error for
// all of them, looks for the word "tools" in the template.
[[nodiscard]] Result<bool> prints_tools(const ChatTemplate& chat_template) noexcept;

// Returns whether the template shows a system message that stands in front of the user's.
[[nodiscard]] Result<bool> shows_system_message(const ChatTemplate& chat_template) noexcept;

// The message that tells a model of its tools: the system message in front, or the first user message. If there is none, one is added.
enum class ToolsIn : std::int32_t { system_message = 0, user_message = 1 };

// Writes the request's tools into a message, in the words that Hermes models are trained on, and turns calls and their results into
// text. Use it for a template that does not print tools. The answer's calls are then in the output format "hermes". Afterwards the
// request has no tools. Choose user_message for a template that shows no system message.
[[nodiscard]] Status tell_tools_in_words(ChatRequest& request, ToolsIn where = ToolsIn::system_message) noexcept;

// The result of check_calls(): how a template prints a test call, and whether the output format reads the call from that text.
struct CallCheck {
  bool printed = false;  // the template prints calls of earlier messages; if false, the other fields mean nothing
  bool read = false;     // the format reads the name and the arguments of the test call
  std::string written{}; // the text that the template adds to a prompt for the test call, to a tool "get_value"
  // A sentence for the reader of a log; empty if all is well.
  std::string warning{};
};
// Renders a test call with the template, reads the text with the format, and returns what it found.
[[nodiscard]] Result<CallCheck> check_calls(const ChatTemplate& chat_template, const OutputFormat& format) noexcept;

// Appends `begun`, the beginning of an answer, to a rendered prompt. If `begun` begins with the marker that opens reasoning, that marker
// replaces the one that the template may have written. Otherwise `begun` is the answer behind the reasoning: if the template has opened
// reasoning, it is closed first. Markers of reasoning become control tokens; all other text of `begun` counts as a message's text
// (TextOrigin). Returns whether the prompt now ends in reasoning.
[[nodiscard]] Result<bool> begin_answer(RenderedText& prompt, const OutputFormat& format, std::string_view begun) noexcept;

}  // namespace tessera
