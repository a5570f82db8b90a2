// The exact search.
#include <algorithm>

#include "embedder.hpp"
#include "store/graph.hpp"

namespace rag {

std::vector<Neighbour> scan(const Vectors& vectors, std::span<const float> query, std::size_t most) {
  std::vector<Neighbour> all(vectors.passages.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = {vectors.passages[i], dot(query, std::span(vectors.values).subspan(i * query.size(), query.size()))};
  }
  const std::size_t count = std::min(most, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end(), [](const Neighbour& a, const Neighbour& b) {
    return a.likeness != b.likeness ? a.likeness > b.likeness : a.passage < b.passage;
  });
  all.resize(count);
  return all;
}

}  // namespace rag
