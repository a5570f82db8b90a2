// The endpoints, one function each. An endpoint reads a request of its API, turns it into plans for the scheduler, and writes the results.
// Throws ApiError for a mistake of the client.
#pragma once

#include "answers/answer_job.hpp"
#include "fields/answer_fields.hpp"
#include "fields/field_rules.hpp"
#include "http.hpp"
#include "kv/kv_transfer.hpp"
#include "models/models.hpp"
#include "models/served_model.hpp"

namespace server {

struct Api {
  JobContext job;
  RequestLimits limits;
  bool stays = true;  // the model is loaded as long as the server runs
};

// One request of a client.
struct Call {
  const HttpRequest& request;
  HttpReplyPtr reply;
  Caller caller;
  OnAnswered on_answered;
  Notes& notes;  // notes about parts of the request without effect
  KvTransfers& kv;
  ModelLease lease{};             // the request's hold on its model; every job that goes on keeps a copy
  tessera::Json* body = nullptr;  // the request's body as JSON; nullptr: body_of() parses the body
};

// Returns the body as JSON. Throws ApiError, which says where the body stops being JSON.
[[nodiscard]] tessera::Json read_body(const HttpRequest& request);

// Returns the request's body as JSON, with only the fields that the endpoint reads; the other fields are removed and noted
// (field_rules.hpp). Call this only once for a request. Errors: those of read_body(), or an error that names the field.
[[nodiscard]] tessera::Json body_of(const Call& call, Endpoint endpoint);
// Marks the field `model` as read. The server has chosen the model by this name already (ModelNames::find()).
void pass_model(Fields& fields);
// Returns the value of a field in the query of a path, with its escapes decoded; empty if it is absent.
[[nodiscard]] std::string query_field(std::string_view query, std::string_view name);
[[nodiscard]] std::string new_id(std::string_view prefix);  // "chatcmpl-4f..."
[[nodiscard]] std::int64_t unix_time();

// OpenAI
void chat_completions(const Api& api, const Call& call);
void completions(const Api& api, const Call& call);
void responses(const Api& api, const Call& call);
void embeddings(const Api& api, const Call& call);
void rerank(const Api& api, const Call& call);  // Jina's and Cohere's
void score(const Api& api, const Call& call);   // vLLM's
void list_models(const Models& models, const Call& call);
void one_model(const Models& models, const Call& call);
// Anthropic
void messages(const Api& api, const Call& call);
void count_tokens(const Api& api, const Call& call);
// Ours
void tokenize(const Api& api, const Call& call);
void detokenize(const Api& api, const Call& call);
void apply_template(const Api& api, const Call& call);
[[nodiscard]] HttpResponse tokenizer_info(const Api& api);

}  // namespace server
