// POST /v1/embeddings: texts as vectors of length 1, by the mean over their tokens or by the last.
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <optional>

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

struct Wish {
  std::vector<std::vector<Token>> inputs;
  Pooling pooling = Pooling::mean;
  bool as_base64 = false;
};

// Texts on their way to vectors, a few rows at a time, so that others come in between. It ends when the client has gone.
class Embedding {
 public:
  Embedding(const ServedModel& model, Wish wish, const Call& call)
      : model_(model), wish_(std::move(wish)), tenant_(call.caller.tenant), reply_(call.reply), on_answered_(call.on_answered) {}

  // True: it is over.
  bool advance() {
    try {
      if (reply_->gone()) {
        report_.usage.prompt_tokens += token_;
        return report(499);
      }
      if (text_ < wish_.inputs.size()) read_some();
      if (text_ < wish_.inputs.size()) return false;
      reply_->send({.body = answer()});
      return report(200);
    } catch (const ApiError& error) {
      return refuse(error);
    } catch (const std::bad_alloc&) {
      return refuse(ApiError(503, "The server is out of memory for this request."));
    } catch (const std::exception& error) {
      return refuse(ApiError(500, error.what()));
    }
  }

 private:
  static constexpr std::size_t kRows = 256;

  void read_some() {
    using tessera::Want;
    const std::vector<Token>& tokens = wish_.inputs[text_];
    if (!session_) {
      tessera::SessionOptions options;
      options.kv.salt = tenant_;
      options.context = static_cast<std::uint32_t>(tokens.size());
      session_ = value_or_refuse(model_.engine().session(options));
      sum_.assign(model_.engine().spec().d_model, 0.0);
    }
    tessera::Batch batch;
    const std::size_t n = std::min(kRows, tokens.size() - token_);
    for (std::size_t i = token_; i < token_ + n; ++i) {
      const bool wants = wish_.pooling == Pooling::mean || i + 1 == tokens.size();
      value_or_refuse(batch.add(*session_, {.token = tokens[i], .embedding = {}, .want = wants ? Want::embedding : Want::nothing}));
    }
    const auto outputs = value_or_refuse(model_.engine().forward(batch));
    for (std::size_t i = 0; i < n; ++i) {
      const auto row = outputs.row(i);
      for (std::size_t j = 0; j < row.size(); ++j) sum_[j] += row[j];
    }
    token_ += n;
    if (token_ == tokens.size()) end_text();
  }

  void end_text() {
    double squares = 0.0;
    for (const double each : sum_) squares += each * each;
    const double scale = squares > 0.0 ? 1.0 / std::sqrt(squares) : 0.0;
    std::vector<float> vector;
    for (const double each : sum_) vector.push_back(static_cast<float>(each * scale));
    Json shown;
    if (wish_.as_base64) {
      shown = base64(vector);
    } else {
      Json::Array numbers;
      for (const float each : vector) numbers.emplace_back(static_cast<double>(each));
      shown = std::move(numbers);
    }
    data_.push_back(Object().set("object", "embedding").set("index", static_cast<std::int64_t>(text_)).set("embedding", std::move(shown)));
    report_.usage.prompt_tokens += token_;
    session_.reset();
    token_ = 0;
    ++text_;
  }

  [[nodiscard]] std::string answer() {
    const auto tokens = static_cast<std::int64_t>(report_.usage.prompt_tokens);
    return Object()
        .set("object", "list")
        .set("data", std::move(data_))
        .set("model", model_.id())
        .set("usage", Object().set("prompt_tokens", tokens).set("total_tokens", tokens))
        .dump();
  }

  bool refuse(const ApiError& error) {
    reply_->send(to_response(error, ApiKind::openai));
    report_.error = error.what();
    return report(error.status);
  }
  bool report(unsigned status) {
    report_.status = status;
    on_answered_(report_);
    return true;
  }

  const ServedModel& model_;
  Wish wish_;
  std::string tenant_;
  HttpReplyPtr reply_;
  OnAnswered on_answered_;
  std::size_t text_ = 0, token_ = 0;  // where it is
  std::optional<tessera::Session> session_;  // of this text
  std::vector<double> sum_;
  Json::Array data_;
  AnswerReport report_;
};

}  // namespace

void embeddings(const Api& api, const Call& call) {
  const ServedModel& model = api.job.model;
  const Json body = body_of(call, kEmbeddings);
  Fields fields(body);
  check_model(fields, api);
  Wish wish{.inputs = read_inputs(fields, model, api.limits.prompts)};
  wish.as_base64 = fields.choice("encoding_format", {"float", "base64"}).value_or("float") == "base64";
  fields.only("dimensions", static_cast<std::int64_t>(model.engine().spec().d_model));
  const auto pooling = fields.choice("pooling", {"mean", "last"});
  wish.pooling = !pooling ? pooling_of(model) : *pooling == "last" ? Pooling::last : Pooling::mean;
  fields.done(call.notes);
  api.job.workers.post_long([job = std::make_shared<Embedding>(model, std::move(wish), call)] { return job->advance(); });
}

}  // namespace server
