#include "store/graph.hpp"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

#include "embedder.hpp"
#include "failure.hpp"
#include "store/graph_bytes.hpp"
#include "system/program.hpp"

namespace rag {

namespace fs = std::filesystem;

// The distance of two vectors for hnswlib: 1 - their dot product.
class LikenessSpace final : public hnswlib::SpaceInterface<float> {
 public:
  explicit LikenessSpace(std::size_t dimensions) : dimensions_(dimensions) {}
  std::size_t get_data_size() override { return dimensions_ * sizeof(float); }
  hnswlib::DISTFUNC<float> get_dist_func() override { return &distance; }
  void* get_dist_func_param() override { return &dimensions_; }

 private:
  static float distance(const void* a, const void* b, const void* dimensions) {
    const std::size_t size = *static_cast<const std::size_t*>(dimensions);
    return 1.0f - dot({static_cast<const float*>(a), size}, {static_cast<const float*>(b), size});
  }
  std::size_t dimensions_;
};

namespace {

// The number of links of a vector, and of candidates that are looked at while the graph is made and while it is searched.
constexpr std::size_t kLinks = 16, kMakingWidth = 200, kAskingWidth = 200;

void rename_file(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) throw Failure(tessera::ErrorCode::io, fmt::format("{}: {}", tessera::tool::text_of(to), error.message()));
}

}  // namespace

struct Graph::State {
  State(std::uint32_t dimensions, std::size_t count)
      : space(dimensions), links(std::make_unique<Links>(&space, std::max<std::size_t>(count, 1), kLinks, kMakingWidth)) {}
  LikenessSpace space;
  std::unique_ptr<Links> links;
};

Graph::Graph(std::unique_ptr<State> state) : state_(std::move(state)) {}
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

bool has_graphs() noexcept { return true; }

std::optional<Graph> Graph::load(const fs::path& file, std::uint32_t dimensions, const IndexCounts& index, Store& store) {
  const std::optional<GraphSeal> seal = store.graph_seal();
  if (!seal || seal->edition != index.edition || seal->passages != index.passages || seal->dimensions != dimensions) return std::nullopt;
  const auto count = static_cast<std::size_t>(index.passages);
  auto state = std::make_unique<State>(dimensions, count);
  if (!read_graph(file, seal->hash, count, *state->links)) return std::nullopt;
  state->links->setEf(kAskingWidth);
  return Graph(std::move(state));
}

Graph Graph::make(const fs::path& file, const Vectors& vectors, std::uint32_t dimensions, const IndexCounts& index, Store& store,
                  const std::stop_token& stop, const Progress& progress) {
  const std::size_t count = vectors.passages.size();
  auto state = std::make_unique<State>(dimensions, count);
  for (std::size_t i = 0; i < count; ++i) {
    if (stop.stop_requested()) throw Failure(tessera::ErrorCode::cancelled, "stopped");
    if (progress && i % 64 == 0) progress(i, count);
    state->links->addPoint(vectors.values.data() + i * dimensions, static_cast<hnswlib::labeltype>(vectors.passages[i]));
  }
  state->links->setEf(kAskingWidth);
  // Writes the seal last, because a graph without its seal is not used.
  fs::path part = file;
  part += ".part";
  const GraphHash hash = write_graph(part, *state->links);
  rename_file(part, file);
  store.set_graph_seal({.edition = index.edition, .passages = static_cast<std::int64_t>(count), .dimensions = dimensions, .hash = hash});
  return Graph(std::move(state));
}

std::vector<Neighbour> Graph::near(std::span<const float> query, std::size_t most) const {
  auto found = state_->links->searchKnn(query.data(), most);
  std::vector<Neighbour> result(found.size());
  while (!found.empty()) {
    result[found.size() - 1] = {static_cast<std::int64_t>(found.top().second), 1.0f - found.top().first};
    found.pop();
  }
  return result;
}

}  // namespace rag
