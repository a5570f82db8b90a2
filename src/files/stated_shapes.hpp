// An interface for sources whose files state shapes in another order of dimensions than GGUF files, or hold a tensor in another form.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <tessera/extend/files/model_source.hpp>

namespace tessera::detail {

class StatesShapes {
 public:
  // Returns the sentence of an error: the tensor has another shape than the model's settings say. Gives both shapes as the files state
  // them. `wanted`: the shape by the settings, innermost first; sizes that are not used are 1. Precondition: `tensor` is an element of
  // tensors().
  [[nodiscard]] virtual std::string wrong_shape(const TensorInfo& tensor, const std::array<std::uint64_t, 4>& wanted) const = 0;

 protected:
  ~StatesShapes() = default;
};

}  // namespace tessera::detail
