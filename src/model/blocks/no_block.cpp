// The mixer of layers that have only a feed, and the feed of layers that have only a mixer. Both do nothing.
#include "model/blocks/blocks.hpp"

namespace tessera::detail {

constexpr MixerBlock kNoMixer{
    .remember = [](const Pass&, const Layer&, const Input&) -> Status { return {}; },
    .look_back = [](const Pass&, const Layer&) -> Status { return {}; },
    .leaves = [](const LayerSpec&) -> std::span<const backend::Act> { return {}; },
    .make_room = [](const ModelSpec&, const LayerSpec&, backend::WorkspaceShape&) {},
};

constexpr FeedBlock kNoFeed{
    .run = [](const Pass&, const Layer&, const Input&) -> Status { return {}; },
    .make_room = [](const ModelSpec&, const LayerSpec&, backend::WorkspaceShape&) {},
};

}  // namespace tessera::detail
