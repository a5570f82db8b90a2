// Replaces graph.cpp in a build without hnswlib: every search is exact.
#include "store/graph.hpp"

#include "failure.hpp"

namespace rag {

struct Graph::State {};

Graph::Graph(std::unique_ptr<State> state) : state_(std::move(state)) {}
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

bool has_graphs() noexcept { return false; }

std::optional<Graph> Graph::load(const std::filesystem::path&, std::uint32_t, const IndexCounts&, Store&) { return std::nullopt; }

Graph Graph::make(const std::filesystem::path&, const Vectors&, std::uint32_t, const IndexCounts&, Store&, const std::stop_token&, const Progress&) {
  throw Failure(tessera::ErrorCode::unsupported, "this program was built without hnswlib (libhnswlib-dev)");
}

std::vector<Neighbour> Graph::near(std::span<const float>, std::size_t) const { return {}; }

}  // namespace rag
