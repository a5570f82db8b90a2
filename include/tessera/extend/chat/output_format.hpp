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

// The way in which a model writes a tool call. NAME and the like stand for what the model writes; open, after_name and the like are the
// texts of CallForm. In all ways but `json` and `pythonic` a call is: open NAME after_name ... close.
enum class CallSyntax : std::int32_t {
  json = 0,        // {"name": NAME, "arguments": {...}}, alone or in a list
  named_json = 1,  // NAME, then the arguments as JSON
  parameters = 2,  // NAME, then key_open KEY key_close ... value_open VALUE value_close, repeated
  pythonic = 3,    // [name(key=value, ...), ...]
  braces = 4,      // NAME{key:value,...}, strings between <|"|>
  elements = 5,    // NAME, then mark<KEY>VALUE mark</KEY>, repeated; a VALUE may be elements again; KEY is "item" in a list
};

// The texts in front of, between and behind several calls of one region (OutputRegion). A separator may have white space around it.
struct CallList {
  std::string open{}, separator{}, close{};
};

// The markers and keys of a call.
struct CallForm {
  CallSyntax syntax = CallSyntax::json;
  // json: the keys of a call. With an empty name_key the call has one key: the key is the name, and its value the arguments.
  std::string name_key = "name", arguments_key = "arguments", id_key = "id";
  std::string open{}, after_name{}, close{};
  std::string id_end{};       // text behind an id that stands in front of the name; empty: no id stands there
  std::string name_prefix{};  // text in front of the name that is no part of it: "functions."
  // If set: the model writes an id in the place of the name, and the part of the id before this mark is the name. With the mark ":", the
  // id "functions.add:0" names "functions.add".
  std::string id_mark{};
  std::string name_end{};     // characters that end a name before after_name does
  std::string key_open{}, key_close{}, value_open{}, value_close{};
  std::string value_pad{};    // parameters: text on each side of a value that is no part of it: a line end
  std::string text_open{}, text_close{};  // parameters: texts that may stand around a string value: "<![CDATA["
  std::string mark{};         // elements: text in front of every <

  // The fields from here on say what tool_grammar() lets a model write. The parser does not use them, because it also accepts other forms.
  std::optional<CallList> list{};        // texts around several calls; nullopt: a region has one call, and regions follow each other
  std::vector<std::string> name_tails{}; // texts that may stand between the name and after_name
  bool has_id = false;                   // json: the id comes first
  bool marks_strings = false;            // parameters: string="true" or string="false" stands in front of value_open
};

enum class RegionKind : std::int32_t { reasoning = 0, text = 1, calls = 2 };

// A stretch of the output between an `open` and a `close` marker.
struct OutputRegion {
  RegionKind kind = RegionKind::text;
  std::vector<std::string> open;     // markers that begin the region
  std::vector<std::string> close{};  // markers that end the region; none: the output's end, or for calls the end of one call
  bool at_start = false;             // the region begins only in front of all text and calls
  bool keeps_open = false;           // true: the `open` marker is itself the beginning of the region's content
  CallForm call{};                   // form of the calls
  std::vector<CallForm> also{};      // other forms that the parser reads in the region, and the grammar does not write
};

// The header of a message, as gpt-oss writes it: start ROLE channel NAME to=RECIPIENT end BODY. The parser reads the body like the content
// of one of OutputFormat::regions: if there is a recipient, the first one of calls; otherwise, the first one of the channel's kind.
struct MessageHeader {
  struct Channel {
    std::string name;
    RegionKind kind = RegionKind::text;
  };
  std::string start{}, channel{}, end{};
  std::string role{};       // the role behind `start`, which is dropped: "assistant"
  std::string recipient{}, prefix{};  // texts in front of a call's name: "to=", and perhaps "functions."
  std::vector<Channel> channels{};  // known channels; any other channel is text
  std::vector<std::string> blank{};  // markers inside of a header that are dropped
};

// An answer in parts that each begin with a recipient, as functionary 3.2 writes it: mark RECIPIENT line end BODY. A prompt ends with
// the first mark, so an output begins behind that mark.
struct Recipients {
  std::string mark{};  // text in front of every part: ">>>". The region of calls begins with the same text
  std::string text{};  // text behind the mark of a part that is text: "all\n"
};

// The description of what a model writes.
//
//   const OutputFormat format{.name = "mine",
//                             .regions = {{.kind = RegionKind::reasoning, .open = {"<think>"}, .close = {"</think>"}},
//                                         {.kind = RegionKind::calls, .open = {"<tool_call>"}, .close = {"</tool_call>"}}},
//                             .dropped = {"<|im_end|>"}};
struct OutputFormat {
  std::string name;
  std::vector<OutputRegion> regions;   // everything outside of all regions is text
  std::vector<std::string> dropped{};  // markers that are left out of the text: "<|im_end|>"
  std::string between{};               // text that a model may write between reasoning and what follows: "<|start|>assistant"
  std::optional<MessageHeader> header{};  // if set, the parser reads headers instead of the regions' `open`
  // If set, a mark begins a call only if a name and a line end follow, and the name is a tool's or the body begins with {. Any other
  // mark is text.
  std::optional<Recipients> recipients{};

  // Returns whether a prompt ends with the marker that opens reasoning, as the prompts of templates that write "<think>" themselves do.
  // White space behind the marker does not matter. Then set OutputParserOptions::starts_in_reasoning.
  [[nodiscard]] bool ends_in_reasoning(std::string_view prompt) const noexcept;
  // Returns whether a text closes one of the regions or is one of the dropped markers. If the token that ended an answer has this text,
  // the parser must read it too.
  [[nodiscard]] bool closes_with(std::string_view text) const noexcept;
};

// Returns the formats that the library knows: hermes, qwen-xml, llama-json, pythonic, mistral, mistral-args, harmony, deepseek-v3,
// deepseek-v3.1, deepseek-dsml, glm, kimi, minimax, gemma, granite, cohere, command-r, lfm, seed, minimax-m3, apriel, functionary,
// functionary-3.2, apertus, gigachat, gigachat-3.1, hunyuan, minicpm, solar, nemotron, think.
[[nodiscard]] Result<std::vector<OutputFormat>> output_formats() noexcept;
// Returns the format of a name. Errors: not_found, which lists the names.
[[nodiscard]] Result<OutputFormat> find_output_format(std::string_view name) noexcept;
// Returns the format whose markers the template writes. If the template writes none, returns "think": text and <think>.
[[nodiscard]] Result<OutputFormat> choose_output_format(const ChatTemplate& chat_template) noexcept;

// Returns the stretches of an output in which stop strings should not end it, for StopFree::stretches: the reasoning, and the headers of
// messages. If the format has reasoning, that is the first element. So if the prompt ends in reasoning, set StopFree::starts_inside.
[[nodiscard]] Result<std::vector<MarkedText>> reasoning_stretches(const OutputFormat& format) noexcept;
// Returns the control tokens that the format's markers are made of. OutputParser must see them (GenerateOptions::shown_control).
[[nodiscard]] Result<std::vector<Token>> marker_tokens(const Tokenizer& tokenizer, const OutputFormat& format) noexcept;

}  // namespace tessera
