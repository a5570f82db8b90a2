// Chooses which layers, heads and columns of a model can be left out (structured pruning), by measured importance, and measures the loss.
#pragma once

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include <tessera/extend/files/model_source.hpp>

#include "importance.hpp"
#include "pruned_source.hpp"

namespace tessera::convert {

// The amounts that are left out.
struct PruneOptions {
  std::uint32_t layers = 0;  // whole layers
  double heads = 0.0;        // share of all KV heads, with the query heads that use them
  double ffn = 0.0;          // share of all columns of FFNs
  std::filesystem::path text;  // a text to measure with; empty: none

  [[nodiscard]] bool any() const noexcept { return layers != 0 || heads != 0.0 || ffn != 0.0; }
};

// Parses "layers=2,heads=0.25,ffn=0.5", in any order. Errors say what is expected.
[[nodiscard]] Status parse_prune(std::string_view text, PruneOptions& into);

// Returns the model without its least important parts. Prints the sizes that are left and, if there is a text, the perplexity before and
// after.
// - Layers are removed one after another. Each time, the layer is removed without which the text's perplexity is lowest.
// - Columns and heads are removed that contribute least to the output of their layer's attention or FFN. An input of the output matrix
//   contributes the mean square of the input, times the sum of the squares of its weights, as a share of the layer. The mean squares come
//   from `importance` (an imatrix) if there is one, else from the text; without both they are 1. Each layer keeps at least a quarter of its
//   columns, and one KV head.
// Errors: unsupported, the model is of a kind that cannot be cut; invalid_argument, more is to be left out than the model has; cancelled,
// *stop is not 0.
[[nodiscard]] Result<std::shared_ptr<const PrunedSource>> prune(std::shared_ptr<const ModelSource> model, const quantize::Importance& importance,
                                                                const PruneOptions& options, std::uint32_t threads, const volatile std::sig_atomic_t* stop);

}  // namespace tessera::convert
