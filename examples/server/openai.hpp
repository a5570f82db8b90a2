// What OpenAI's APIs have in common: log-probabilities, usage, reasons, the fields of streams.
#pragma once

#include <tessera/generation.hpp>
#include <tessera/json/json.hpp>
#include <tessera/text/tokenizer.hpp>

#include "answer_writer.hpp"
#include "fields.hpp"

namespace server {

// A token as it stands in texts. Bytes that are not UTF-8 by themselves are U+FFFD; `bytes` has them as they are.
[[nodiscard]] std::string shown_token(const tessera::Tokenizer& tokenizer, tessera::Token token);
[[nodiscard]] tessera::Json chat_logprob(const tessera::Tokenizer& tokenizer, const tessera::Piece& piece, std::size_t top);

[[nodiscard]] tessera::Json openai_usage(const Usage& usage);
[[nodiscard]] const char* openai_reason(const Finish& finish);
// The last events of a stream of chunks.
void end_openai_stream(HttpReply& reply);
void fail_openai_stream(HttpReply& reply, const ApiError& error);
// Reads stream and stream_options. `with_each_piece`, if any: whether each piece of the stream tells the usage so far.
[[nodiscard]] bool read_stream(Fields& fields, bool& shows_usage, bool* with_each_piece = nullptr);

}  // namespace server
