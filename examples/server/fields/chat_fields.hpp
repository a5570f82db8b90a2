// The chat fields of OpenAI's API: messages, tools and their choice, the form of the answer, reasoning.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fields/answer_fields.hpp"
#include "fields/fields.hpp"
#include "models/served_model.hpp"

namespace server {

// The tools that an answer may call or must call.
struct ToolChoice {
  enum class Kind { none, automatic, required };
  Kind kind = Kind::automatic;
  std::string name{};              // required: the tool to call; empty: any
  std::string space{};             // Responses: the namespace of `name`
  std::vector<std::string> allowed{};  // the tools that may be called; empty: all
  bool parallel = true;            // an answer may have several calls
};

// The form that the text of an answer must have.
struct AnswerForm {
  tessera::GrammarSource::Kind kind;
  std::string text;
  std::string field;  // the field that asked for it
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
  std::optional<std::size_t> most_reasoning{};  // the most tokens of reasoning
  std::string effort{};                         // limits reasoning to a share of the answer, unless most_reasoning is set; empty: no limit
  bool drops_old = false;                       // leaves out old turns if not all of them fit
  bool hides_reasoning = false;                 // the answer says that there was reasoning, without its text
};

// Reads the fields of a chat request: messages, tools, tool_choice, parallel_tool_calls, response_format, reasoning_effort,
// thinking_token_budget, chat_template_kwargs, continue_final_message, and those of read_guided().
[[nodiscard]] ChatFields read_chat(Fields& fields, const RequestLimits& limits, Notes& notes);

// Reads `tools`: functions and custom tools in the form of OpenAI's chat. Tools of a service are left out and noted.
void read_tools(Fields& fields, const RequestLimits& limits, ChatFields& chat, Notes& notes);
// Returns the text of one part of a message's content. The rule is the same for all APIs. For a part of any type with a field `text`: this
// field. For a search_result or a document: the texts in it. For pictures, sounds, films and files: throws ApiError of status 400. For any
// other part: leaves the part out, notes this, and returns nullopt.
[[nodiscard]] std::optional<std::string> text_of_part(Fields& part, Notes& notes);
// Returns the text of a content, which is a text or a list of parts.
[[nodiscard]] std::string text_of_parts(const tessera::Json& content, const std::string& path, Notes& notes);
// Returns the arguments of a call in an earlier message. The field `arguments` is an object, or a text that is parsed as an object. If the
// field is absent, null or "", returns {}. Throws ApiError for any other value.
[[nodiscard]] tessera::Json read_arguments(Fields& function);
// Sets the effort of reasoning: as an argument of the template, and as ChatFields::effort, which limits the tokens of reasoning.
void set_effort(ChatFields& chat, const std::string& effort);
// Reads the form of the answer from the fields of other servers: guided_*, grammar, json_schema, structured_outputs. `form` may be set
// already, from a field of the API itself. Throws ApiError if the request states more than one form.
void read_guided(Fields& fields, std::optional<AnswerForm>& form);
[[nodiscard]] tessera::GrammarSource source_of(const AnswerForm& form);
// Reads the form of an answer: an object whose `type` is text, json_object or json_schema. `is_flat`: the schema is a member of this object,
// as in Responses and Messages; otherwise the schema is in a nested object, as in OpenAI's chat. Returns nullopt for plain text.
[[nodiscard]] std::optional<AnswerForm> read_form(const tessera::Json* json, const std::string& path, bool is_flat);
[[nodiscard]] std::optional<ToolChoice> read_tool_choice(const tessera::Json* json, const std::string& path);

// Returns the prompt for the model, with only the tools that may be called.
[[nodiscard]] ChatPrompt chat_prompt(const ServedModel& model, ChatFields& chat);
// Makes the plan of the answer. One grammar enforces both the tools' calls and the form of the text. Adds a warning to `notes` for each
// tool whose schema the grammar does not enforce completely.
[[nodiscard]] struct AnswerPlan plan_chat(ServedModel& model, const RequestLimits& limits, const Caller& caller, ChatFields chat,
                                          const AnswerFields& answer, Notes& notes);

}  // namespace server
