// Asks the program for embeddings of which the session keeps the hashes alone.
#include <algorithm>

#include "engine/states.hpp"

namespace tessera {

const float* Session::State::find_embedding(const Hash128& content) const noexcept {
  if (!embedding_of) return nullptr;
  try {
    const std::span<const float> found = embedding_of(content);
    return found.size() == shared->model.spec.d_model && content_hash(found) == content ? found.data() : nullptr;
  } catch (...) {
    return nullptr;
  }
}

bool Session::State::can_recompute(std::size_t first) const noexcept {
  const KvInputs again = inputs().subspan(first, tokens.size() - first);
  return again.are_known() && std::ranges::all_of(again.contents, [&](const Hash128& content) { return find_embedding(content) != nullptr; });
}

}  // namespace tessera
