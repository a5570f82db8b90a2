// What a model writes, described: where its reasoning, its tool calls and its text stand, by the markers around them.
// A description is data: a new model's is a value of OutputFormat, not code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/chat/chat_template.hpp>
#include <tessera/text/marked_text.hpp>
#include <tessera/text/tokenizer.hpp>

namespace tessera {

// How one call is written. In all but `json` and `pythonic` it is: open NAME after_name ... close.
enum class CallSyntax : std::int32_t {
  json = 0,        // {"name": NAME, "arguments": {...}}, alone or in a list
  named_json = 1,  // NAME, then the arguments as JSON
  parameters = 2,  // NAME, then key_open KEY key_close ... value_open VALUE value_close, repeated
  pythonic = 3,    // [name(key=value, ...), ...]
  braces = 4,      // NAME{key:value,...}, strings between <|"|>
  elements = 5,    // NAME, then mark<KEY>VALUE mark</KEY>, repeated; a VALUE may be such elements again; a list's are called item
};

// How several calls of one region are written; a separator may have white space around it.
struct CallList {
  std::string open{}, separator{}, close{};
};

struct CallForm {
  CallSyntax syntax = CallSyntax::json;
  // json: the keys of a call. An empty name_key: the only key is the name, and its value the arguments.
  std::string name_key = "name", arguments_key = "arguments", id_key = "id";
  std::string open{}, after_name{}, close{};
  std::string id_end{};       // an id stands in front of the name, up to this
  std::string name_prefix{};  // in front of the name, and no part of it: "functions."
  std::string id_mark{};      // the name as written is the call's id, and ends here: ":" of "functions.add:0"
  std::string name_end{};     // characters that end a name before after_name does
  std::string key_open{}, key_close{}, value_open{}, value_close{};
  std::string value_pad{};    // parameters: stands on each side of a value, and is no part of it: a line end
  std::string text_open{}, text_close{};  // parameters: may stand around a value that is a string: "<![CDATA["
  std::string mark{};         // elements: stands in front of every <

  // What only the grammar needs: the parser reads more than models should write.
  std::optional<CallList> list{};        // none: one call a region, and regions one after the other
  std::vector<std::string> name_tails{}; // that may stand between the name and after_name
  bool has_id = false;                   // json: the id comes first
  bool marks_strings = false;            // parameters: string="true" or "false" stands in front of value_open
};

enum class RegionKind : std::int32_t { reasoning = 0, text = 1, calls = 2 };

struct OutputRegion {
  RegionKind kind = RegionKind::text;
  std::vector<std::string> open;     // any of these begins it
  std::vector<std::string> close{};  // and any of these ends it; none: the output's end, or of calls what is no call
  bool at_start = false;             // begins only where nothing was written yet
  bool keeps_open = false;           // `open` is the first of its content
  CallForm call{};                   // of calls
  std::vector<CallForm> also{};      // other forms that the parser reads in such a region, and the grammar does not write
};

// Messages that begin with a header, as gpt-oss writes them: start ROLE channel NAME to=RECIPIENT end BODY. The region of a
// body is the first one of the channel's kind, or of calls where there is a recipient.
struct MessageHeader {
  struct Channel {
    std::string name;
    RegionKind kind = RegionKind::text;
  };
  std::string start{}, channel{}, end{};
  std::string role{};       // that start is followed by, and that says nothing
  std::string recipient{}, prefix{};  // stand in front of a call's name: "to=", and perhaps "functions."
  std::vector<Channel> channels{};  // any other is text
  std::vector<std::string> blank{};  // markers that say nothing inside of a header
};

// Answers of parts that each begin with a recipient, as functionary 3.2 writes them: mark RECIPIENT line end BODY. A prompt ends
// with the mark, so an output begins behind one.
struct Recipients {
  std::string mark{};  // in front of every part: ">>>", which is also what the region of calls begins with
  std::string text{};  // behind the mark of a part that is text: "all\n"
};

struct OutputFormat {
  std::string name;
  std::vector<OutputRegion> regions;   // what stands outside of all is text
  std::vector<std::string> dropped{};  // markers that say nothing to a reader: "<|im_end|>"
  std::string between{};               // of these the one that a model writes between reasoning and what follows
  std::optional<MessageHeader> header{};  // the parser then reads headers, and not the regions' `open`
  // A mark begins a call only where a name, a line end, and an object or the arguments of one of the tools follow: else it is text.
  std::optional<Recipients> recipients{};

  // Whether a prompt ends inside of reasoning, as that of templates that write "<think>" themselves: see
  // OutputParserOptions::starts_in_reasoning.
  [[nodiscard]] bool ends_in_reasoning(std::string_view prompt) const noexcept;
  // Whether a text, as that of a token which ends an answer, closes one of the regions or is one of the dropped markers: then
  // the parser is to read it too.
  [[nodiscard]] bool closes_with(std::string_view text) const noexcept;
};

// Those we know: hermes, qwen-xml, llama-json, pythonic, mistral, mistral-args, harmony, deepseek-v3, deepseek-v3.1,
// deepseek-dsml, glm, kimi, minimax, gemma, granite, cohere, command-r, lfm, seed, minimax-m3, apriel, functionary,
// functionary-3.2, apertus, gigachat, gigachat-3.1, hunyuan, minicpm, solar, nemotron, think.
[[nodiscard]] Result<std::vector<OutputFormat>> output_formats() noexcept;
[[nodiscard]] Result<OutputFormat> find_output_format(std::string_view name) noexcept;  // not_found lists the names
// The one whose markers the template writes; "think", which is text and <think>, where it writes none.
[[nodiscard]] Result<OutputFormat> choose_output_format(const ChatTemplate& chat_template) noexcept;

// Where the reasoning stands in an output, and the headers of messages: stretches that are no answer, for GenerateOptions::stop_free.
// The first one is what an output begins in whose prompt ends in reasoning; it is there if the format has reasoning.
[[nodiscard]] Result<std::vector<MarkedText>> reasoning_stretches(const OutputFormat& format) noexcept;
// The control tokens that the format's markers are made of: what OutputParser is to be shown (GenerateOptions::shown_control).
[[nodiscard]] Result<std::vector<Token>> marker_tokens(const Tokenizer& tokenizer, const OutputFormat& format) noexcept;

}  // namespace tessera
