// Reads what a model writes, as it comes: text, reasoning and tool calls.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/chat/message.hpp>
#include <tessera/chat/output_format.hpp>
#include <tessera/core/result.hpp>

namespace tessera {

struct OutputDelta {
  enum class Kind : std::int32_t { text = 0, reasoning = 1, call_begin = 2, call_arguments = 3, call_end = 4 };
  Kind kind = Kind::text;
  std::string text{};          // more of the text, the reasoning or the arguments (JSON)
  std::size_t call = 0;        // of a call: which, from 0
  std::string name{}, id{};    // of call_begin; the id may be empty
  // Of call_end: the arguments are no JSON object, or something in the call could not be read and was left out. Do not run
  // such a call; tell the model what it wrote.
  bool broken = false;
  bool operator==(const OutputDelta&) const = default;
};

// How an output ended. whole: where the model ended it, or a stop did. cut: anywhere, as by max_tokens.
enum class OutputEnd : std::int32_t { whole = 0, cut = 1 };

// Bytes of an output, from its first one on.
struct OutputSpan {
  std::size_t begin = 0, end = 0;
  bool operator==(const OutputSpan&) const = default;
};

struct OutputParserOptions {
  bool starts_in_reasoning = false;
  std::vector<Json> tools{};  // as ChatRequest has them: a parameter that may be no number stays text, whatever it looks like
};

class OutputParser {
 public:
  [[nodiscard]] static Result<OutputParser> create(const OutputFormat& format, OutputParserOptions options = {}) noexcept;
  OutputParser() noexcept;  // an empty handle (docs/headers.md)
  OutputParser(OutputParser&&) noexcept;
  OutputParser& operator=(OutputParser&&) noexcept;
  ~OutputParser();

  // More of the output, with control tokens shown (ControlText::show). However it is cut, the deltas' texts in a row are
  // the same.
  [[nodiscard]] Result<std::vector<OutputDelta>> push(std::string_view text) noexcept;
  // No more comes. What is held back, as it may be the beginning of a marker or of a call, is text if the output is whole; of one
  // that was cut it is dropped. A call that was begun and not ended has no call_end. docs/chat.md says what is done with elements
  // that are malformed.
  [[nodiscard]] Result<std::vector<OutputDelta>> finish(OutputEnd end = OutputEnd::whole) noexcept;

  // Where what has become text since the last call stood in the output, in order: to tell which tokens are the answer's. Of bytes
  // around a malformed header or call the span may be off by what of them was left out.
  [[nodiscard]] Result<std::vector<OutputSpan>> take_text_spans() noexcept;

  // All so far, as a message of the assistant. A call's arguments are an object where they are whole, else a string with the
  // text as it was written (and where a number in it is one that a double cannot hold).
  [[nodiscard]] Result<Message> message() const noexcept;

 private:
  struct State;
  explicit OutputParser(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
