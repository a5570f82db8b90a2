// The division of a model among ranks: which rank has which rows of each weight, which heads, and which layers.
//
// If the split is RankSplit::layers: a rank has whole layers. They are consecutive layers, except that a layer that reads an earlier
// layer's keys is on the rank of that layer. If the split is RankSplit::heads: each rank has some KV heads of every attention layer, with
// their query heads. Exception: one rank computes a mixer that cannot be divided by KV heads, and gives the result to the other ranks. Such
// mixers are latent attention, recurrent mixers, attention with fewer KV heads than ranks, and attention that norms all heads together.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <tessera/extend/backend/rank_split.hpp>
#include <tessera/extend/kv/kv_layout.hpp>

#include "model/load/roles.hpp"
#include "model/model.hpp"
#include "ranks/division.hpp"

namespace tessera::detail {

class RankBackend;

// Returns the bytes in a page of the blocks of `heads` KV heads of a layer: K blocks, and V blocks unless the values are part of the keys.
[[nodiscard]] inline std::uint64_t bytes_of_heads(const KvLayerLayout& layer, std::uint64_t heads) noexcept {
  return heads * (layer.k_stride + (layer.shape.values == kv::Values::in_keys ? 0 : layer.v_stride));
}

class ModelDivision {
 public:
  // Divides a model among `ranks` ranks. Error: unsupported, the model cannot be divided among this number of ranks.
  [[nodiscard]] static Result<std::shared_ptr<const ModelDivision>> make(const ModelSpec& spec, std::uint32_t ranks, RankSplit split);

  [[nodiscard]] std::uint32_t ranks() const noexcept { return ranks_; }
  // Returns the model as a rank computes it: only with the heads and columns that the rank has.
  [[nodiscard]] ModelSpec spec_of(std::uint32_t rank) const;
  [[nodiscard]] std::vector<LayerPlace> places_of(std::uint32_t rank) const;
  // Returns the bindings with the parts that a rank has (Binding::own).
  [[nodiscard]] std::vector<Binding> bindings_of(std::uint32_t rank, std::span<const Binding> whole) const;
  // Returns the layout by which a rank finds the heads that it has in whole pages. The bytes of pages stay the same.
  [[nodiscard]] KvLayout layout_of(std::uint32_t rank, const KvLayout& whole) const;
  // Returns the layout of the pages that a rank has if ranks are processes: such pages have only the rank's heads. The windows, the KV
  // types and the number of tokens in a page are those of `other`, which is the layout of the whole model or of any rank's pages. A layer
  // that only another rank computes gets as few bytes as a layout allows.
  [[nodiscard]] Result<KvLayout> own_layout_of(std::uint32_t rank, const KvLayout& other) const;
  // The KV heads of a layer that a rank has, as a range of all heads.
  struct Heads {
    std::uint64_t first = 0, size = 0;
  };
  // Returns which of the layer's `all` heads the rank has, as a range. If one rank has the whole layer: all heads for that rank, and none
  // for the other ranks.
  [[nodiscard]] Heads heads_of(std::uint32_t rank, std::uint32_t layer, std::uint64_t all) const;
  // Returns whether the rank has none of a layer's heads or state.
  [[nodiscard]] bool lacks(std::uint32_t rank, std::uint32_t layer) const noexcept { return is_whole(layer) && owners_[layer] != rank; }
  // Tells the rank's backend which of the model's matrices are divided. `bindings` are those of bindings_of().
  void tell(RankBackend& backend, const Model& model, std::span<const Binding> bindings) const;

 private:
  ModelDivision(const ModelSpec& spec, std::uint32_t ranks, RankSplit split);

  // Returns whether one rank has the layer's whole mixer.
  [[nodiscard]] bool is_whole(std::uint32_t layer) const noexcept { return layer < owners_.size() && owners_[layer] != kEveryRank; }
  // Returns whether one rank has all of the weight's layer.
  [[nodiscard]] bool is_of_whole_layer(const Binding& binding) const noexcept {
    return split_ == RankSplit::layers && row_of(binding.role).owner != Owner::model;
  }
  // Returns the division of a weight's rows (of a vector's values) among ranks; empty: they are not divided.
  [[nodiscard]] Division rows_of(const Binding& binding) const;

  ModelSpec spec_;
  std::uint32_t ranks_;
  RankSplit split_;
  std::vector<std::uint32_t> owners_;  // [n_layers()]: LayerPlace::rank
};

}  // namespace tessera::detail
