// The blocks that layers are made of: one file each.
#pragma once

#include "model/blocks/pass.hpp"

namespace tessera::detail {

// Mixers: a row sees others of its sequence. First all rows leave there what later ones will see; then those that are
// wanted look back.

// Attention (Vaswani et al. 2017) over keys and values in pages. remember(): k, v -> the pages; q stays in Act::q.
Status attention_remember(const Pass& pass, const Layer& layer, const Input& input);
Status attention_look_back(const Pass& pass, const Layer& layer);

// Feeds: a row by itself.

// down(act(gate(input)) * up(input)) (Shazeer 2020).
Status gated_feed(const Pass& pass, const Layer& layer, const Input& input);
// The weighted sum of a token's experts, each a gated feed, and of one that all tokens take, if there is one.
Status expert_feed(const Pass& pass, const Layer& layer, const Input& input);
// down(act(up(input))).
Status plain_feed(const Pass& pass, const Layer& layer, const Input& input);

}  // namespace tessera::detail
