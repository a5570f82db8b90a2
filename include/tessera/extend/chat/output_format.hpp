// Descriptions of what models write: the markers around reasoning, tool calls and text. A description is data: support for a new model
// is a value of OutputFormat, not code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/chat/chat_template.hpp>
#include <tessera/extend/text/marked_text.hpp>
#include <tessera/text/tokenizer.hpp>

namespace tessera {

// The way in which a model writes a tool call: open NAME after_name ARGUMENTS close. Words in capitals (NAME, KEY, VALUE) stand for what
// the model writes. Words in small letters (open, after_name, key_open) are the fixed texts of CallForm. The list below says how NAME and
// ARGUMENTS are written. Exception: in `json` and `pythonic` the name is a part of the text that the list shows.
enum class CallSyntax : std::int32_t {
  json = 0,        // {"name": NAME, "arguments": {...}}, alone or in a list
  named_json = 1,  // NAME, then the arguments as JSON
  parameters = 2,  // NAME, then key_open KEY key_close ... value_open VALUE value_close, repeated
  pythonic = 3,    // [name(key=value, ...), ...]
  braces = 4,      // NAME{key:value,...}, strings between <|"|>
  elements = 5,    // NAME, then mark<KEY>VALUE mark</KEY>, repeated; a VALUE may be elements again; KEY is "item" in a list
};

// The texts before, between and after several calls of one region (OutputRegion). A separator may have white space around it.
struct CallList {
  std::string open{}, separator{}, close{};
};

// The markers and keys of a call.
struct CallForm {
  CallSyntax syntax = CallSyntax::json;
  // json: the keys of a call. If name_key is empty, a call has a single key: the key is the tool's name, and its value the arguments.
  std::string name_key = "name", arguments_key = "arguments", id_key = "id";
  std::string open{}, after_name{}, close{};
  std::string id_end{};       // text after an id that stands before the name; empty: no id stands there
  std::string name_prefix{};  // text before the name that is not part of the name: "functions."
  // If set, the model writes an id in place of the name, and the name is the beginning of the id up to this mark. Example: with the mark
  // ":", the id "functions.add:0" names the tool "functions.add".
  std::string id_mark{};
  std::string name_end{};     // characters that end a name before after_name does
  std::string key_open{}, key_close{}, value_open{}, value_close{};
  std::string value_pad{};    // parameters: text on each side of a value that is not part of the value: a line end
  std::string text_open{}, text_close{};  // parameters: texts that may stand around a string value: "<![CDATA["
  std::string mark{};         // elements: text before every <

  // tool_grammar() writes a call as the following fields say. The parser does not use these fields, because it also accepts other forms.
  std::optional<CallList> list{};        // texts around several calls; nullopt: a region has one call, and regions follow each other
  std::vector<std::string> name_tails{}; // texts that may stand between the name and after_name
  bool has_id = false;                   // json: the id comes first
  bool marks_strings = false;            // parameters: string="true" or string="false" stands before value_open
};

enum class RegionKind : std::int32_t { reasoning = 0, text = 1, calls = 2 };

// A region of the output, between an `open` and a `close` marker.
struct OutputRegion {
  RegionKind kind = RegionKind::text;
  std::vector<std::string> open;     // markers that begin the region
  std::vector<std::string> close{};  // markers that end the region; none: it ends with the output, or (calls) after one call
  bool at_start = false;             // the region may only come before all text and calls
  bool keeps_open = false;           // true: the `open` marker is itself the beginning of the region's content
  CallForm call{};                   // form of the calls
  std::vector<CallForm> also{};      // further forms that the parser reads in the region, but the grammar never writes
};

// The header that stands before each message of an answer, as gpt-oss writes it: start ROLE channel NAME to=RECIPIENT end BODY. If there is
// a RECIPIENT: RECIPIENT is the name of a tool, BODY is a call of the tool, and the parser reads BODY like the content of the first region
// of calls (OutputFormat::regions). If there is none: the channel's NAME says of which kind BODY is (`channels`), and the parser reads BODY
// like the content of the first region of this kind.
struct MessageHeader {
  struct Channel {
    std::string name;
    RegionKind kind = RegionKind::text;
  };
  std::string start{}, channel{}, end{};
  std::string role{};       // the role after `start`; it is dropped: "assistant"
  std::string recipient{}, prefix{};  // texts before a call's name: "to=", and perhaps "functions."
  std::vector<Channel> channels{};  // known channels; any other channel is text
  std::vector<std::string> blank{};  // markers inside a header that are dropped
};

// An answer that consists of parts, as functionary 3.2 writes it: mark RECIPIENT line-end BODY, repeated. RECIPIENT is the name of a tool
// if BODY is a call, or another fixed word (`text`) if BODY is text. A prompt already ends with the first mark, so the output begins after
// that mark.
struct Recipients {
  std::string mark{};  // text before every part: ">>>". The region of calls begins with the same text
  std::string text{};  // text after the mark, in a part that is text: "all\n"
};

// A description of what a model writes.
//
//   const OutputFormat format{.name = "mine",
//                             .regions = {{.kind = RegionKind::reasoning, .open = {"<think>"}, .close = {"</think>"}},
//                                         {.kind = RegionKind::calls, .open = {"<tool_call>"}, .close = {"</tool_call>"}}},
//                             .dropped = {"<|im_end|>"}};
struct OutputFormat {
  std::string name;
  std::vector<OutputRegion> regions;   // everything outside of all regions is text
  std::vector<std::string> dropped{};  // markers that are left out of the text: "<|im_end|>"
  std::string between{};               // text that a model may write after reasoning, before the text or calls: "<|start|>assistant"
  std::optional<MessageHeader> header{};  // if set, the parser reads headers instead of the regions' `open`
  // If set, the answer consists of parts (Recipients). A mark begins a call if a name and a line end follow the
  // mark, and if the name is a known tool's or the body begins with {. Any other mark is plain text.
  std::optional<Recipients> recipients{};

  // Returns whether `prompt` ends with the marker that opens reasoning, because the template itself wrote "<think>". White space after the
  // marker does not matter. If true, set OutputParserOptions::starts_in_reasoning.
  [[nodiscard]] bool ends_in_reasoning(std::string_view prompt) const noexcept;
  // Returns whether `text` is a marker that closes a region, or one of the dropped markers. Call it with the text of the token that ended
  // an answer. If true, pass that text to the parser too: it may be the end of a call.
  [[nodiscard]] bool closes_with(std::string_view text) const noexcept;
};

// Returns the formats that the library knows: hermes, qwen-xml, llama-json, pythonic, mistral, mistral-args, harmony, deepseek-v3,
// deepseek-v3.1, deepseek-dsml, glm, kimi, minimax, gemma, granite, cohere, command-r, lfm, seed, minimax-m3, apriel, functionary,
// functionary-3.2, apertus, gigachat, gigachat-3.1, hunyuan, minicpm, solar, nemotron, think.
[[nodiscard]] Result<std::vector<OutputFormat>> output_formats() noexcept;
// Returns the format that has this name. Errors: not_found, whose message lists the known names.
[[nodiscard]] Result<OutputFormat> find_output_format(std::string_view name) noexcept;
// Returns the format whose markers the template writes. If the template writes no known markers, returns the format "think": text and
// <think>.
[[nodiscard]] Result<OutputFormat> choose_output_format(const ChatTemplate& chat_template) noexcept;

// Returns the stretches of an output in which stop strings should not end it, for StopFree::stretches: the reasoning, and the headers of
// messages. If the format has reasoning, the first element is the reasoning. Set StopFree::starts_inside if the prompt ends in reasoning.
[[nodiscard]] Result<std::vector<MarkedText>> reasoning_stretches(const OutputFormat& format) noexcept;
// Returns the control tokens of which the format's markers consist. OutputParser must see these tokens (GenerateOptions::shown_control).
[[nodiscard]] Result<std::vector<Token>> marker_tokens(const Tokenizer& tokenizer, const OutputFormat& format) noexcept;

}  // namespace tessera
