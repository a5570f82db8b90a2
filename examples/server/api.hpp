// The endpoints: each reads a request of its API into plans for the scheduler, and writes what comes of them. Mistakes of the
// client are thrown (ApiError).
#pragma once

#include "answer_fields.hpp"
#include "answer_job.hpp"
#include "http.hpp"
#include "served_model.hpp"

namespace server {

struct Api {
  JobContext job;
  RequestLimits limits;
};

// One request of a client.
struct Call {
  const HttpRequest& request;
  HttpReplyPtr reply;
  Caller caller;
  OnAnswered on_answered;
};

// The body as JSON; an error says where it stops being that.
[[nodiscard]] tessera::Json body_of(const HttpRequest& request);
// The model's name in a request: this server has one, whatever its name; another one's is an error.
void check_model(Fields& fields, const ServedModel& model);
[[nodiscard]] std::string new_id(std::string_view prefix);  // "chatcmpl-4f..."
[[nodiscard]] std::int64_t unix_time();

// OpenAI
void chat_completions(const Api& api, const Call& call);
void completions(const Api& api, const Call& call);
void responses(const Api& api, const Call& call);
void embeddings(const Api& api, const Call& call);
[[nodiscard]] HttpResponse list_models(const Api& api);
[[nodiscard]] HttpResponse one_model(const Api& api, std::string_view id);
// Anthropic
void messages(const Api& api, const Call& call);
void count_tokens(const Api& api, const Call& call);
// Ours
void tokenize(const Api& api, const Call& call);
void detokenize(const Api& api, const Call& call);
void apply_template(const Api& api, const Call& call);

}  // namespace server
