#include "sampling/stages/greedy.hpp"

namespace tessera::sampling {

void Greedy::operator()(Candidates& candidates, const Context&) const noexcept { candidates.keep_best(1); }

}  // namespace tessera::sampling
