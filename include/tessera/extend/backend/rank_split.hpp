// The ways to divide a model among ranks (EngineOptions::ranks, rank_addresses, rank_transport).
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera {

enum class RankSplit : std::int32_t {
  heads = 0,   // each rank has some heads and columns of every layer. All ranks compute at once, with four exchanges a layer
  layers = 1,  // each rank has some layers. One rank computes while the others wait, with about one exchange a rank. For slow networks
};

[[nodiscard]] constexpr std::string_view to_string(RankSplit split) noexcept {
  return split == RankSplit::heads ? "heads" : split == RankSplit::layers ? "layers" : "?";
}

}  // namespace tessera
