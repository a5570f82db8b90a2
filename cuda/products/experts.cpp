#include "cuda/products/experts.hpp"

#include "core/guard.hpp"
#include "cuda/kernels/elementwise.hpp"
#include "cuda/kernels/products/linear_few.hpp"
#include "cuda/kernels/products/linear_slots.hpp"

namespace tessera::cuda {

namespace {

constexpr std::uint32_t kWarps = kLinearThreads / 32;

// Launches a product of slots, in `tiles` tiles that have up to kSlotRows[size] slots each.
Status launch_slots(const Device& device, const KernelTable& kernels, LinearSlotsArgs args, const DeviceWeight& weight, std::uint32_t tiles,
                    std::size_t size) {
  args.weight = weight;
  args.factors = weight.factors;
  args.matrices = weight.count;
  args.outputs = weight.outputs_each();
  const std::uint32_t outputs_a_block = kWarps * kLinearOutputs;
  return device.launch(kernels.forms[static_cast<std::size_t>(weight.form)].slots[size],
                       {.x = tiles, .y = (args.outputs + outputs_a_block - 1) / outputs_a_block}, kLinearThreads, 0, args);
}

}  // namespace

Status multiply_heads(const Device& device, const KernelTable& kernels, const SlotProduct& product, std::uint32_t rows) {
  const std::size_t size = rows == 1 ? 0 : 1;
  const std::uint32_t tiles = (rows + kSlotRows[size] - 1) / kSlotRows[size] * product.weight.count;
  return launch_slots(device, kernels,
                      {.x = product.x, .bias = product.bias, .out = product.out, .n_rows = rows, .sharing = 1, .x_stride = product.x_stride},
                      product.weight, tiles, size);
}

// Chooses each row's experts, and sorts the slots into tiles.
Status ExpertFeeds::route(const Device& device, const KernelTable& kernels, const ExpertCall& call, std::uint32_t tile_slots) const {
  const backend::Routing& how = call.routing;
  TESSERA_TRY_STATUS(device.launch(kernels.route_experts, {.x = call.rows}, kRouteThreads, route_shared_bytes(call.n_experts, how.n_groups),
                                   RouteArgs{.logits = call.logits,
                                             .bias = call.choice_bias,
                                             .scales = call.scales,
                                             .chosen = chosen_,
                                             .weights = weights_,
                                             .n_experts = call.n_experts,
                                             .n_used = how.n_used,
                                             .n_groups = how.n_groups,
                                             .n_used_groups = how.n_used_groups,
                                             .kind = how.kind,
                                             .group_score = how.group_score,
                                             .scale = how.scale,
                                             .renormalises = how.renormalises ? 1u : 0u}));
  return device.launch(kernels.deal_experts, {}, kDealThreads, 0,
                       DealArgs{.chosen = chosen_,
                                .slots = slots_,
                                .first = first_,
                                .first_tile = first_tile_,
                                .tiles = tiles_,
                                .n_tiles = n_tiles_,
                                .n_slots = call.rows * how.n_used,
                                .n_experts = call.n_experts,
                                .tile_slots = tile_slots});
}

Status ExpertFeeds::compute(const Device& device, const KernelTable& kernels, const ExpertCall& call) const {
  const std::uint32_t n_used = call.routing.n_used, slots = call.rows * n_used;
  const std::size_t size = slots > call.n_experts ? 1 : 0;  // tiles of several slots if experts have several rows on average
  const std::uint32_t tiles = most_tiles(slots, call.n_experts, kSlotRows[size]);
  TESSERA_TRY_STATUS(route(device, kernels, call, kSlotRows[size]));
  const auto multiply = [&](const DeviceWeight& weight, const float* bias, const float* x, std::uint32_t x_stride, std::uint32_t sharing,
                            float* out) {
    return launch_slots(device, kernels,
                        {.tiles = tiles_,
                         .n_tiles = n_tiles_,
                         .slots = slots_,
                         .x = x,
                         .bias = bias,
                         .out = out,
                         .sharing = sharing,
                         .x_stride = x_stride},
                        weight, tiles, size);
  };
  const std::uint32_t dim = call.up->outputs_each(), width = call.down->outputs_each();
  const auto activation = static_cast<std::size_t>(call.activation);
  TESSERA_TRY_STATUS(multiply(*call.up, call.up_bias, call.in, call.in_columns, n_used, up_));
  if (call.gate != nullptr) TESSERA_TRY_STATUS(multiply(*call.gate, call.gate_bias, call.in, call.in_columns, n_used, gate_));
  TESSERA_TRY_STATUS(device.launch(call.gate != nullptr ? kernels.activate_gated[activation] : kernels.activate[activation], {.x = slots},
                                   kRowThreads, 0, ActivateArgs{.in = call.gate != nullptr ? gate_ : up_, .out = up_, .columns = dim}));
  TESSERA_TRY_STATUS(multiply(*call.down, call.down_bias, up_, dim, 1, gate_));
  return device.launch(kernels.sum_experts, {.x = call.rows}, kRowThreads, 0,
                       SumExpertsArgs{.given = gate_, .weights = weights_, .out = call.out, .n_used = n_used, .columns = width});
}

}  // namespace tessera::cuda
