#include "sampling/stages/top_k.hpp"

namespace tessera::sampling {

void TopK::operator()(Candidates& candidates, const Context&) const noexcept {
  if (k > 0) candidates.keep_best(k);
}

}  // namespace tessera::sampling
