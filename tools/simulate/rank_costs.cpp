#include "rank_costs.hpp"

namespace tessera::simulate {

constexpr double kFloat = 4;  // bytes: ranks exchange activations in float32

Exchanges exchanges_of(const ModelShape& shape, RankSplit split, std::uint32_t ranks) noexcept {
  if (ranks <= 1) return {};
  if (split == RankSplit::layers) {  // the residual stream from each rank to the next, and the logits to the first
    return {.count = double(ranks), .row_bytes = kFloat * shape.width * (ranks - 1), .output_bytes = kFloat * shape.vocabulary};
  }
  // A gather is an exchange after which each rank has the columns of all ranks. In each layer there are four: of the heads' outputs, of
  // attention's output, of the FFN's inner columns, and of the FFN's output. In each step there are two more: of the embeddings and of the
  // logits.
  return {.count = 4 * shape.layers + 2,
          .row_bytes = kFloat * (shape.layers * (shape.heads + 2 * shape.width + shape.ffn) + shape.width),
          .output_bytes = kFloat * shape.vocabulary};
}

CostModel::Costs costs_on_ranks(const CostModel::Costs& one, const ModelShape& shape, RankSplit split, std::uint32_t ranks,
                                const Link& link) noexcept {
  if (ranks <= 1) return one;
  const Exchanges exchanges = exchanges_of(shape, split, ranks);
  const bool by_heads = split == RankSplit::heads;
  const double share = by_heads ? 1.0 / ranks : 1.0;
  // By heads, all ranks send at once: a rank receives the parts of the other ranks. By layers, a message is sent after the one before it.
  const double seconds_a_byte = (by_heads ? 1.0 - 1.0 / ranks : 1.0) / link.rate;
  const double row = exchanges.row_bytes * seconds_a_byte;
  return {.fixed = one.fixed * share + exchanges.count * link.delay,
          .output = one.output * share + exchanges.output_bytes * seconds_a_byte,
          .few_rows = one.few_rows * share + row,
          .many_rows = one.many_rows * share + row,
          .key = one.key * share};
}

}  // namespace tessera::simulate
