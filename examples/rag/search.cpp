#include "search.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <utility>

#include "failure.hpp"
#include "progress.hpp"

namespace rag {

namespace {

// How much the search for words counts beside the search by vectors. A passage's score is the likeness of its vector and the question's
// vector, plus its score in the search for words, scaled so that the best passage there has kWordShare. The value was chosen with the
// questions in tests/rag: from 0.25 to 0.4 the results hardly change.
constexpr double kWordShare = 0.3;

// Keeps the first `options.most` passages, but at most `options.most_of_file` of each file.
void limit(std::vector<Found>& found, const SearchOptions& options) {
  std::map<std::string, std::size_t> of_file;
  std::vector<Found> kept;
  for (Found& each : found) {
    if (kept.size() == options.most) break;
    if (options.most_of_file != 0 && ++of_file[each.passage.path] > options.most_of_file) continue;
    kept.push_back(std::move(each));
  }
  found = std::move(kept);
}

}  // namespace

std::filesystem::path graph_file(const std::filesystem::path& index) {
  std::filesystem::path file = index;
  file += ".hnsw";
  return file;
}

Searcher::Searcher(Store& store, const std::filesystem::path& index, const Embedder& embedder, std::optional<tessera::Engine> reranker,
                   SearchOptions options, const std::stop_token& stop)
    : store_(store), graph_file_(graph_file(index)), embedder_(embedder), reranker_(std::move(reranker)), options_(options), counts_(store.counts()) {
  options_.candidates = std::max(options_.candidates, options_.most);
  load_vectors(stop);
}

void Searcher::load_vectors(const std::stop_token& stop) {
  const bool uses_graph = has_graphs() && static_cast<std::uint64_t>(counts_.passages) >= options_.graph_from;
  if (uses_graph) graph_ = Graph::load(graph_file_, embedder_.dimensions(), counts_, store_);
  if (graph_) return;
  vectors_ = store_.vectors(embedder_.dimensions());
  if (!uses_graph) return;
  ProgressLine line("making the graph of vectors", "passages");
  graph_ = Graph::make(graph_file_, vectors_, embedder_.dimensions(), counts_, store_, stop, [&](std::size_t done, std::size_t total) { line.update(done, total); });
  vectors_ = {};
}

std::vector<Neighbour> Searcher::near(std::span<const float> query, std::size_t most) const {
  return graph_ ? graph_->near(query, most) : scan(vectors_, query, most);
}

std::vector<Found> Searcher::candidates(std::string_view question, std::span<const float> query, std::span<const Neighbour> neighbours) const {
  std::map<std::int64_t, double> scores;
  if (options_.by != SearchBy::words) {
    for (const Neighbour& each : neighbours) scores[each.passage] = 0.0;
  }
  if (options_.by != SearchBy::vectors) {
    const std::vector<WordMatch> matches = store_.with_words(question, options_.candidates);
    for (const WordMatch& each : matches) scores[each.passage] = matches.front().score > 0.0 ? kWordShare * each.score / matches.front().score : 0.0;
  }
  std::vector<std::pair<double, Found>> scored;
  for (const auto& [id, words] : scores) {
    auto passage = store_.passage(id);
    if (!passage) continue;  // another process has replaced the file
    const float likeness = dot(query, store_.vector(id));
    scored.push_back({words + (options_.by != SearchBy::words ? likeness : 0.0), {std::move(*passage), likeness, {}}});
  }
  std::ranges::stable_sort(scored, std::greater<>(), [](const auto& each) { return each.first; });
  std::vector<Found> found;
  for (auto& [score, each] : scored) found.push_back(std::move(each));
  return found;
}

SearchResult Searcher::search(std::string_view question, const std::stop_token& stop) {
  const auto start = std::chrono::steady_clock::now();
  SearchResult result;
  result.was_exact = !graph_;
  result.searched = static_cast<std::size_t>(counts_.passages);
  const std::vector<float> query = embedder_.query(question, stop);
  const std::vector<Neighbour> neighbours = near(query, options_.candidates);
  if (!neighbours.empty()) result.best_likeness = neighbours.front().likeness;
  if (result.best_likeness >= options_.least || options_.by == SearchBy::words) {
    result.found = candidates(question, query, neighbours);
    if (reranker_) rerank(question, result.found, stop);
    limit(result.found, options_);
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

void Searcher::rerank(std::string_view question, std::vector<Found>& found, const std::stop_token& stop) const {
  if (found.size() > options_.candidates) found.resize(options_.candidates);  // vectors and words may have found twice as many
  std::vector<std::string> texts;
  for (const Found& each : found) texts.push_back(each.passage.heading + "\n\n" + each.passage.text);
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const std::vector<float> scores = value(reranker_->rerank(question, views, {.stop = stop}));
  for (std::size_t i = 0; i < found.size(); ++i) found[i].score = scores[i];
  std::ranges::stable_sort(found, [](const Found& a, const Found& b) { return *a.score > *b.score; });
}

}  // namespace rag
