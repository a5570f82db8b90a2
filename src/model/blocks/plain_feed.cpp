#include <array>

#include "core/error.hpp"
#include "model/blocks/blocks.hpp"

namespace tessera::detail {

using backend::Act;

namespace {
namespace plain {

Status run(const Pass& pass, const Layer& layer, const Input& input) {
  const Weights& w = layer.weights;
  const std::array parts{backend::LinearPart{w.matrix(Role::ffn_up), w.vector(Role::ffn_up_bias), Act::up}};
  TESSERA_TRY_STATUS(products(pass, input, parts));
  return rejoin(pass, {.weight = *w.matrix(Role::ffn_down),
                       .bias = w.vector(Role::ffn_down_bias),
                       .activated = {.kind = layer.spec.activation, .up = Act::up},
                       .post_norm = norm_of(pass, w, Role::ffn_post_norm),
                       .scale = layer.spec.residual_scale});
}

void make_room(const ModelSpec&, const LayerSpec& layer, backend::WorkspaceShape& shape) { widen(shape, Act::up, layer.ffn_dim); }

}  // namespace plain
}  // namespace

constexpr FeedBlock kPlainFeed{plain::run, plain::make_room};

}  // namespace tessera::detail
