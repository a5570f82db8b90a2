// The blocks that layers are made of. Each has a file, which defines one constant. To add a block: write its file, and add a line to the
// list of mixers or of feeds below.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "model/blocks/pass.hpp"

namespace tessera::detail {

// A mixer: the half of a layer in which a row sees other rows of its sequence. A layer calls remember(), then look_back().
struct MixerBlock {
  // Writes to the cache what later rows will see of the step's rows. Called for all rows.
  Status (*remember)(const Pass& pass, const Layer& layer, const Input& input);
  // Adds the mixer's output to the residual stream. In a step's last layer called for the wanted rows alone.
  Status (*look_back)(const Pass& pass, const Layer& layer);
  // Returns the activations that remember() leaves to look_back().
  std::span<const backend::Act> (*leaves)(const LayerSpec& layer);
  // Adds the activations that the block uses to the shape of the workspace.
  void (*make_room)(const ModelSpec& model, const LayerSpec& layer, backend::WorkspaceShape& shape);
};

extern const MixerBlock kNoMixer;            // the layer is its feed alone
extern const MixerBlock kAttention;          // Vaswani et al. 2017, over keys and values in pages
extern const MixerBlock kLatentAttention;    // DeepSeek-AI 2024: a key is a latent, which is the value too, and a part that rotates
// Recurrent mixers: remember() computes the whole recurrence, and leaves its output and that output's gate.
extern const MixerBlock kDeltaNet;           // Yang et al. 2024: a convolution, then the gated delta rule
extern const MixerBlock kShortConvolution;   // Liquid AI 2025 (LFM2): a convolution of two projections' product, times a third one
extern const MixerBlock kMamba2;             // Dao and Gu 2024: a convolution, then a selective scan

// Returns the layer's mixer.
[[nodiscard]] inline const MixerBlock& mixer_of(const LayerSpec& layer) noexcept {
  static constexpr std::array kMixers{&kAttention, &kNoMixer, &kDeltaNet, &kShortConvolution, &kMamba2};  // in the order of Mixer
  return layer.is_latent() ? kLatentAttention : *kMixers[static_cast<std::size_t>(layer.mixer)];
}

// A feed: the half of a layer that treats each row by itself.
struct FeedBlock {
  // Adds the feed's output to the residual stream.
  Status (*run)(const Pass& pass, const Layer& layer, const Input& input);
  // Adds the activations that the block uses to the shape of the workspace.
  void (*make_room)(const ModelSpec& model, const LayerSpec& layer, backend::WorkspaceShape& shape);
};

extern const FeedBlock kNoFeed;              // the layer is its mixer alone
extern const FeedBlock kGatedFeed;           // down(act(gate(input)) * up(input)) (Shazeer 2020)
extern const FeedBlock kPlainFeed;           // down(act(up(input)))
// The weighted sum of a token's experts, which are gated or plain feeds, plus the shared expert that all tokens take, if there is one.
extern const FeedBlock kExpertFeed;
// The sum of a gated feed and of a token's experts, each with a norm before it and behind it; the router has a norm of its own.
extern const FeedBlock kDenseAndExpertFeed;

// Returns the layer's feed.
[[nodiscard]] inline const FeedBlock& feed_of(const LayerSpec& layer) noexcept {
  static constexpr std::array kFeeds{&kGatedFeed, &kPlainFeed,          &kExpertFeed,
                                     &kNoFeed,    &kDenseAndExpertFeed, &kExpertFeed};  // in the order of Ffn
  return *kFeeds[static_cast<std::size_t>(layer.ffn)];
}

// Returns a layer's experts for Backend::experts().
[[nodiscard]] backend::Experts experts_of(const Layer& layer);
// Adds the activations of a router and experts to the shape of the workspace.
void make_room_for_experts(const ModelSpec& model, const LayerSpec& layer, backend::WorkspaceShape& shape);

// Computes each layer's vector of a row's token: the sum of the token's per-layer embedding and of a projection of its own embedding,
// [rows, n_layers, per_layer_dim] in Act::per_layer.
Status per_layer_inputs(const Pass& pass);
// Computes x += norm(projection(act(gate(x)) * the layer's vector)).
Status per_layer_feed(const Pass& pass, const Layer& layer);
// Adds the activations of per_layer_inputs() and per_layer_feed() to the shape of the workspace.
void make_room_for_per_layer(const ModelSpec& model, backend::WorkspaceShape& shape);

}  // namespace tessera::detail
