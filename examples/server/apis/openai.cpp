#include "apis/openai.hpp"

#include <algorithm>

#include "json_object.hpp"

namespace server {

using tessera::FinishReason;
using tessera::Json;

std::string shown_token(const tessera::Tokenizer& tokenizer, tessera::Token token) {
  if (tokenizer.is_control(token)) return std::string(tokenizer.text(token));
  return std::string(tokenizer.piece(token));  // Json::dump() replaces bytes that are not UTF-8
}

namespace {

Object one_logprob(const tessera::Tokenizer& tokenizer, tessera::Token token, float logprob) {
  const std::string text = shown_token(tokenizer, token);
  Json::Array bytes;
  for (const char c : text) bytes.emplace_back(static_cast<std::int64_t>(static_cast<unsigned char>(c)));
  return Object().set("token", text).set("logprob", std::max(static_cast<double>(logprob), -9999.0)).set("bytes", std::move(bytes));
}

}  // namespace

Json chat_logprob(const tessera::Tokenizer& tokenizer, const tessera::Piece& piece, std::size_t top) {
  Json::Array list;
  for (std::size_t i = 0; i < top && i < piece.top.size(); ++i) list.push_back(one_logprob(tokenizer, piece.top[i].token, piece.top[i].logprob));
  return one_logprob(tokenizer, piece.token, piece.logprob).set("top_logprobs", std::move(list));
}

Json openai_usage(const Usage& usage) {
  return Object()
      .set("prompt_tokens", static_cast<std::int64_t>(usage.prompt_tokens))
      .set("completion_tokens", static_cast<std::int64_t>(usage.completion_tokens))
      .set("total_tokens", static_cast<std::int64_t>(usage.prompt_tokens + usage.completion_tokens))
      .set("prompt_tokens_details", Object().set("cached_tokens", static_cast<std::int64_t>(usage.cached_tokens)))
      .set("completion_tokens_details", Object()
                                            .set("reasoning_tokens", static_cast<std::int64_t>(usage.reasoning_tokens))
                                            .set("accepted_prediction_tokens", 0)
                                            .set("rejected_prediction_tokens", 0));
}

const char* openai_reason(const Finish& finish) {
  if (finish.reason == FinishReason::max_tokens) return "length";
  return finish.has_calls ? "tool_calls" : "stop";
}

void end_openai_stream(HttpReply& reply) {
  reply.write("data: [DONE]\n\n");
  reply.end_stream();
}

void fail_openai_stream(HttpReply& reply, const ApiError& error) {
  reply.write(sse(to_json(error, ApiKind::openai)));
  reply.end_stream();
}

StreamFields read_stream(Fields& fields) {
  StreamFields stream{.streams = fields.boolean("stream").value_or(false), .shows_progress = fields.boolean("return_progress").value_or(false)};
  if (const Json* options = fields.object("stream_options")) {
    Fields inner(*options, "stream_options");
    stream.shows_usage = inner.boolean("include_usage").value_or(false);
    stream.shows_running_usage = inner.boolean("continuous_usage_stats").value_or(false);
    if (!stream.streams) fields.refuse("stream_options", "This field is for streams: set stream to true, or leave it out.");
  }
  return stream;
}

}  // namespace server
