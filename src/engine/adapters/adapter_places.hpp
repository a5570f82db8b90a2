// The places of a loaded model to which adapters can belong: the tensors that hold matrices, and for each the weights that were made from
// it. (A fused tensor of queries, keys and values is three weights.)
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
  std::vector<Weight> weights_;         // of all tensors, in their order
  std::vector<std::size_t> first_;      // [tensor]: its first weight; one more behind the last
};

// Makes the change that an adapter makes to one weight of its tensor. `source` has the model's weights; it is read only for adapters with
// lengths.
[[nodiscard]] Result<std::shared_ptr<const backend::LowRank>> make_change(const AdapterTensor& from, const AdaptedTensor& tensor,
                                                                          const AdapterPlaces::Weight& weight,
                                                                          const backend::Backend& backend, const ModelSource* source);
// Returns the bytes that the change takes.
[[nodiscard]] std::uint64_t change_bytes(const AdapterTensor& from, const AdapterPlaces::Weight& weight, const backend::Backend& backend) noexcept;

}  // namespace tessera::detail
