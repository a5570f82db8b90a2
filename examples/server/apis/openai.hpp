// Shared parts of OpenAI's APIs: log-probabilities, usage, finish reasons, the fields of streams.
#pragma once

#include <tessera/generation.hpp>
#include <tessera/json/json.hpp>
#include <tessera/text/tokenizer.hpp>

#include "answers/answer_writer.hpp"
#include "fields/fields.hpp"

namespace server {

// Returns a token's text. Bytes that are not UTF-8 by themselves become U+FFFD; the field `bytes` has the bytes themselves.
[[nodiscard]] std::string shown_token(const tessera::Tokenizer& tokenizer, tessera::Token token);
[[nodiscard]] tessera::Json chat_logprob(const tessera::Tokenizer& tokenizer, const tessera::Piece& piece, std::size_t top);

[[nodiscard]] tessera::Json openai_usage(const Usage& usage);
[[nodiscard]] const char* openai_reason(const Finish& finish);
// Write the last events of a stream of chunks.
void end_openai_stream(HttpReply& reply);
void fail_openai_stream(HttpReply& reply, const ApiError& error);
// The fields of a request about streams: whether the answer is a stream, and what the stream has besides the answer.
struct StreamFields {
  bool streams = false;
  bool shows_usage = false;     // stream_options.include_usage
  bool shows_running_usage = false;  // stream_options.continuous_usage_stats: each piece has the usage so far
  bool shows_progress = false;  // return_progress: progress comes as events, not as comments
};
[[nodiscard]] StreamFields read_stream(Fields& fields);

}  // namespace server
