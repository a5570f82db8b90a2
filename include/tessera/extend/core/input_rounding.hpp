// How a model's files say that the inputs of a matrix are rounded before they are multiplied (quantised activations: W8A8, W4A8, FP8).
// Engines round so if EngineOptions::activations asks for it; docs/reference/numerics.md has the formulas.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera {

// The numbers to which inputs are rounded.
enum class RoundedInputs : std::uint8_t {
  none,           // they are not
  int8,           // scale * q, q an integer from -127 to 127
  int8_with_zero,  // scale * (q - zero), q and zero integers from -128 to 127
  fp8             // scale * f, f a number of FP8 E4M3
};

struct InputRounding {
  RoundedInputs to = RoundedInputs::none;
  std::uint32_t group = 0;         // consecutive inputs of a row that share a scale; 0: all inputs of the row
  // Scales that the files have, one for each matrix of the tensor; empty: each row and group has the scale of its own range.
  std::vector<float> scales = {};
  std::vector<float> zeros = {};   // int8_with_zero: a zero for each of `scales`

  bool operator==(const InputRounding&) const = default;
};

}  // namespace tessera
