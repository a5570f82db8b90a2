// The endpoints: each reads a request of its API into plans for the scheduler, and writes the results. A mistake of the client is
// thrown as an ApiError.
#pragma once

#include "answer_fields.hpp"
#include "answer_job.hpp"
#include "field_rules.hpp"
#include "http.hpp"
#include "served_model.hpp"

namespace server {

struct Api {
  JobContext job;
  RequestLimits limits;
  bool strict_model = false;  // a request that names another model is an error; else the served model answers it
};

// One request of a client.
struct Call {
  const HttpRequest& request;
  HttpReplyPtr reply;
  Caller caller;
  OnAnswered on_answered;
  Notes& notes;  // parts of the request without effect
};

// Returns the body as JSON, with only the fields that the endpoint reads (field_rules.hpp). Errors say where the body stops being
// JSON, or name the field.
[[nodiscard]] tessera::Json body_of(const Call& call, Endpoint endpoint);
// Reads the model's name. Any name means the served model. Exception: with Api::strict_model another name is an error.
void check_model(Fields& fields, const Api& api);
[[nodiscard]] std::string new_id(std::string_view prefix);  // "chatcmpl-4f..."
[[nodiscard]] std::int64_t unix_time();

// OpenAI
void chat_completions(const Api& api, const Call& call);
void completions(const Api& api, const Call& call);
void responses(const Api& api, const Call& call);
void embeddings(const Api& api, const Call& call);
void rerank(const Api& api, const Call& call);  // Jina's and Cohere's
[[nodiscard]] HttpResponse list_models(const Api& api);
[[nodiscard]] HttpResponse one_model(const Api& api, std::string_view id);
// Anthropic
void messages(const Api& api, const Call& call);
void count_tokens(const Api& api, const Call& call);
// Ours
void tokenize(const Api& api, const Call& call);
void detokenize(const Api& api, const Call& call);
void apply_template(const Api& api, const Call& call);
[[nodiscard]] HttpResponse tokenizer_info(const Api& api);

}  // namespace server
