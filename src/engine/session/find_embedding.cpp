// Asks the program for embeddings of which a session stores only the hashes.
#include <algorithm>

#include "engine/states.hpp"

namespace tessera::detail {

const float* find_embedding(const Session::State& session, const Hash128& content) noexcept {
  if (!session.embedding_of) return nullptr;
  try {
    const std::span<const float> found = session.embedding_of(content);
    return found.size() == session.shared->model.spec.d_model && content_hash(found) == content ? found.data() : nullptr;
  } catch (...) {
    return nullptr;
  }
}

bool can_recompute(const Session::State& session, std::size_t first) noexcept {
  const KvInputs again = session.inputs().subspan(first, session.tokens.size() - first);
  return again.are_known() && std::ranges::all_of(again.contents, [&](const Hash128& content) { return find_embedding(session, content) != nullptr; });
}

}  // namespace tessera::detail
