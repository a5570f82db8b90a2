// Predicts the costs of a step on several ranks from those measured on one.
#pragma once

#include <cstdint>

#include <tessera/extend/backend/rank_split.hpp>
#include <tessera/extend/scheduler/cost_model.hpp>

namespace tessera::simulate {

// The sizes of a dense model that say how much ranks exchange. `heads`: query heads times the size of a value.
struct ModelShape {
  double layers = 32, width = 4096, heads = 4096, ffn = 14336, vocabulary = 128256;
};

// A link between two ranks. `delay`: seconds until a message arrives. `rate`: bytes a second in each direction.
struct Link {
  double delay = 1e-4, rate = 1.25e8;
};

// The exchanges between ranks in a step, all ranks together.
struct Exchanges {
  double count = 0;             // exchanges of a step, which follow each other
  double row_bytes = 0;         // bytes for each row
  double output_bytes = 0;      // bytes for each row whose logits are wanted
};
[[nodiscard]] Exchanges exchanges_of(const ModelShape& shape, RankSplit split, std::uint32_t ranks) noexcept;

// Predicts the costs of a step on `ranks` ranks. `one`: the costs on one rank, on a machine like those of the ranks. RankSplit::heads: the
// ranks compute at once, so the costs of computing are divided by their number. RankSplit::layers: the ranks compute one after the other,
// so the costs of computing stay. In both cases the time of the exchanges is added (docs/howto/ranks.md). For one rank, returns `one`.
[[nodiscard]] CostModel::Costs costs_on_ranks(const CostModel::Costs& one, const ModelShape& shape, RankSplit split, std::uint32_t ranks,
                                              const Link& link) noexcept;

}  // namespace tessera::simulate
