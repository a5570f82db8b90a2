// POST /v1/embeddings: texts as vectors of length 1, by the mean over their tokens or by the last.
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "api.hpp"
#include "json_object.hpp"

namespace server {

using tessera::Json;
using tessera::Token;

namespace {

enum class Pooling { mean, last };

// As the file says (`pooling_type` of GGUF: 1 mean, 3 last), else the mean.
Pooling pooling_of(const ServedModel& model) {
  const auto architecture = model.engine().metadata().string("general.architecture");
  if (!architecture) return Pooling::mean;
  const auto type = model.engine().metadata().unsigned_integer(fmt::format("{}.pooling_type", *architecture));
  return type && *type == 3 ? Pooling::last : Pooling::mean;
}

std::vector<float> embed(const ServedModel& model, const std::vector<Token>& tokens, Pooling pooling, const Caller& caller) {
  using tessera::Want;
  tessera::SessionOptions options;
  options.kv.salt = caller.tenant;
  options.context = static_cast<std::uint32_t>(tokens.size());
  auto session = value_or_refuse(model.engine().session(options));
  std::vector<double> sum(model.engine().spec().d_model, 0.0);
  constexpr std::size_t kRows = 256;  // at a time, so that others come in between
  for (std::size_t at = 0; at < tokens.size(); at += kRows) {
    tessera::Batch batch;
    const std::size_t n = std::min(kRows, tokens.size() - at);
    for (std::size_t i = at; i < at + n; ++i) {
      const bool wants = pooling == Pooling::mean || i + 1 == tokens.size();
      value_or_refuse(batch.add(session, {.token = tokens[i], .embedding = {}, .want = wants ? Want::embedding : Want::nothing}));
    }
    const auto outputs = value_or_refuse(model.engine().forward(batch));
    for (std::size_t i = 0; i < n; ++i) {
      const auto row = outputs.row(i);
      for (std::size_t j = 0; j < row.size(); ++j) sum[j] += row[j];
    }
  }
  double squares = 0.0;
  for (const double each : sum) squares += each * each;
  const double scale = squares > 0.0 ? 1.0 / std::sqrt(squares) : 0.0;
  std::vector<float> vector;
  for (const double each : sum) vector.push_back(static_cast<float>(each * scale));
  return vector;
}

// Little-endian float32, as OpenAI's clients ask for by themselves.
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
  constexpr std::string_view kWhat = "This is a text, a list of texts, a list of token ids, or a list of such lists.";
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
    if (inputs[i].size() > model.context()) {
      throw ApiError(400, fmt::format("Text {} has {} tokens, and this model's context is {}.", i, inputs[i].size(), model.context()), "input",
                     "context_length_exceeded");
    }
  }
  return inputs;
}

}  // namespace

void embeddings(const Api& api, const Call& call) {
  const ServedModel& model = api.job.model;
  const Json body = body_of(call.request);
  Fields fields(body);
  check_model(fields, model);
  const auto inputs = read_inputs(fields, model, api.limits.prompts);
  const bool as_base64 = fields.choice("encoding_format", {"float", "base64"}).value_or("float") == "base64";
  fields.only("dimensions", static_cast<std::int64_t>(model.engine().spec().d_model));
  const auto pooling_name = fields.choice("pooling", {"mean", "last"});
  const Pooling pooling = !pooling_name ? pooling_of(model) : *pooling_name == "last" ? Pooling::last : Pooling::mean;
  fields.ignore({"user"});
  fields.done();
  Json::Array data;
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < inputs.size() && !call.reply->gone(); ++i) {
    const std::vector<float> vector = embed(model, inputs[i], pooling, call.caller);
    tokens += static_cast<std::int64_t>(inputs[i].size());
    Json shown;
    if (as_base64) {
      shown = base64(vector);
    } else {
      Json::Array numbers;
      for (const float each : vector) numbers.emplace_back(static_cast<double>(each));
      shown = std::move(numbers);
    }
    data.push_back(Object().set("object", "embedding").set("index", static_cast<std::int64_t>(i)).set("embedding", std::move(shown)));
  }
  AnswerReport report;
  report.usage.prompt_tokens = static_cast<std::uint64_t>(tokens);
  call.reply->send({.body = Object()
                                .set("object", "list")
                                .set("data", std::move(data))
                                .set("model", model.id())
                                .set("usage", Object().set("prompt_tokens", tokens).set("total_tokens", tokens))
                                .dump()});
  call.on_answered(report);
}

}  // namespace server
