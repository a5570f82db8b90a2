// A client's request, read as far as the gateway needs it: the text that is compared with other questions; everything that must be equal if
// an answer is reused; and the reason why an answer must not be cached.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <tessera/json/json.hpp>

namespace gateway {

enum class Api { chat, completions };
[[nodiscard]] constexpr const char* path_of(Api api) { return api == Api::chat ? "/v1/chat/completions" : "/v1/completions"; }

struct CacheLimits {
  double temperature = 1.0;     // requests with a higher temperature are not cached
  std::size_t turns = 4;        // conversations with more user messages are not cached
  std::size_t text_bytes = 4000;  // requests whose compared text has more bytes are not cached
};

struct Question {
  Api api = Api::chat;
  std::string_view written{};   // the request's body, which must outlive the question
  tessera::Json body{};         // as the client sent it, numbers as written
  bool streams = false;
  bool wants_usage = false;     // stream_options.include_usage
  bool wants_logprobs = false;
  bool has_tools = false;
  std::size_t turns = 1;        // user messages
  std::string text{};           // the last user message, or the prompt: the text that is compared
  std::string context{};        // everything else that an answer depends on: the model, earlier messages, sampling fields, in one order
  std::string never_cached{};   // the reason why the answer is neither looked up nor stored; empty: none
};

// Drops the large values of a question that has to wait: `body` and `context`, which take several times the bytes of the request's body.
void put_away(Question& question) noexcept;
// Reads `body` again after put_away(). `context` stays empty. Does nothing if `body` is there.
void take_up(Question& question);

// Reads a request's body, which must outlive the question. Throws server::ApiError (400) for JSON that is broken or that has no messages or prompt.
[[nodiscard]] Question read_question(Api api, std::string_view body, const CacheLimits& limits);

}  // namespace gateway
