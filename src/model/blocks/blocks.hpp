// The blocks that layers are made of: one file each.
#pragma once

#include <array>

#include "model/blocks/pass.hpp"

namespace tessera::detail {

// Mixers: a row sees others of its sequence. First all rows leave there what later ones will see; then those that are
// wanted look back.

// Attention (Vaswani et al. 2017) over keys and values in pages. remember(): k, v -> the pages; q stays in Act::q.
Status attention_remember(const Pass& pass, const Layer& layer, const Input& input);
Status attention_look_back(const Pass& pass, const Layer& layer);
inline constexpr std::array kAttentionLeaves{backend::Act::q, backend::Act::gate};  // the second if the output has a gate

// Latent attention (DeepSeek-AI 2024), whose keys are what rotates and a latent, which is the value too. remember(): key -> the pages;
// q, led into the latent, stays in Act::q.
Status latent_remember(const Pass& pass, const Layer& layer, const Input& input);
Status latent_look_back(const Pass& pass, const Layer& layer);

// Recurrent mixers: the whole recurrence is in remember(), which leaves its output and what that is multiplied by.

// Gated delta net (Yang et al. 2024): a convolution, then the gated delta rule.
Status delta_net_remember(const Pass& pass, const Layer& layer, const Input& input);
Status delta_net_look_back(const Pass& pass, const Layer& layer);
inline constexpr std::array kDeltaNetLeaves{backend::Act::attn, backend::Act::v};
// LFM2's short convolution (Liquid AI 2025): of a product of two projections, times a third.
Status short_convolution_remember(const Pass& pass, const Layer& layer, const Input& input);
Status short_convolution_look_back(const Pass& pass, const Layer& layer);
inline constexpr std::array kShortConvolutionLeaves{backend::Act::q, backend::Act::v};
// Mamba-2 (Dao and Gu 2024): a convolution, then a selective scan.
Status mamba2_remember(const Pass& pass, const Layer& layer, const Input& input);
Status mamba2_look_back(const Pass& pass, const Layer& layer);
inline constexpr std::array kMamba2Leaves{backend::Act::attn, backend::Act::v};

// Feeds: a row by itself.

// down(act(gate(input)) * up(input)) (Shazeer 2020).
Status gated_feed(const Pass& pass, const Layer& layer, const Input& input);
// The weighted sum of a token's experts, each a gated feed or a plain one, and of one that all tokens take, if there is one.
Status expert_feed(const Pass& pass, const Layer& layer, const Input& input);
// The sum of a gated feed and of a token's experts, each normed before and behind; the router has a norm of its own.
Status dense_and_expert_feed(const Pass& pass, const Layer& layer, const Input& input);
// A layer's experts as the backend wants them.
[[nodiscard]] backend::Experts experts_of(const Layer& layer);
// down(act(up(input))).
Status plain_feed(const Pass& pass, const Layer& layer, const Input& input);


// Embeddings of each layer. What a layer gets of a row's token: a part of an embedding for all layers and of a product of
// the token's own, [rows, n_layers, per_layer_dim] in Act::per_layer.
Status per_layer_inputs(const Pass& pass);
// x += norm(projection(act(gate(x)) * what the layer gets)).
Status per_layer_feed(const Pass& pass, const Layer& layer);

// What leads into an MTP head (DeepSeek-AI 2024): x = W [norm(the token's embedding), norm(a hidden state)].
// Of a step of the model, whose rows' residual streams are in x: each row takes the hidden state of the row before it in its sequence,
// as the output matrix sees it; of a sequence's first row it is 0. The last one's is left in the sequence's state.
Status mtp_inputs(const Pass& pass, const Layer& head);
// Of a guess: its rows' own embeddings are the hidden states.
Status mtp_inputs_of_guess(const Pass& pass, const Layer& head);

}  // namespace tessera::detail
