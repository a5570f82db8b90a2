// The places of a loaded model that adapters can change: the tensors that hold matrices, and for each tensor the weights that were made
// from it. (A fused tensor of queries, keys and values has three weights.)
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "adapters/adapter_file.hpp"
#include "model/load/tensor_binding.hpp"
#include "model/model.hpp"

namespace tessera::detail {

class AdapterPlaces {
 public:
  struct Weight {
    Binding binding;
    const backend::Matrix* matrix = nullptr;
  };

  AdapterPlaces() noexcept = default;
  AdapterPlaces(const Model& model, const ModelSource& source, std::span<const Binding> bindings);

  [[nodiscard]] std::span<const AdaptedTensor> tensors() const noexcept { return tensors_; }
  [[nodiscard]] std::span<const Weight> weights_of(std::uint32_t tensor) const noexcept {
    return std::span(weights_).subspan(first_[tensor], first_[tensor + 1] - first_[tensor]);
  }

 private:
  std::vector<AdaptedTensor> tensors_;  // sorted by name
  std::vector<Weight> weights_;         // weights of all tensors, in the order of the tensors
  std::vector<std::size_t> first_;      // [tensor]: index of its first weight; the last element is the number of weights
};

// Makes an adapter's change of one weight of a tensor. `source` has the model's weights. `source` may be nullptr if the adapter has no
// lengths (DoRA).
[[nodiscard]] Result<std::shared_ptr<const backend::LowRank>> make_change(const AdapterTensor& from, const AdaptedTensor& tensor,
                                                                          const AdapterPlaces::Weight& weight,
                                                                          const backend::Backend& backend, const ModelSource* source);
// Returns the bytes of memory that the change needs.
[[nodiscard]] std::uint64_t change_bytes(const AdapterTensor& from, const AdapterPlaces::Weight& weight, const backend::Backend& backend) noexcept;

}  // namespace tessera::detail
