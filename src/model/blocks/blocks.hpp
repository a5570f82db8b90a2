// The blocks that layers are made of: a layer has a mixer (MixerBlock) and a feed (FeedBlock). Each block has its own file, which defines
// one constant with the block's functions. To add a block, write its file, declare its constant here, and add it to the list in
// mixer_of() or feed_of().
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "model/blocks/pass.hpp"

namespace tessera::detail {

// A mixer is the half of a layer that combines rows of a sequence (attention, recurrence). A layer calls remember(), then look_back().
struct MixerBlock {
  // Writes the data of the step's rows that later rows will need to the cache (keys and values, or states). Gets all rows of the step.
  Status (*remember)(const Pass& pass, const Layer& layer, const Input& input);
  // Adds the mixer's output to the residual stream. In the last layer, gets only the rows whose output is wanted.
  Status (*look_back)(const Pass& pass, const Layer& layer);
  // Returns the activations that remember() has written and look_back() reads.
  std::span<const backend::Act> (*leaves)(const LayerSpec& layer);
  // Makes the workspace large enough: raises the widths of the activations that the block uses.
  void (*make_room)(const ModelSpec& model, const LayerSpec& layer, backend::WorkspaceShape& shape);
  // Returns the attention that look_back() computes, which begin() plans; nullptr: the mixer does not attend.
  backend::AttentionShape (*attention)(const Layer& layer) = nullptr;
};

extern const MixerBlock kNoMixer;            // for a layer that has only a feed
extern const MixerBlock kAttention;          // Vaswani et al. 2017; keys and values are in pages
// DeepSeek-AI 2024: a token's key is a latent vector and a part with rope; the latent vector is the token's value too.
extern const MixerBlock kLatentAttention;
// Recurrent mixers. remember() computes the whole recurrence; look_back() computes only the gating and the output projection.
extern const MixerBlock kDeltaNet;           // Yang et al. 2024: a convolution, then the gated delta rule
// Liquid AI 2025 (LFM2): the product of two projections is convolved, and the result is multiplied by a third one.
extern const MixerBlock kShortConvolution;
extern const MixerBlock kMamba2;             // Dao and Gu 2024: a convolution, then a selective scan

// Returns the layer's mixer.
[[nodiscard]] inline const MixerBlock& mixer_of(const LayerSpec& layer) noexcept {
  static constexpr std::array kMixers{&kAttention, &kNoMixer, &kDeltaNet, &kShortConvolution, &kMamba2};  // in the order of Mixer
  return layer.is_latent() ? kLatentAttention : *kMixers[static_cast<std::size_t>(layer.mixer)];
}

// A feed is the half of a layer that computes each row by itself (FFN, experts).
struct FeedBlock {
  // Adds the feed's output to the residual stream.
  Status (*run)(const Pass& pass, const Layer& layer, const Input& input);
  // Makes the workspace large enough: raises the widths of the activations that the block uses.
  void (*make_room)(const ModelSpec& model, const LayerSpec& layer, backend::WorkspaceShape& shape);
};

extern const FeedBlock kNoFeed;              // for a layer that has only a mixer
extern const FeedBlock kGatedFeed;           // down(act(gate(input)) * up(input)) (Shazeer 2020)
extern const FeedBlock kPlainFeed;           // down(act(up(input)))
// The weighted sum of the experts chosen for a token, which are gated or plain FFNs, plus the shared expert, if there is one.
extern const FeedBlock kExpertFeed;
// The sum of a gated FFN and of the experts chosen for a token (Gemma 4). The FFN has a norm before and after it, and so have the
// experts; the router has a norm of its own before it.
extern const FeedBlock kDenseAndExpertFeed;

// Returns the layer's feed.
[[nodiscard]] inline const FeedBlock& feed_of(const LayerSpec& layer) noexcept {
  static constexpr std::array kFeeds{&kGatedFeed, &kPlainFeed,          &kExpertFeed,
                                     &kNoFeed,    &kDenseAndExpertFeed, &kExpertFeed};  // in the order of Ffn
  return *kFeeds[static_cast<std::size_t>(layer.ffn)];
}

// Returns the layer's experts as the argument of Backend::experts().
[[nodiscard]] backend::Experts experts_of(const Layer& layer);
// Makes the workspace large enough for the router and the experts.
void make_room_for_experts(const ModelSpec& model, const LayerSpec& layer, backend::WorkspaceShape& shape);

// Computes the inputs of per_layer_feed(), for models that have an embedding of each token for each layer. Each row gets a vector for
// each layer: the token's embedding for that layer plus a projection of its ordinary embedding. The result is in Act::per_layer, with the
// shape [rows, n_layers, per_layer_dim].
Status per_layer_inputs(const Pass& pass);
// Computes x += norm(projection(act(gate(x)) * v)), where v is the row's vector for this layer (per_layer_inputs()).
Status per_layer_feed(const Pass& pass, const Layer& layer);
// Makes the workspace large enough for per_layer_inputs() and per_layer_feed().
void make_room_for_per_layer(const ModelSpec& model, backend::WorkspaceShape& shape);

}  // namespace tessera::detail
