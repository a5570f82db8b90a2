#include "retrieval.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <numeric>
#include <string_view>

#include <fmt/format.h>

#include <tessera/json/json.hpp>

#include "system/program.hpp"

namespace tessera::quality {

namespace {

constexpr std::size_t kRanked = 10;  // number of documents of a ranking that count

using Numbers = std::map<std::string, std::size_t, std::less<>>;  // index of a text, by its id

Error fault(const std::filesystem::path& file, std::size_t line, std::string_view what) {
  return Error(ErrorCode::corrupt_file, fmt::format("line {}: {}", line, what), tool::text_of(file));
}

std::string member_text(const Json& object, std::string_view key) {
  const Json* const value = object.find(key);
  return value != nullptr && value->string() != nullptr ? *value->string() : std::string();
}

// Reads a file of JSON lines with _id and text; a title is put in front of the text.
Result<std::vector<std::string>> read_texts(const std::filesystem::path& file, Numbers& numbers) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return Error(ErrorCode::not_found, "the file cannot be opened: --retrieval needs a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv", tool::text_of(file));
  std::vector<std::string> texts;
  std::size_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const auto object = Json::parse(line);
    if (!object) return fault(file, number, object.error().message());
    const std::string id = member_text(*object, "_id"), title = member_text(*object, "title"), text = member_text(*object, "text");
    if (id.empty()) return fault(file, number, "_id is not a text");
    if (!numbers.emplace(id, texts.size()).second) return fault(file, number, fmt::format("the _id {} occurs twice", id));
    texts.push_back(title.empty() ? text : title + "\n" + text);
  }
  if (texts.empty()) return fault(file, number, "there is no text in the file");
  return texts;
}

Result<RetrievalData> with_right(RetrievalData data, const std::filesystem::path& file, const Numbers& documents, const Numbers& questions) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return Error(ErrorCode::not_found, "the file cannot be opened", tool::text_of(file));
  data.right.resize(data.questions.size());
  std::size_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (++number == 1 || line.empty()) continue;  // the title line
    const std::size_t first = line.find('\t'), second = first == line.npos ? first : line.find('\t', first + 1);
    if (second == line.npos) return fault(file, number, "three columns are expected: question, document, score");
    const std::string_view view = line, score = view.substr(second + 1);
    double value = 0.0;
    const auto [end, error] = std::from_chars(score.data(), score.data() + score.size(), value);
    if (error != std::errc() || end != score.data() + score.size() || !(value >= 0.0 && value <= 30.0)) return fault(file, number, "the score is no number from 0 to 30");
    const auto question = questions.find(view.substr(0, first));
    const auto document = documents.find(view.substr(first + 1, second - first - 1));
    if (question == questions.end()) return fault(file, number, "queries.jsonl has no such question");
    if (document == documents.end()) return fault(file, number, "corpus.jsonl has no such document");
    if (value > 0.0) data.right[question->second][document->second] = value;
  }
  RetrievalData kept{.documents = std::move(data.documents), .questions = {}, .right = {}};
  for (std::size_t i = 0; i < data.questions.size(); ++i) {
    if (data.right[i].empty()) continue;
    kept.questions.push_back(std::move(data.questions[i]));
    kept.right.push_back(std::move(data.right[i]));
  }
  if (kept.questions.empty()) return fault(file, number, "no question has a right document");
  return kept;
}

// Returns the first `dimensions` values of each vector, scaled to length 1 [texts, dimensions].
std::vector<float> cut(const Embeddings& vectors, std::size_t dimensions) {
  std::vector<float> values;
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    const auto row = vectors.row(i).first(dimensions);
    const double length = std::sqrt(std::inner_product(row.begin(), row.end(), row.begin(), 0.0));
    for (const float x : row) values.push_back(length > 0.0 ? static_cast<float>(x / length) : x);
  }
  return values;
}

// Returns the documents that are nearest to a question, nearest first.
std::vector<std::size_t> ranking(std::span<const float> question, std::span<const float> documents) {
  const std::size_t width = question.size(), count = documents.size() / width;
  std::vector<double> likeness(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto document = documents.subspan(i * width, width);
    likeness[i] = std::inner_product(question.begin(), question.end(), document.begin(), 0.0);
  }
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(kRanked, count));
  std::partial_sort(order.begin(), end, order.end(), [&](std::size_t a, std::size_t b) { return likeness[a] != likeness[b] ? likeness[a] > likeness[b] : a < b; });
  order.erase(end, order.end());
  return order;
}

double gain(double score, std::size_t rank) { return (std::exp2(score) - 1.0) / std::log2(static_cast<double>(rank) + 2.0); }

void add(RetrievalRow& sum, const std::vector<std::size_t>& ranked, const std::map<std::size_t, double>& right) {
  std::vector<double> ideal;
  for (const auto& [document, score] : right) ideal.push_back(score);
  std::ranges::sort(ideal, std::greater<>());
  double best = 0.0, found = 0.0;
  for (std::size_t i = 0; i < std::min(ideal.size(), kRanked); ++i) best += gain(ideal[i], i);
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    const auto at = right.find(ranked[i]);
    if (at == right.end()) continue;
    const double share = 1.0 / static_cast<double>(right.size());
    if (i < 1) sum.recall_1 += share;
    if (i < 3) sum.recall_3 += share;
    sum.recall_10 += share;
    found += gain(at->second, i);
  }
  sum.ndcg_10 += found / best;
}

Result<Embeddings> embed(const Engine& engine, const std::vector<std::string>& texts, TextRole role, const std::function<void(std::size_t)>& progress) {
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  EmbedOptions options;
  options.role = role;
  options.progress = [&progress](std::size_t done, std::size_t) {
    progress(done);
    return true;
  };
  return engine.embed(views, options);
}

}  // namespace

Result<RetrievalData> read_retrieval(const std::filesystem::path& folder) {
  Numbers documents, questions;
  RetrievalData data;
  auto texts = read_texts(folder / "corpus.jsonl", documents);
  if (!texts) return texts.error();
  data.documents = *std::move(texts);
  texts = read_texts(folder / "queries.jsonl", questions);
  if (!texts) return texts.error();
  data.questions = *std::move(texts);
  return with_right(std::move(data), folder / "qrels" / "test.tsv", documents, questions);
}

Result<std::vector<RetrievalRow>> measure_retrieval(const Engine& engine, const RetrievalData& data, std::span<const std::uint32_t> dimensions,
                                                    const std::function<void(std::size_t, std::size_t)>& progress) {
  const std::size_t documents = data.documents.size(), all = documents + data.questions.size();
  const auto corpus = embed(engine, data.documents, TextRole::document, [&](std::size_t done) { progress(done, all); });
  if (!corpus) return corpus.error();
  const auto asked = embed(engine, data.questions, TextRole::query, [&](std::size_t done) { progress(documents + done, all); });
  if (!asked) return asked.error();
  std::vector<RetrievalRow> rows;
  for (const std::uint32_t wanted : dimensions) {
    const std::size_t width = wanted == 0 ? corpus->dimensions() : wanted;
    if (width > corpus->dimensions()) {
      return Error(ErrorCode::invalid_argument, fmt::format("--dimensions {}: the model's vectors have {}", width, corpus->dimensions()));
    }
    const std::vector<float> places = cut(*corpus, width), questions = cut(*asked, width);
    RetrievalRow row{.dimensions = static_cast<std::uint32_t>(width)};
    for (std::size_t i = 0; i < data.questions.size(); ++i) add(row, ranking(std::span(questions).subspan(i * width, width), places), data.right[i]);
    for (double* sum : {&row.recall_1, &row.recall_3, &row.recall_10, &row.ndcg_10}) *sum /= static_cast<double>(data.questions.size());
    rows.push_back(row);
  }
  return rows;
}

}  // namespace tessera::quality
