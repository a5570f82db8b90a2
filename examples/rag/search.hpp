// Finds the passages that answer a question.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/tessera.hpp>

#include "embedder.hpp"
#include "store/graph.hpp"
#include "store/store.hpp"

namespace rag {

enum class SearchBy : std::uint8_t { both, vectors, words };

struct SearchOptions {
  SearchBy by = SearchBy::both;
  std::size_t most = 5;          // passages that are returned at most
  std::size_t most_of_file = 2;  // passages of one file at most; 0: no limit
  float least = 0.0f;            // nothing is found if the nearest passage is less like the question; not used by SearchBy::words
  std::size_t candidates = 50;   // passages that each kind of search (vectors, words) contributes
  std::size_t graph_from = 20000;  // indexes with at least this many passages are searched by a graph; SIZE_MAX: none
};

struct Found {
  StoredPassage passage;
  float likeness = 0.0f;          // the dot product of the question's and the passage's vectors
  std::optional<float> score;     // the reranker's score, if there is one
};

struct SearchResult {
  std::vector<Found> found;  // the best first
  float best_likeness = 0.0f;  // likeness of the nearest passage, also if it is below SearchOptions::least
  bool was_exact = true;     // false: a graph was searched, which may miss passages
  std::size_t searched = 0;  // passages that the index has
  double seconds = 0.0;
};

// Searches one index. The constructor reads the vectors of the index, or their graph.
class Searcher {
 public:
  // `index`: the file of `store`; the graph's file is beside it. Precondition: the store has settings.
  Searcher(Store& store, const std::filesystem::path& index, const Embedder& embedder, std::optional<tessera::Engine> reranker, SearchOptions options,
           const std::stop_token& stop);

  [[nodiscard]] SearchResult search(std::string_view question, const std::stop_token& stop);

 private:
  [[nodiscard]] std::vector<Neighbour> near(std::span<const float> query, std::size_t most) const;
  [[nodiscard]] std::vector<Found> candidates(std::string_view question, std::span<const float> query, std::span<const Neighbour> neighbours) const;
  void rerank(std::string_view question, std::vector<Found>& found, const std::stop_token& stop) const;
  void load_vectors(const std::stop_token& stop);

  Store& store_;
  std::filesystem::path graph_file_;
  const Embedder& embedder_;
  std::optional<tessera::Engine> reranker_;
  SearchOptions options_;
  IndexCounts counts_;
  std::optional<Graph> graph_;
  Vectors vectors_;
};

// Returns the file of the graph beside the index.
[[nodiscard]] std::filesystem::path graph_file(const std::filesystem::path& index);

}  // namespace rag
