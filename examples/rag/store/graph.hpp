// Finds near vectors without looking at all vectors, by a graph (HNSW; Malkov & Yashunin 2016). The graph is kept in a file beside the
// index. If the index has changed since the graph was made, or if the file's hash is not the one in the index, the graph is made anew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "store/store.hpp"

namespace rag {

struct Neighbour {
  std::int64_t passage = 0;
  float likeness = 0.0f;  // the dot product
};

// Returns the nearest vectors to the query by looking at all of them, the nearest first.
[[nodiscard]] std::vector<Neighbour> scan(const Vectors& vectors, std::span<const float> query, std::size_t most);

// Returns whether this program was built with hnswlib.
[[nodiscard]] bool has_graphs() noexcept;

class Graph {
 public:
  using Progress = std::function<void(std::size_t done, std::size_t total)>;

  // Reads the graph from its file, if the file belongs to the index as it is now (`index`). Returns nullopt, and the caller makes a new
  // graph or searches without one, if there is no file, or if the graph is of an older edition, damaged, or not the one that make() has
  // written.
  [[nodiscard]] static std::optional<Graph> load(const std::filesystem::path& file, std::uint32_t dimensions, const IndexCounts& index, Store& store);
  // Makes the graph, and writes the graph to the file and the file's hash to the store. Throws Failure.
  [[nodiscard]] static Graph make(const std::filesystem::path& file, const Vectors& vectors, std::uint32_t dimensions, const IndexCounts& index,
                                  Store& store, const std::stop_token& stop, const Progress& progress);

  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  // Returns vectors near the query, the nearest first. May miss some of the nearest vectors.
  [[nodiscard]] std::vector<Neighbour> near(std::span<const float> query, std::size_t most) const;

 private:
  struct State;
  explicit Graph(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rag
