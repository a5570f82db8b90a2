// POST /v1/embeddings
#include <cstring>

#include <fmt/format.h>

#include "answers/embedding_job.hpp"
#include "apis/api.hpp"
#include "json_object.hpp"

namespace server {

using tessera::Json;
using tessera::Token;

namespace {

// Returns the vector as base64 of little-endian float32 values. OpenAI's clients ask for this form by default.
std::string base64(const std::vector<float>& vector) {
  static constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<unsigned char> bytes(vector.size() * sizeof(float));
  std::memcpy(bytes.data(), vector.data(), bytes.size());
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 3; ++j) bits = bits << 8 | (j < n ? bytes[i + j] : 0u);
    for (std::size_t j = 0; j < 4; ++j) text += j <= n ? kLetters[bits >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

std::vector<std::vector<Token>> read_inputs(Fields& fields, const ServedModel& model, std::size_t most) {
  const Json* given = fields.need(fields.any("input"), "input");
  constexpr std::string_view kWhat = "This must be a text, a list of texts, a list of token ids, or a list of lists of token ids.";
  std::vector<std::vector<Token>> inputs;
  const auto add_ids = [&](const Json::Array& ids) {
    std::vector<Token> tokens;
    for (const Json& id : ids) {
      const std::int64_t* token = id.integer();
      if (token == nullptr || *token < 0 || static_cast<std::uint64_t>(*token) >= model.engine().spec().vocab_size) fields.refuse("input", kWhat);
      tokens.push_back(static_cast<Token>(*token));
    }
    inputs.push_back(std::move(tokens));
  };
  if (given->string() != nullptr) {
    inputs.push_back(model.encode(*given->string(), false));
  } else if (given->elements() == nullptr || given->elements()->empty()) {
    fields.refuse("input", kWhat);
  } else if (given->elements()->front().integer() != nullptr) {
    add_ids(*given->elements());
  } else {
    if (given->elements()->size() > most) fields.refuse("input", fmt::format("There may be {} texts at most.", most));
    for (const Json& each : *given->elements()) {
      if (each.string() != nullptr) inputs.push_back(model.encode(*each.string(), false));
      else if (each.elements() != nullptr) add_ids(*each.elements());
      else fields.refuse("input", kWhat);
    }
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].empty()) fields.refuse("input", fmt::format("Text {} is empty.", i));
    if (const std::size_t most_tokens = most_tokens_of(model); inputs[i].size() > most_tokens) {
      throw ApiError(400, fmt::format("Text {} has {} tokens, and this model reads {}: send a shorter text.", i, inputs[i].size(), most_tokens), "input",
                     "context_length_exceeded");
    }
  }
  return inputs;
}

}  // namespace

void embeddings(const Api& api, const Call& call) {
  const ServedModel& model = api.job.model;
  const Json body = body_of(call, kEmbeddings);
  Fields fields(body);
  pass_model(fields);
  EmbeddingWish wish{.inputs = read_inputs(fields, model, api.limits.prompts)};
  const bool as_base64 = fields.choice("encoding_format", {"float", "base64"}).value_or("float") == "base64";
  wish.dimensions = static_cast<std::uint32_t>(fields.integer("dimensions", 1, model.engine().spec().embedding_width()).value_or(0));
  if (const auto pooling = fields.choice("pooling", {"mean", "cls", "last"})) {
    wish.pooling = *pooling == "mean" ? tessera::Pooling::mean : *pooling == "cls" ? tessera::Pooling::cls : tessera::Pooling::last;
  }
  fields.done(call.notes);
  start_embedding(api, call, std::move(wish), [as_base64, id = model.id()](const std::vector<std::vector<float>>& vectors, std::uint64_t tokens) {
    Json::Array data;
    for (const std::vector<float>& vector : vectors) {
      data.push_back(Object()
                         .set("object", "embedding")
                         .set("index", static_cast<std::int64_t>(data.size()))
                         .set("embedding", as_base64 ? Json(base64(vector)) : numbers_of(vector)));
    }
    return Object()
        .set("object", "list")
        .set("data", std::move(data))
        .set("model", id)
        .set("usage", Object().set("prompt_tokens", static_cast<std::int64_t>(tokens)).set("total_tokens", static_cast<std::int64_t>(tokens)))
        .dump();
  });
}

}  // namespace server
