#include "embedding_job.hpp"

#include <cmath>
#include <memory>
#include <new>
#include <optional>

#include <fmt/format.h>

namespace server {

using tessera::Token;

namespace {

// Computes the vectors of texts, a few rows at a time, so that other requests come in between. Ends early if the client has gone.
class Embedding {
 public:
  Embedding(const ServedModel& model, Slices& slices, EmbeddingWish wish, VectorsWriter writer, const Call& call)
      : model_(model), slices_(slices), wish_(std::move(wish)), writer_(std::move(writer)), tenant_(call.caller.tenant), kind_(api_at(call.request.path)), reply_(call.reply), on_answered_(call.on_answered) {}

  // Computes a few rows. Returns true when the work is over.
  bool advance() {
    try {
      if (reply_->gone()) {
        report_.usage.prompt_tokens += token_;
        return report(499);
      }
      if (text_ < wish_.inputs.size()) read_some();
      if (text_ < wish_.inputs.size()) return false;
      reply_->send({.body = writer_(vectors_, report_.usage.prompt_tokens)});
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
    const Slices::Rows rows{.position = token_, .wanted = tokens.size() - token_};
    const std::size_t n = slices_.next(rows);
    for (std::size_t i = token_; i < token_ + n; ++i) {
      const bool wants = wish_.pooling == Pooling::mean || i + 1 == tokens.size();
      value_or_refuse(batch.add(*session_, {.token = tokens[i], .embedding = {}, .want = wants ? Want::embedding : Want::nothing}));
    }
    const tessera::Outputs outputs = slices_.compute(model_.engine(), *session_, batch, rows);
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
    vectors_.push_back(std::move(vector));
    report_.usage.prompt_tokens += token_;
    session_.reset();
    token_ = 0;
    ++text_;
  }

  bool refuse(const ApiError& error) {
    reply_->send(to_response(error, kind_));
    report_.error = error.what();
    return report(error.status);
  }
  bool report(unsigned status) {
    report_.status = status;
    on_answered_(report_);
    return true;
  }

  const ServedModel& model_;
  Slices& slices_;
  EmbeddingWish wish_;
  VectorsWriter writer_;
  std::string tenant_;
  ApiKind kind_;
  HttpReplyPtr reply_;
  OnAnswered on_answered_;
  std::size_t text_ = 0, token_ = 0;  // the next token to compute
  std::optional<tessera::Session> session_;  // session of the present text
  std::vector<double> sum_;
  std::vector<std::vector<float>> vectors_;
  AnswerReport report_;
};

}  // namespace

Pooling pooling_of(const ServedModel& model) {
  const auto type = model.engine().metadata().unsigned_integer(tessera::Setting::pooling);
  return type && *type == 3 ? Pooling::last : Pooling::mean;
}

tessera::Json numbers_of(const std::vector<float>& vector) {
  tessera::Json::Array numbers;
  for (const float each : vector) numbers.emplace_back(static_cast<double>(each));
  return numbers;
}

void start_embedding(const Api& api, const Call& call, EmbeddingWish wish, VectorsWriter writer) {
  const ServedModel& model = api.job.model;
  api.job.workers.post_long([job = std::make_shared<Embedding>(model, api.job.slices, std::move(wish), std::move(writer), call)] { return job->advance(); });
}

}  // namespace server
