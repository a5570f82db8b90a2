// An InputObserver sees the inputs of a model's matrices, for example to make importance matrices (EngineOptions::input_observer).
//
//   struct Printer final : tessera::InputObserver {
//     void see(std::string_view tensor, std::uint32_t, std::span<const float> input) noexcept override {
//       std::printf("%.*s %g\n", static_cast<int>(tensor.size()), tensor.data(), input[0]);
//     }
//   };
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tessera {

class InputObserver {
 public:
  virtual ~InputObserver() = default;
  // Receives `input`, a row that a matrix is about to be multiplied by  [inputs of the matrix]. tensor: the name of the matrix's tensor.
  // matrix: the expert's index, if the tensor holds a matrix for each expert; otherwise 0. Called once for every row of a step, by the
  // thread that computes the step. A tensor of several parts (fused Q, K and V) is reported once. Must not call the engine.
  virtual void see(std::string_view tensor, std::uint32_t matrix, std::span<const float> input) noexcept = 0;
};

}  // namespace tessera
