// Checks a model's chat template, and helps with what a template cannot do: print tools, print calls in the form that the output format
// reads, and continue an answer whose beginning the caller supplies.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/chat/chat_template.hpp>
#include <tessera/extend/chat/output_format.hpp>

namespace tessera {

// Returns whether the template prints a request's tools. Renders a few test requests to find out. If every test raises an error, looks for
// the word "tools" in the template's source.
[[nodiscard]] Result<bool> prints_tools(const ChatTemplate& chat_template) noexcept;

// Returns whether the template prints a system message that stands before the user's message.
[[nodiscard]] Result<bool> shows_system_message(const ChatTemplate& chat_template) noexcept;

// The message that describes the tools to the model: the system message at the beginning, or the first user message. A missing message is
// added.
enum class ToolsIn : std::int32_t { system_message = 0, user_message = 1 };

// For templates that do not print tools: writes the request's tools into a message, in the words that Hermes models are trained on, and
// turns calls and their results into text. Afterwards the request has no tools, and the output format of its answer is "hermes". Choose
// user_message if the template prints no system message.
[[nodiscard]] Status tell_tools_in_words(ChatRequest& request, ToolsIn where = ToolsIn::system_message) noexcept;

// The result of check_calls(): how the template prints a test call, and whether the output format can read that text.
struct CallCheck {
  bool printed = false;  // true: the template prints calls of earlier messages; false: the other fields mean nothing
  bool read = false;     // the format reads the name and the arguments of the test call
  std::string written{}; // text that the template adds to a prompt for the test call, which calls the tool "get_value"
  // A sentence for a log; empty if there is no problem.
  std::string warning{};
};
// Renders a test call with the template, and reads the text with the format.
[[nodiscard]] Result<CallCheck> check_calls(const ChatTemplate& chat_template, const OutputFormat& format) noexcept;

// Appends `begun`, the beginning of an answer, to a rendered prompt, so that the model continues it. If `begun` begins with the marker that
// opens reasoning: this marker replaces the one that the template may have written at the prompt's end. If not: `begun` is text that
// follows the reasoning, so reasoning that the template has opened is closed first. Reasoning markers become control tokens; all other text
// of `begun` counts as a message's text (TextOrigin). Returns whether the prompt now ends in reasoning.
[[nodiscard]] Result<bool> begin_answer(RenderedText& prompt, const OutputFormat& format, std::string_view begun) noexcept;

}  // namespace tessera
