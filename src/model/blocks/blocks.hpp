// The blocks that layers are made of: one file each, which defines one constant. To add a block: its file, and its line in the
// list of mixers or of feeds below.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "model/blocks/pass.hpp"

namespace tessera::detail {

// A mixer: a row sees others of its sequence. A layer calls remember(), then look_back().
struct MixerBlock {
  // All rows of the step leave in the cache what later rows will see.
  Status (*remember)(const Pass& pass, const Layer& layer, const Input& input);
  // Adds to the residual stream what the rows see. In a step's last layer only the wanted rows look back.
  Status (*look_back)(const Pass& pass, const Layer& layer);
  // Returns the activations that remember() leaves to look_back().
  std::span<const backend::Act> (*leaves)(const LayerSpec& layer);
  // Adds the activations that the block uses to the shape of the workspace.
  void (*make_room)(const ModelSpec& model, const LayerSpec& layer, backend::WorkspaceShape& shape);
};

extern const MixerBlock kNoMixer;            // the layer is its feed alone
extern const MixerBlock kAttention;          // Vaswani et al. 2017, over keys and values in pages
extern const MixerBlock kLatentAttention;    // DeepSeek-AI 2024: the keys are what rotates and a latent, which is the value too
// Recurrent mixers: remember() has the whole recurrence, and leaves its output and what that is multiplied by.
extern const MixerBlock kDeltaNet;           // Yang et al. 2024: a convolution, then the gated delta rule
extern const MixerBlock kShortConvolution;   // Liquid AI 2025 (LFM2): of a product of two projections, times a third
extern const MixerBlock kMamba2;             // Dao and Gu 2024: a convolution, then a selective scan

// Returns the layer's mixer.
[[nodiscard]] inline const MixerBlock& mixer_of(const LayerSpec& layer) noexcept {
  static constexpr std::array kMixers{&kAttention, &kNoMixer, &kDeltaNet, &kShortConvolution, &kMamba2};  // in the order of Mixer
  return layer.is_latent() ? kLatentAttention : *kMixers[static_cast<std::size_t>(layer.mixer)];
}

// A feed: each row by itself.
struct FeedBlock {
  // Adds to the residual stream what the feed makes of the input.
  Status (*run)(const Pass& pass, const Layer& layer, const Input& input);
  // Adds the activations that the block uses to the shape of the workspace.
  void (*make_room)(const ModelSpec& model, const LayerSpec& layer, backend::WorkspaceShape& shape);
};

extern const FeedBlock kNoFeed;              // the layer is its mixer alone
extern const FeedBlock kGatedFeed;           // down(act(gate(input)) * up(input)) (Shazeer 2020)
extern const FeedBlock kPlainFeed;           // down(act(up(input)))
// The weighted sum of a token's experts, each a gated feed or a plain one, and of one that all tokens take, if there is one.
extern const FeedBlock kExpertFeed;
// The sum of a gated feed and of a token's experts, each normed before and behind; the router has a norm of its own.
extern const FeedBlock kDenseAndExpertFeed;

// Returns the layer's feed.
[[nodiscard]] inline const FeedBlock& feed_of(const LayerSpec& layer) noexcept {
  static constexpr std::array kFeeds{&kGatedFeed, &kPlainFeed,          &kExpertFeed,
                                     &kNoFeed,    &kDenseAndExpertFeed, &kExpertFeed};  // in the order of Ffn
  return *kFeeds[static_cast<std::size_t>(layer.ffn)];
}

// Returns a layer's experts as the backend wants them.
[[nodiscard]] backend::Experts experts_of(const Layer& layer);
// Adds what a router and experts use to the shape of the workspace.
void make_room_for_experts(const ModelSpec& model, const LayerSpec& layer, backend::WorkspaceShape& shape);

// Embeddings of each layer. What a layer gets of a row's token: a part of an embedding for all layers and of a product of
// the token's own, [rows, n_layers, per_layer_dim] in Act::per_layer.
Status per_layer_inputs(const Pass& pass);
// x += norm(projection(act(gate(x)) * what the layer gets)).
Status per_layer_feed(const Pass& pass, const Layer& layer);
// Adds what these two use to the shape of the workspace.
void make_room_for_per_layer(const ModelSpec& model, backend::WorkspaceShape& shape);

// What leads into an MTP head (DeepSeek-AI 2024): x = W [norm(the token's embedding), norm(a hidden state)].
// In a step of the model, whose rows' residual streams are in x: each row takes the hidden state of the row before it in its
// sequence, as the output matrix sees it; a sequence's first row takes 0. The last row's is left in the sequence's state.
Status mtp_inputs(const Pass& pass, const Layer& head);
// In a guess the rows' own embeddings are the hidden states.
Status mtp_inputs_of_guess(const Pass& pass, const Layer& head);

}  // namespace tessera::detail
