#include "measure/costs.hpp"

#include <algorithm>
#include <cmath>

namespace tessera::bench {

namespace {

double visible(const LayerSpec& layer, std::uint32_t keys) {
  return layer.window == 0 ? keys : std::min(keys, layer.window);
}

}  // namespace

ModelCosts::ModelCosts(const ModelSource& model, const Engine& engine) : spec_(engine.spec()) {
  streamed_bytes_ = static_cast<double>(engine.plan().weights_per_token);
  kv_per_layer_ = static_cast<double>(engine.plan().kv_per_token) / spec_.n_layers();
  const bool tied = model.find_tensor("output.weight") == nullptr;
  for (const LayerSpec& layer : spec_.layers) {
    if (layer.has_experts()) used_share_ = static_cast<double>(layer.n_used) / layer.n_experts;
  }
  for (const TensorInfo& tensor : model.tensors()) {
    if (tensor.n_dims < 2) continue;
    double weights = static_cast<double>(tensor.dims[0]) * static_cast<double>(tensor.dims[1]);
    if (tensor.n_dims == 3) weights *= static_cast<double>(tensor.dims[2]);
    if (tensor.name.find("_exps.") != std::string_view::npos) {
      weights *= used_share_;
      expert_bytes_ += static_cast<double>(tensor.bytes);
    }
    if (tensor.name == (tied ? "token_embd.weight" : "output.weight")) {
      output_weights_ = weights;
      output_bytes_ = static_cast<double>(tensor.bytes);
    } else if (tensor.name.starts_with("blk.")) {
      layer_weights_ += weights;
    }
  }
}

double ModelCosts::weight_bytes(std::uint32_t rows) const noexcept {
  const double read = 1.0 - std::pow(1.0 - used_share_, rows);
  return streamed_bytes_ + expert_bytes_ * (read - used_share_);
}

double ModelCosts::kv_bytes(std::uint32_t keys) const noexcept {
  double bytes = 0;
  for (const LayerSpec& layer : spec_.layers) bytes += kv_per_layer_ * visible(layer, keys);
  return bytes;
}

double ModelCosts::attention_flop(std::uint32_t keys) const noexcept {
  double flop = 0;
  for (const LayerSpec& layer : spec_.layers) {
    flop += 2.0 * layer.n_heads * (layer.key_dim + layer.value_dim) * visible(layer, keys);
  }
  return flop;
}

Cost ModelCosts::prefill(std::uint32_t tokens, std::uint32_t step_rows) const noexcept {
  Cost cost;
  cost.bytes = output_bytes_;
  for (std::uint32_t done = 0; done < tokens;) {
    const std::uint32_t rows = std::min(tokens - done, step_rows);
    done += rows;
    cost.bytes += weight_bytes(rows) - output_bytes_ + kv_bytes(done);
  }
  cost.flop = 2 * output_weights_ + 2 * layer_weights_ * tokens;
  for (std::uint32_t keys = 1; keys <= tokens; ++keys) cost.flop += attention_flop(keys);
  return cost;
}

Cost ModelCosts::decode(std::uint32_t sequences, std::uint32_t position, std::uint32_t steps) const noexcept {
  Cost cost;
  for (std::uint32_t keys = position + 1; keys <= position + steps; ++keys) {
    cost.bytes += weight_bytes(sequences) + sequences * kv_bytes(keys);
    cost.flop += sequences * (2 * (layer_weights_ + output_weights_) + attention_flop(keys));
  }
  return cost;
}

}  // namespace tessera::bench
