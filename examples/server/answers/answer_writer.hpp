// The interface through which a job passes the results of a request, step by step, to one API. Each API has an AnswerWriter that writes the
// results in its form: as a whole, or as a stream of events.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tessera/extend/chat/output_parser.hpp>
#include <tessera/generation.hpp>
#include <tessera/text/tokenizer.hpp>

#include "api_error.hpp"
#include "http.hpp"

namespace server {

struct Usage {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;      // prompt tokens taken from the prefix index
  std::uint64_t completion_tokens = 0;  // tokens of all choices
  std::uint64_t reasoning_tokens = 0;   // completion tokens that are reasoning
  std::uint64_t drafted_tokens = 0, accepted_tokens = 0;
  double reading_seconds = 0.0;  // from the first row of the prompt to the first token; with several prompts the longest time
  double writing_seconds = 0.0;  // from the first token to the end; with several prompts the longest time
};

// The end of a choice. `stop`: the stop string that ended it, if one did.
struct Finish {
  tessera::FinishReason reason = tessera::FinishReason::none;
  bool has_calls = false;
  std::string stop{};
};

// The name of a field of calls in the answers of every API. The field marks a call that the parser could not read completely
// (OutputDelta::broken). Clients must not run such a call.
inline constexpr const char* kBroken = "broken";

// The progress of a request's prompts.
struct PromptProgress {
  std::uint64_t total = 0;     // tokens
  std::uint64_t cached = 0;    // tokens taken from the prefix index
  std::uint64_t computed = 0;  // tokens computed, or taken from the prefix index
  double seconds = 0.0;        // since the beginning of the first step with these prompts
};

// The functions are called one at a time, in order. `choice` numbers the choices of all prompts of the request.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  virtual void begin() {}  // the scheduler has taken the whole request
  // Receives the number of tokens of all choices so far. Called before add() gets the text of the last of these tokens.
  virtual void count(std::uint64_t /*completion_tokens*/) {}
  // If wants_progress() returns true, progress() is called after each step that computed tokens of the prompts.
  [[nodiscard]] virtual bool wants_progress() const { return false; }
  virtual void progress(const PromptProgress& /*progress*/) {}
  // Receives one token with its log-probabilities, before add() gets its text. Called only if the client wants log-probabilities, and only
  // for tokens of the answer's text: not for tokens of reasoning, calls and markers, and not for the token that ended the answer. `at`:
  // characters of the answer's text in front of the token.
  virtual void token_at(std::size_t choice, const tessera::Piece& piece, std::size_t /*at*/) { token(choice, piece); }
  virtual void token(std::size_t /*choice*/, const tessera::Piece& /*piece*/) {}
  virtual void add(std::size_t choice, const tessera::OutputDelta& delta) = 0;
  virtual void finish(std::size_t choice, const Finish& finish) = 0;
  // Receives the field kv_transfer_params of the answer (kv_transfer.hpp), before end().
  virtual void kv_transfer(tessera::Json /*params*/) {}
  virtual void end(const Usage& usage) = 0;
  virtual void fail(const ApiError& error) = 0;  // called instead of all further functions
};

// Returns the arguments of a call as an object. If the answer was cut within the call, the object has the text as "unfinished".
[[nodiscard]] inline tessera::Json arguments_of(const std::string& text) {
  tessera::Json object = tessera::Json::object();
  if (text.empty()) return object;
  if (auto arguments = tessera::Json::parse(text); arguments && arguments->members() != nullptr) return *std::move(arguments);
  object.set("unfinished", text);
  return object;
}

// Return server-sent events.
[[nodiscard]] inline std::string sse(const tessera::Json& data) { return "data: " + data.dump() + "\n\n"; }
[[nodiscard]] inline std::string sse(std::string_view event, const tessera::Json& data) {
  return "event: " + std::string(event) + "\n" + sse(data);
}
inline constexpr const char* kSseIdle = ": still here\n\n";
[[nodiscard]] inline HttpResponse sse_response() {
  return {.type = "text/event-stream; charset=utf-8", .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}};
}

}  // namespace server
