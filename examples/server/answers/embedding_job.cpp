#include "answers/embedding_job.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "answers/long_answer.hpp"

namespace server {

using tessera::Token;

namespace {

// Computes the vectors of texts, a few rows at a time.
class Embedding final : public LongAnswer {
 public:
  Embedding(const ServedModel& model, Slices& slices, EmbeddingWish wish, VectorsWriter writer, const Call& call)
      : LongAnswer(call), model_(model), slices_(slices), wish_(std::move(wish)), writer_(std::move(writer)), tenant_(call.caller.tenant) {}

 private:
  bool work() override {
    if (text_ < wish_.inputs.size()) read_some();
    return text_ == wish_.inputs.size();
  }
  std::string body() override { return writer_(vectors_, report_.usage.prompt_tokens); }
  void count_begun() override { report_.usage.prompt_tokens += token_; }

  // Reads the next texts, or some rows of the next text. A model whose rows see later rows reads a text as a whole.
  void read_some() {
    if (model_.engine().spec().sight == tessera::Sight::both_sides) read_texts();
    else read_rows();
  }

  // Reads the next text, and the texts after it as long as all of them together fit into one slice.
  void read_texts() {
    std::size_t wanted = 0;
    for (std::size_t i = text_; i < wish_.inputs.size(); ++i) wanted += wish_.inputs[i].size();
    const std::size_t rows = slices_.next({.position = 0, .wanted = wanted});
    std::size_t n = 1, together = wish_.inputs[text_].size();
    while (text_ + n < wish_.inputs.size() && together + wish_.inputs[text_ + n].size() <= rows) together += wish_.inputs[text_ + n++].size();
    const tessera::Embeddings made =
        value_or_refuse(model_.engine().embed(std::span<const std::vector<Token>>(wish_.inputs).subspan(text_, n),
                                              {.pooling = wish_.pooling, .dimensions = wish_.dimensions}));
    for (std::size_t i = 0; i < n; ++i) {
      const auto row = made.row(i);
      vectors_.emplace_back(row.begin(), row.end());
    }
    report_.usage.prompt_tokens += together;
    text_ += n;
  }

  void read_rows() {
    using tessera::Want;
    const std::vector<Token>& tokens = wish_.inputs[text_];
    if (!session_) {
      tessera::SessionOptions options;
      options.kv.salt = tenant_;
      options.context = static_cast<std::uint32_t>(tokens.size());
      session_ = value_or_refuse(model_.engine().session(options));
      sum_.assign(model_.engine().spec().embedding_width(), 0.0);
    }
    tessera::Batch batch;
    const Slices::Rows rows{.position = token_, .wanted = tokens.size() - token_};
    const std::size_t n = slices_.next(rows);
    for (std::size_t i = token_; i < token_ + n; ++i) {
      value_or_refuse(batch.add(*session_, {.token = tokens[i], .want = is_pooled(i) ? Want::embedding : Want::nothing}));
    }
    const tessera::Outputs outputs = slices_.compute(model_.engine(), *session_, batch, rows);
    for (std::size_t i = 0; i < n; ++i) {
      const auto row = outputs.row(i);
      for (std::size_t j = 0; j < row.size(); ++j) sum_[j] += row[j];
    }
    token_ += n;
    if (token_ == tokens.size()) end_text();
  }

  // Returns whether the vector of token i of the present text is part of the text's vector.
  [[nodiscard]] bool is_pooled(std::size_t i) const noexcept {
    using tessera::Pooling;
    const Pooling pooling = wish_.pooling != Pooling::automatic ? wish_.pooling : model_.engine().spec().pooling;
    if (pooling == Pooling::cls) return i == 0;
    return pooling != Pooling::last || i + 1 == wish_.inputs[text_].size();
  }

  void end_text() {
    if (wish_.dimensions != 0) sum_.resize(std::min<std::size_t>(wish_.dimensions, sum_.size()));
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

  const ServedModel& model_;
  Slices& slices_;
  EmbeddingWish wish_;
  VectorsWriter writer_;
  std::string tenant_;
  std::size_t text_ = 0, token_ = 0;  // the next token to compute
  std::optional<tessera::Session> session_;  // session of the present text
  std::vector<double> sum_;
  std::vector<std::vector<float>> vectors_;
};

}  // namespace

std::size_t most_tokens_of(const ServedModel& model) {
  const auto own = model.engine().metadata().unsigned_integer(tessera::Setting::text_tokens);
  return own && *own != 0 ? std::min<std::size_t>(*own, model.context()) : model.context();
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
