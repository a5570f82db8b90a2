#include <array>
#include <cmath>

#include "core/error.hpp"
#include "model/blocks/blocks.hpp"

namespace tessera::detail {

using backend::Act;

namespace {
namespace dense_and_expert {

Status run(const Pass& pass, const Layer& layer, const Input& input) {
  backend::Backend& b = pass.backend;
  const Weights& w = layer.weights;
  // Compute the dense FFN, with the result in Act::h2.
  const std::array parts{backend::LinearPart{w.matrix(Role::ffn_up), nullptr, Act::up},
                         backend::LinearPart{w.matrix(Role::ffn_gate), nullptr, Act::gate}};
  TESSERA_TRY_STATUS(products(pass, input, parts));
  TESSERA_TRY_STATUS(b.activated_linear({.kind = layer.spec.activation, .gate = Act::gate, .up = Act::up},
                                        *w.matrix(Role::ffn_down), nullptr, Act::h2));
  TESSERA_TRY_STATUS(b.norm(*norm_of(pass, w, Role::dense_post_norm), Act::h2, Act::h2));
  // Compute the experts, with the result in Act::linear. The router reads the normed x (router_norm), divided by sqrt(d_model): a vector
  // whose Euclidean norm is about 1.
  TESSERA_TRY_STATUS(b.norm(*norm_of(pass, w, Role::router_norm), Act::x, Act::h));
  TESSERA_TRY_STATUS(b.scale(static_cast<float>(1.0 / std::sqrt(static_cast<double>(pass.model.spec.d_model))), Act::h));
  TESSERA_TRY_STATUS(b.linear(*w.matrix(Role::router), Act::h, Act::router));
  TESSERA_TRY_STATUS(b.norm(*norm_of(pass, w, Role::expert_norm), Act::x, Act::h));
  TESSERA_TRY_STATUS(b.experts(experts_of(layer), Act::h, Act::router, Act::linear));
  TESSERA_TRY_STATUS(b.norm(*norm_of(pass, w, Role::experts_post_norm), Act::linear, Act::linear));
  TESSERA_TRY_STATUS(b.add(Act::h2, Act::linear));
  return rejoin_linear(pass, norm_of(pass, w, Role::ffn_post_norm), layer.spec.residual_scale);
}

}  // namespace dense_and_expert
}  // namespace

constexpr FeedBlock kDenseAndExpertFeed{dense_and_expert::run, make_room_for_experts};

}  // namespace tessera::detail
