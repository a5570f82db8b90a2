// POST /v1/score and /score, in vLLM's form: a score for each pair of texts. A model that ranks computes the score itself. For any other
// model the score is the cosine of the texts' vectors.
#include <memory>

#include <fmt/format.h>

#include "answers/long_answer.hpp"
#include "apis/api.hpp"
#include "json_object.hpp"

namespace server {

using tessera::Json;

namespace {

// Pairs of texts. A single query is compared with each document.
struct ScoreWish {
  std::vector<std::string> queries, documents;
  std::string instruction{};

  [[nodiscard]] const std::string& query(std::size_t pair) const { return queries.size() == 1 ? queries.front() : queries[pair]; }
};

// Scores pairs, a few at a time.
class Scoring final : public LongAnswer {
 public:
  Scoring(const ServedModel& model, ScoreWish wish, const Call& call) : LongAnswer(call), model_(model), wish_(std::move(wish)) {}

 private:
  static constexpr std::size_t kBytesTogether = 2048;

  bool work() override {
    if (!ranks_) ranks_ = ranks();
    std::vector<std::string_view> documents;
    const std::size_t first = scores_.size();
    const std::string& query = wish_.query(first);
    for (std::size_t i = first, bytes = 0; i < wish_.documents.size() && wish_.query(i) == query; ++i) {
      bytes += wish_.documents[i].size();
      if (!documents.empty() && bytes > kBytesTogether) break;
      documents.emplace_back(wish_.documents[i]);
    }
    if (*ranks_) rank(query, documents);
    else compare(query, documents);
    return scores_.size() == wish_.documents.size();
  }

  // Returns whether the model ranks. If the model does not say so, finds out by scoring no document, which computes nothing.
  [[nodiscard]] bool ranks() const {
    if (model_.engine().spec().n_scores > 0) return true;
    const auto none = model_.engine().rerank("", {});
    return none || none.error().code() != tessera::ErrorCode::unsupported;
  }

  void rank(const std::string& query, const std::vector<std::string_view>& documents) {
    const auto scores = value_or_refuse(model_.engine().rerank(query, documents, {.instruction = wish_.instruction}));
    scores_.insert(scores_.end(), scores.begin(), scores.end());
    const std::size_t query_tokens = model_.encode(query, false).size();
    for (const std::string_view document : documents) report_.usage.prompt_tokens += query_tokens + model_.encode(document, false).size();
  }

  // Scores texts by the dot product of their vectors with the query's. The vectors have length 1, so this is the cosine.
  void compare(const std::string& query, std::vector<std::string_view> texts) {
    texts.emplace_back(query);
    const tessera::Embeddings made = value_or_refuse(model_.engine().embed(texts));
    const auto q = made.row(texts.size() - 1);
    for (std::size_t i = 0; i + 1 < texts.size(); ++i) {
      const auto d = made.row(i);
      double sum = 0.0;
      for (std::size_t j = 0; j < d.size(); ++j) sum += double{q[j]} * double{d[j]};
      scores_.push_back(static_cast<float>(sum));
      report_.usage.prompt_tokens += made.tokens(i) + made.tokens(texts.size() - 1);
    }
  }

  std::string body() override {
    Json::Array data;
    for (const float score : scores_) {
      data.push_back(Object().set("index", static_cast<std::int64_t>(data.size())).set("object", "score").set("score", static_cast<double>(score)));
    }
    const auto tokens = static_cast<std::int64_t>(report_.usage.prompt_tokens);
    return Object()
        .set("id", new_id("score-"))
        .set("object", "list")
        .set("created", unix_time())
        .set("model", model_.id())
        .set("data", std::move(data))
        .set("usage", Object().set("prompt_tokens", tokens).set("total_tokens", tokens))
        .dump();
  }

  const ServedModel& model_;
  ScoreWish wish_;
  std::optional<bool> ranks_{};
  std::vector<float> scores_;
};

// Reads a text or a list of texts under one of two names: vLLM's older and its newer one.
std::vector<std::string> read_texts(Fields& fields, const char* name, const char* other, std::size_t most) {
  std::vector<std::string> texts = fields.texts(name, most);
  if (texts.empty()) texts = fields.texts(other, most);
  if (texts.empty()) fields.refuse(name, fmt::format("This must be a text or a list of texts, here or as {}.", other));
  return texts;
}

}  // namespace

void score(const Api& api, const Call& call) {
  const Json body = body_of(call, kScore);
  Fields fields(body);
  pass_model(fields);
  ScoreWish wish{.queries = read_texts(fields, "text_1", "queries", api.limits.prompts), .documents = read_texts(fields, "text_2", "documents", api.limits.prompts)};
  if (wish.queries.size() != 1 && wish.queries.size() != wish.documents.size()) {
    fields.refuse("text_1", fmt::format("There are {} texts here and {} in text_2: send one text, or the same number as in text_2.", wish.queries.size(), wish.documents.size()));
  }
  wish.instruction = fields.text("instruction").value_or("");
  fields.done(call.notes);
  api.job.workers.post_long([job = std::make_shared<Scoring>(api.job.model, std::move(wish), call)] { return job->advance(); });
}

}  // namespace server
