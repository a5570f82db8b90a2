#include "graph.hpp"

#include <array>
#include <cstring>
#include <fstream>
#include <system_error>

// hnswlib's own vector code prefetches by a number that it reads one place behind the end of a list; LikenessSpace has the distance instead.
#define NO_MANUAL_VECTORIZATION
#include <hnswlib/hnswlib.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <fmt/format.h>

#include "embedder.hpp"
#include "failure.hpp"
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

// Links of a vector, and how many candidates are looked at while the graph is made and while it is asked.
constexpr std::size_t kLinks = 16, kMakingWidth = 200, kAskingWidth = 200;

// Stands in a file of its own beside the graph: hnswlib reads what a file says without checking, so the graph's bytes are checked before.
struct Seal {
  std::array<char, 8> magic{'t', 'r', 'a', 'g', 'h', 'n', 's', '1'};
  std::int64_t edition = 0, passages = 0, dimensions = 0;
  std::uint64_t hash_low = 0, hash_high = 0;
  bool operator==(const Seal&) const = default;
};

fs::path seal_of(const fs::path& file) {
  fs::path seal = file;
  seal += ".seal";
  return seal;
}

// Returns the seal that the graph's file must have, with the hash of its bytes.
std::optional<Seal> expected_seal(const fs::path& file, std::uint32_t dimensions, const IndexCounts& index) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return std::nullopt;
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> hash(XXH3_createState(), &XXH3_freeState);
  if (!hash) throw std::bad_alloc();
  XXH3_128bits_reset(hash.get());
  std::vector<char> block(std::size_t{1} << 20);
  while (stream.read(block.data(), static_cast<std::streamsize>(block.size())) || stream.gcount() > 0) {
    XXH3_128bits_update(hash.get(), block.data(), static_cast<std::size_t>(stream.gcount()));
  }
  const XXH128_hash_t digest = XXH3_128bits_digest(hash.get());
  Seal seal;
  seal.edition = index.edition;
  seal.passages = index.passages;
  seal.dimensions = dimensions;
  seal.hash_low = digest.low64;
  seal.hash_high = digest.high64;
  return seal;
}

void rename_file(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) throw Failure(tessera::ErrorCode::io, fmt::format("{}: {}", tessera::tool::text_of(to), error.message()));
}

}  // namespace

struct Graph::State {
  explicit State(std::uint32_t dimensions) : space(dimensions) {}
  LikenessSpace space;
  std::unique_ptr<hnswlib::HierarchicalNSW<float>> links;
};

Graph::Graph(std::unique_ptr<State> state) : state_(std::move(state)) {}
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

bool has_graphs() noexcept { return true; }

std::optional<Graph> Graph::load(const fs::path& file, std::uint32_t dimensions, const IndexCounts& index) {
  Seal seal;
  std::ifstream stream(seal_of(file), std::ios::binary);
  if (!stream.read(reinterpret_cast<char*>(&seal), sizeof(seal))) return std::nullopt;
  if (seal.edition != index.edition || seal.passages != index.passages || expected_seal(file, dimensions, index) != seal) return std::nullopt;
  auto state = std::make_unique<State>(dimensions);
  try {
    state->links = std::make_unique<hnswlib::HierarchicalNSW<float>>(&state->space, tessera::tool::text_of(file));
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
  state->links->setEf(kAskingWidth);
  return Graph(std::move(state));
}

Graph Graph::make(const fs::path& file, const Vectors& vectors, std::uint32_t dimensions, const IndexCounts& index, const std::stop_token& stop,
                  const Progress& progress) {
  auto state = std::make_unique<State>(dimensions);
  const std::size_t count = vectors.passages.size();
  state->links = std::make_unique<hnswlib::HierarchicalNSW<float>>(&state->space, std::max<std::size_t>(count, 1), kLinks, kMakingWidth);
  for (std::size_t i = 0; i < count; ++i) {
    if (stop.stop_requested()) throw Failure(tessera::ErrorCode::cancelled, "stopped");
    if (progress && i % 64 == 0) progress(i, count);
    state->links->addPoint(vectors.values.data() + i * dimensions, static_cast<hnswlib::labeltype>(vectors.passages[i]));
  }
  state->links->setEf(kAskingWidth);
  // The seal is written last: a graph without its seal counts as none.
  fs::path part = file, seal_part = seal_of(file);
  part += ".part";
  seal_part += ".part";
  std::error_code ignored;
  fs::remove(seal_of(file), ignored);
  state->links->saveIndex(tessera::tool::text_of(part));
  const auto seal = expected_seal(part, dimensions, index);
  std::ofstream stream(seal_part, std::ios::binary);
  if (!seal || !stream.write(reinterpret_cast<const char*>(&*seal), sizeof(*seal)).flush()) {
    throw Failure(tessera::ErrorCode::io, fmt::format("{} cannot be written: is the disk full?", tessera::tool::text_of(part)));
  }
  stream.close();
  rename_file(part, file);
  rename_file(seal_part, seal_of(file));
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
