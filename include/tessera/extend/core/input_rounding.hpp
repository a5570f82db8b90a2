// Describes how the inputs of a weight matrix (activations) are rounded before the product, in models that were quantised with their
// activations (W8A8, W4A8, FP8). The rounding is stated in the model's files. An engine rounds inputs only if EngineOptions::activations
// asks for it. docs/reference/numerics.md has the formulas.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera {

// The numbers to which inputs are rounded (q and zero are integers).
enum class RoundedInputs : std::uint8_t {
  none,           // inputs are not rounded
  int8,           // scale * q, q from -127 to 127
  int8_with_zero,  // scale * (q - zero), q and zero from -128 to 127
  fp8             // scale * f, f in FP8 E4M3
};

struct InputRounding {
  RoundedInputs to = RoundedInputs::none;
  std::uint32_t group = 0;         // consecutive inputs of a row that share a scale; 0: all inputs of the row
  // Fixed scales from the files, one for each matrix of the tensor. Empty: the scale follows from the values of each row and group.
  std::vector<float> scales = {};
  std::vector<float> zeros = {};   // int8_with_zero: one zero for each element of `scales`

  bool operator==(const InputRounding&) const = default;
};

}  // namespace tessera
