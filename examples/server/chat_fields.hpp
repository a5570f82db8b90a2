// What OpenAI's chat fields mean to the model: messages, tools and their choice, the form of the answer, reasoning.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "answer_fields.hpp"
#include "fields.hpp"
#include "served_model.hpp"

namespace server {

// Which tools an answer calls.
struct ToolChoice {
  enum class Kind { none, automatic, required };
  Kind kind = Kind::automatic;
  std::string name{};              // required: this one
  std::string space{};             // Responses: the namespace that `name` is of
  std::vector<std::string> allowed{};  // these alone, if any
  bool parallel = true;            // several calls in one answer
};

// What the text of an answer must be.
struct AnswerForm {
  tessera::GrammarSource::Kind kind;
  std::string text;
  std::string field;  // which said so
};

// A tool whose one parameter, the text `input`, must match a pattern.
struct ToolPattern {
  std::string tool, pattern;
};

struct ChatFields {
  ChatWish wish;
  ToolChoice tools;
  std::vector<ToolPattern> patterns{};
  std::vector<std::string> custom_tools{};      // chat: names of tools whose calls are a text
  std::optional<AnswerForm> form{};
  std::optional<std::size_t> most_reasoning{};  // tokens of it
  std::string effort{};                         // else it may be a share of the answer; empty: all of it
  bool drops_old = false;                       // old turns are left out where all of them do not fit
  bool hides_reasoning = false;                 // the answer says that there was some, and not which
};

// messages, tools, tool_choice, parallel_tool_calls, response_format, reasoning_effort, thinking_token_budget,
// chat_template_kwargs, continue_final_message, and what read_guided() reads.
[[nodiscard]] ChatFields read_chat(Fields& fields, const RequestLimits& limits, Notes& notes);

// Reads `tools`, functions and custom tools as OpenAI's chat writes them; those of a service are left out and noted.
void read_tools(Fields& fields, const RequestLimits& limits, ChatFields& chat, Notes& notes);
// The text of a part of a content, or of a block, by one rule for all APIs. A part with a text is that text, whatever its type;
// of search_result and document it is their texts. Pictures, sounds and files are an ApiError of status 400. nullopt: a part of
// any other type, which is left out and noted.
[[nodiscard]] std::optional<std::string> text_of_part(Fields& part, Notes& notes);
// A content that is a text, or a list of parts that are text.
[[nodiscard]] std::string text_of_parts(const tessera::Json& content, const std::string& path, Notes& notes);
// The `arguments` of a call: an object, from its text if need be. Absent, null and "" are {}; what is no object is an ApiError.
[[nodiscard]] tessera::Json read_arguments(Fields& function);
// As templates know it, and as a share of the answer.
void set_effort(ChatFields& chat, const std::string& effort);
// Reads the form of the answer by peers' names: guided_*, grammar, json_schema, structured_outputs. An answer that has a form already
// gets no second one (ApiError).
void read_guided(Fields& fields, std::optional<AnswerForm>& form);
[[nodiscard]] tessera::GrammarSource source_of(const AnswerForm& form);
// {"type": "json_schema", ...} and the like, of response_format and of Responses' text.format.
[[nodiscard]] std::optional<AnswerForm> read_form(const tessera::Json* json, const std::string& path, bool is_flat);
[[nodiscard]] std::optional<ToolChoice> read_tool_choice(const tessera::Json* json, const std::string& path);

// What the model reads: with the tools alone that may be called.
[[nodiscard]] ChatPrompt chat_prompt(const ServedModel& model, ChatFields& chat);
// The plan of an answer to it. What the tools must be and what the text must be are seen to together. Notes tools whose schemas are
// not held whole.
[[nodiscard]] struct AnswerPlan plan_chat(ServedModel& model, const RequestLimits& limits, const Caller& caller, ChatFields chat,
                                          const AnswerFields& answer, Notes& notes);

}  // namespace server
