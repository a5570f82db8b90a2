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
  // call_end: true if the arguments are no JSON object, or if a piece of the call could not be read and was left out. Do not run a broken
  // call; tell the model what it wrote.
  bool broken = false;
  bool operator==(const OutputDelta&) const = default;
};

// The way in which an output ended. whole: the model, a stop token or a stop string ended it. cut: it ended in the middle of something,
// by max_tokens for example.
enum class OutputEnd : std::int32_t { whole = 0, cut = 1 };

// Bytes [begin, end) of an output, counted from its first byte.
struct OutputSpan {
  std::size_t begin = 0, end = 0;
  bool operator==(const OutputSpan&) const = default;
};

struct OutputParserOptions {
  bool starts_in_reasoning = false;  // the prompt ends in reasoning (OutputFormat::ends_in_reasoning())
  std::vector<Json> tools{};  // ChatRequest::tools: a parameter whose schema allows strings alone stays text, whatever it looks like
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

  // Reads more of the output, with control tokens shown (ControlText::show), and returns the pieces that are certain now. Pass the output
  // in pieces of any size: the texts of all deltas, put together, do not depend on where the output was cut.
  [[nodiscard]] Result<std::vector<OutputDelta>> push(std::string_view text) noexcept;
  // Ends the output. Bytes that were held back, because they may begin a marker or a call, become text if the output is whole, and are
  // dropped if it was cut. A call that was begun and not ended has no call_end. docs/reference/output-parsing.md says what becomes of
  // malformed elements.
  [[nodiscard]] Result<std::vector<OutputDelta>> finish(OutputEnd end = OutputEnd::whole) noexcept;

  // Returns the bytes of the output, in order, that were text (no reasoning, no call, no marker) since the last take_text_spans(). With
  // them a caller finds the tokens of the answer. Exception: around a malformed header or call a span may be off by the bytes that were
  // left out there.
  [[nodiscard]] Result<std::vector<OutputSpan>> take_text_spans() noexcept;

  // Returns everything so far as a message of the assistant. A call's arguments are an object if they are whole. Otherwise, and if they
  // hold a number that a double cannot hold, they are a string with the text as it was written.
  [[nodiscard]] Result<Message> message() const noexcept;

 private:
  struct State;
  explicit OutputParser(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
