// Selects the tokens of a text that penalties and DRY look at: the answer's tokens or all tokens (Counted), and of these the last n.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include <tessera/extend/sampling/stage.hpp>
#include <tessera/sampling/options.hpp>

namespace tessera::sampling {

// Returns the last n of the tokens that `counted` selects; all of them if there are fewer than n.
[[nodiscard]] inline std::span<const Token> last_counted(const Context& context, Counted counted, std::size_t n) noexcept {
  const std::span<const Token> all = counted == Counted::answer ? context.answer() : context.history;
  return all.last(std::min(n, all.size()));
}

}  // namespace tessera::sampling
