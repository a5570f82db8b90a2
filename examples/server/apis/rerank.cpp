// POST /v1/rerank, in the form of Jina and Cohere
#include <algorithm>
#include <memory>
#include <numeric>

#include <fmt/format.h>

#include "answers/long_answer.hpp"
#include "apis/api.hpp"
#include "json_object.hpp"

namespace server {

using tessera::Json;

namespace {

struct RankWish {
  std::string query, instruction;
  std::vector<std::string> documents;
  std::size_t best = 0;  // results in the answer; 0: all
  bool shows_documents = false;
};

// Scores the documents: one long document, or a few short ones, at a time.
class Ranking final : public LongAnswer {
 public:
  Ranking(const ServedModel& model, RankWish wish, const Call& call)
      : LongAnswer(call), model_(model), wish_(std::move(wish)), query_tokens_(model.encode(wish_.query, false).size()) {}

 private:
  static constexpr std::size_t kBytesTogether = 2048;

  bool work() override {
    const std::size_t first = scores_.size();
    std::vector<std::string_view> documents;
    for (std::size_t i = first, bytes = 0; i < wish_.documents.size(); ++i) {
      bytes += wish_.documents[i].size();
      if (!documents.empty() && bytes > kBytesTogether) break;
      documents.emplace_back(wish_.documents[i]);
    }
    const auto scores = value_or_refuse(model_.engine().rerank(wish_.query, documents, {.instruction = wish_.instruction}));
    scores_.insert(scores_.end(), scores.begin(), scores.end());
    for (const std::string_view document : documents) report_.usage.prompt_tokens += query_tokens_ + model_.encode(std::string(document), false).size();
    return scores_.size() == wish_.documents.size();
  }

  std::string body() override {
    std::vector<std::size_t> order(scores_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return scores_[a] > scores_[b]; });
    if (wish_.best != 0 && order.size() > wish_.best) order.resize(wish_.best);
    Json::Array results;
    for (const std::size_t i : order) {
      Object result;
      result.set("index", static_cast<std::int64_t>(i)).set("relevance_score", static_cast<double>(scores_[i]));
      if (wish_.shows_documents) result.set("document", Object().set("text", wish_.documents[i]));
      results.emplace_back(std::move(result));
    }
    const auto tokens = static_cast<std::int64_t>(report_.usage.prompt_tokens);
    return Object()
        .set("id", new_id("rerank"))
        .set("model", model_.id())
        .set("results", std::move(results))
        .set("usage", Object().set("prompt_tokens", tokens).set("total_tokens", tokens))
        .dump();
  }

  const ServedModel& model_;
  RankWish wish_;
  std::size_t query_tokens_;
  std::vector<float> scores_;
};

// Reads the documents: texts, or objects with a text.
std::vector<std::string> read_documents(Fields& fields, std::size_t most) {
  const Json::Array* given = fields.need(fields.list("documents"), "documents");
  if (given->empty()) fields.refuse("documents", "There must be a document.");
  if (given->size() > most) fields.refuse("documents", fmt::format("There may be {} documents at most.", most));
  std::vector<std::string> documents;
  for (const Json& document : *given) {
    const Json* text = document.members() != nullptr ? document.find("text") : &document;
    if (text == nullptr || text->string() == nullptr) fields.refuse("documents", "This must be a list of texts, or of objects with a text.");
    documents.push_back(*text->string());
  }
  return documents;
}

}  // namespace

void rerank(const Api& api, const Call& call) {
  const Json body = body_of(call, kRerank);
  Fields fields(body);
  pass_model(fields);
  RankWish wish;
  wish.query = fields.need(fields.text("query"), "query");
  wish.documents = read_documents(fields, api.limits.prompts);
  wish.instruction = fields.text("instruction").value_or("");
  wish.best = static_cast<std::size_t>(fields.integer("top_n", 1, 1 << 30).value_or(0));
  wish.shows_documents = fields.boolean("return_documents").value_or(false);
  fields.done(call.notes);
  api.job.workers.post_long([job = std::make_shared<Ranking>(api.job.model, std::move(wish), call)] { return job->advance(); });
}

}  // namespace server
