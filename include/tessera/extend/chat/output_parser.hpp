// Reads a model's output piece by piece: text, reasoning and tool calls.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/chat/message.hpp>
#include <tessera/core/result.hpp>
#include <tessera/extend/chat/output_format.hpp>

namespace tessera {

// A piece of the output.
struct OutputDelta {
  enum class Kind : std::int32_t { text = 0, reasoning = 1, call_begin = 2, call_arguments = 3, call_end = 4 };
  Kind kind = Kind::text;
  std::string text{};          // more of the text, the reasoning or the arguments (JSON)
  std::size_t call = 0;        // call_begin to call_end: index of the call in the output, from 0
  std::string name{}, id{};    // call_begin: name and id of the call; the id may be empty
  // call_end: true if the arguments are not a JSON object, or if a part of the call could not be read and was left out. Do not run a broken
  // call; send the model what it wrote.
  bool broken = false;
  bool operator==(const OutputDelta&) const = default;
};

// The way in which an output ended. whole: by the model, a stop token or a stop string. cut: in the middle, for example by max_tokens.
enum class OutputEnd : std::int32_t { whole = 0, cut = 1 };

// Bytes [begin, end) of an output, counted from its first byte.
struct OutputSpan {
  std::size_t begin = 0, end = 0;
  bool operator==(const OutputSpan&) const = default;
};

struct OutputParserOptions {
  bool starts_in_reasoning = false;  // the prompt ends in reasoning (OutputFormat::ends_in_reasoning())
  std::vector<Json> tools{};  // ChatRequest::tools. A parameter whose schema allows only strings stays text, even if it looks like a number
};

// A parser for one output. Threads: one at a time.
//
//   auto parser = OutputParser::create(*find_output_format("hermes"));
//   auto deltas = parser->push("<think>Easy.</think>4");            // again for every piece of the output
//   auto rest = parser->finish();
//   auto message = parser->message();                               // reasoning "Easy.", content "4"
class OutputParser {
 public:
  [[nodiscard]] static Result<OutputParser> create(const OutputFormat& format, OutputParserOptions options = {}) noexcept;
  OutputParser() noexcept;  // an empty handle (docs/headers.md)
  OutputParser(OutputParser&&) noexcept;
  OutputParser& operator=(OutputParser&&) noexcept;
  ~OutputParser();

  // Reads the next piece of the output, and returns the deltas that are certain now. Control tokens must be part of `text`
  // (ControlText::show). Pieces may have any size: the texts of all deltas, put together, do not depend on where the output was cut.
  [[nodiscard]] Result<std::vector<OutputDelta>> push(std::string_view text) noexcept;
  // Ends the output. Held back bytes (bytes that may begin a marker or a call) become text if the output is whole, and are dropped if it
  // was cut. A call without its end gets no call_end. docs/reference/output-parsing.md describes how malformed output is read.
  [[nodiscard]] Result<std::vector<OutputDelta>> finish(OutputEnd end = OutputEnd::whole) noexcept;

  // Returns which bytes of the output became text (not reasoning, calls or markers) since the last take_text_spans(), as spans of offsets,
  // in order. A caller uses the spans to find the tokens of the answer. Exception: near a malformed header or call, a span may be off by
  // the bytes that were left out there.
  [[nodiscard]] Result<std::vector<OutputSpan>> take_text_spans() noexcept;

  // Returns the output so far as a message of the assistant. A call's arguments are a JSON object. Exception: if they are incomplete, or
  // contain a number that a double cannot represent, they are a string with the text as the model wrote it.
  [[nodiscard]] Result<Message> message() const noexcept;

 private:
  struct State;
  explicit OutputParser(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
