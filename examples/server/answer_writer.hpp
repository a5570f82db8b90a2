// What comes of a request, told step by step: each API writes it in its own words, as a whole or as a stream of events.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tessera/chat/output_parser.hpp>
#include <tessera/generation.hpp>
#include <tessera/text/tokenizer.hpp>

#include "api_error.hpp"
#include "http.hpp"

namespace server {

struct Usage {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;      // of them: taken from the prefix index
  std::uint64_t completion_tokens = 0;  // of all choices
  std::uint64_t reasoning_tokens = 0;   // of them
  std::uint64_t drafted_tokens = 0, accepted_tokens = 0;
  double reading_seconds = 0.0;  // from the first row of the prompt to the first token; of several prompts: the longest
  double writing_seconds = 0.0;  // from the first token to the end, in the same way
};

// How one choice ended. `stop` is the stop string that was met, if one was.
struct Finish {
  tessera::FinishReason reason = tessera::FinishReason::none;
  bool has_calls = false;
  std::string stop{};
};

// A field of a call that the parser could not read, or not whole (OutputDelta::broken), on every API: such a call must not be run.
inline constexpr const char* kBroken = "broken";

// How much of the prompts of a request is computed.
struct PromptProgress {
  std::uint64_t total = 0;     // tokens
  std::uint64_t cached = 0;    // of them: taken from the prefix index
  std::uint64_t computed = 0;  // of them: computed, or taken from there
  double seconds = 0.0;        // since the first step with any of them began
};

// Calls come one at a time, in order; choices are counted over all prompts of the request.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  virtual void begin() {}  // the scheduler has taken all of it
  // Tokens of all choices so far, told before what the last of them adds.
  virtual void count(std::uint64_t /*completion_tokens*/) {}
  // More of the prompts is computed: told after each step that computed some, where wants_progress().
  [[nodiscard]] virtual bool wants_progress() const { return false; }
  virtual void progress(const PromptProgress& /*progress*/) {}
  // A token of the answer's text, with its log-probabilities, where they were asked for; the text comes after it. Those of reasoning,
  // of calls, of markers and the one that ended the answer are none. `at`: characters of the text in front of it.
  virtual void token_at(std::size_t choice, const tessera::Piece& piece, std::size_t /*at*/) { token(choice, piece); }
  virtual void token(std::size_t /*choice*/, const tessera::Piece& /*piece*/) {}
  virtual void add(std::size_t choice, const tessera::OutputDelta& delta) = 0;
  virtual void finish(std::size_t choice, const Finish& finish) = 0;
  virtual void end(const Usage& usage) = 0;
  virtual void fail(const ApiError& error) = 0;  // instead of all that would have followed
};

// The arguments of a call as an object. An answer that was cut within a call has none: its text is kept, as "unfinished".
[[nodiscard]] inline tessera::Json arguments_of(const std::string& text) {
  tessera::Json object = tessera::Json::object();
  if (text.empty()) return object;
  if (auto arguments = tessera::Json::parse(text); arguments && arguments->members() != nullptr) return *std::move(arguments);
  object.set("unfinished", text);
  return object;
}

// Server-sent events.
[[nodiscard]] inline std::string sse(const tessera::Json& data) { return "data: " + data.dump() + "\n\n"; }
[[nodiscard]] inline std::string sse(std::string_view event, const tessera::Json& data) {
  return "event: " + std::string(event) + "\n" + sse(data);
}
inline constexpr const char* kSseIdle = ": still here\n\n";
[[nodiscard]] inline HttpResponse sse_response() {
  return {.type = "text/event-stream; charset=utf-8", .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}};
}

}  // namespace server
