// POST /api/embed and /api/embeddings
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "answer_wish.hpp"
#include "answers/embedding_job.hpp"
#include "json_object.hpp"
#include "names.hpp"
#include "ollama.hpp"

namespace server::ollama {

using tessera::Json;
using tessera::Token;

namespace {

// Reads the tokens of a text, at most as many as the context holds.
struct TextReader {
  const ServedModel& model;
  std::size_t context;
  bool cuts;
  Notes& notes;

  [[nodiscard]] std::vector<Token> tokens_of(const std::string& text, const std::string& field) const {
    std::vector<Token> tokens = model.encode(text, false);
    if (const auto bos = model.tokenizer().bos(); tokens.empty() && bos) tokens.push_back(*bos);
    if (tokens.empty()) throw ApiError(400, "This text is empty.", field);
    if (tokens.size() <= context) return tokens;
    if (!cuts) throw ApiError(400, fmt::format("This text has {} tokens, and the context is {}: shorten it, or send truncate.", tokens.size(), context), field, "context_length_exceeded");
    notes.warn(fmt::format("{} has {} tokens: the first {} are read.", field, tokens.size(), context));
    // The tokens that the model wants at the end of a text stay at the end of the cut text.
    const std::vector<Token>& back = model.tokenizer().frame().back;
    if (back.size() < context) std::copy(back.begin(), back.end(), tokens.begin() + static_cast<std::ptrdiff_t>(context - back.size()));
    tokens.resize(context);
    return tokens;
  }
};

TextReader read_reader(Fields& fields, const Api& api, Notes& notes) {
  const ServedModel& model = api.job.model;
  (void)read_keep_alive(fields, api, notes);
  std::size_t context = 0;
  if (const Json* given = fields.object("options")) {
    Fields options(*given, "options");
    context = read_context(options, model, notes);
  }
  return {.model = model, .context = context != 0 ? std::min(context, most_tokens_of(model)) : most_tokens_of(model), .cuts = fields.boolean("truncate").value_or(true), .notes = notes};
}

Object embed_object(const std::string& name, Json::Array vectors, std::chrono::steady_clock::time_point began, std::uint64_t tokens) {
  const auto duration = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - began).count();
  return Object()
      .set("model", name)
      .set("embeddings", std::move(vectors))
      .set("total_duration", static_cast<std::int64_t>(duration))
      .set("load_duration", 0)
      .set("prompt_eval_count", static_cast<std::int64_t>(tokens));
}

}  // namespace

void embed(const Api& api, const Call& call) {
  const auto began = std::chrono::steady_clock::now();
  const Json body = body_of(call, kOllamaEmbed);
  Fields fields(body);
  const std::string name = read_name(fields, api);
  const TextReader reader = read_reader(fields, api, call.notes);
  EmbeddingWish wish;
  const Json* input = fields.any("input");
  const Json::Array* list = input != nullptr ? input->elements() : nullptr;
  if (list != nullptr && list->size() > api.limits.prompts) fields.refuse("input", fmt::format("There may be {} texts at most.", api.limits.prompts));
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const std::string field = fmt::format("input[{}]", i);
    if ((*list)[i].string() == nullptr) throw ApiError(400, "This must be a text.", field);
    wish.inputs.push_back(reader.tokens_of(*(*list)[i].string(), field));
  }
  if (input != nullptr && list == nullptr) {
    if (input->string() == nullptr) fields.refuse("input", "This must be a text or a list of texts.");
    if (!input->string()->empty()) wish.inputs.push_back(reader.tokens_of(*input->string(), "input"));
  }
  wish.dimensions = static_cast<std::uint32_t>(fields.integer("dimensions", 0, 1 << 30).value_or(0));
  if (wish.dimensions > api.job.model.engine().spec().embedding_width()) wish.dimensions = 0;
  fields.done(call.notes);
  if (wish.inputs.empty()) {  // the request asks to load the model
    call.reply->send({.body = embed_object(name, {}, began, 0).dump()});
    return call.on_answered({});
  }
  start_embedding(api, call, std::move(wish), [name, began](const std::vector<std::vector<float>>& vectors, std::uint64_t tokens) {
    Json::Array shown;
    for (const auto& vector : vectors) shown.push_back(numbers_of(vector));
    return embed_object(name, std::move(shown), began, tokens).dump();
  });
}

void embeddings(const Api& api, const Call& call) {
  const Json body = body_of(call, kOllamaEmbed);
  Fields fields(body);
  (void)read_name(fields, api);
  const TextReader reader = read_reader(fields, api, call.notes);
  const std::string prompt = fields.text("prompt").value_or("");
  fields.done(call.notes);
  if (prompt.empty()) {
    call.reply->send({.body = Object().set("embedding", Json::Array{}).dump()});
    return call.on_answered({});
  }
  start_embedding(api, call, {.inputs = {reader.tokens_of(prompt, "prompt")}},
                  [](const std::vector<std::vector<float>>& vectors, std::uint64_t) { return Object().set("embedding", numbers_of(vectors.at(0))).dump(); });
}

}  // namespace server::ollama
