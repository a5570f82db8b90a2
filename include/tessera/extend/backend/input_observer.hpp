// An InputObserver sees the activations that a model's weight matrices are multiplied by, while the engine computes steps. Importance
// matrices are made from these activations, for example. Set it as EngineOptions::input_observer.
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
  // Receives `input`: one row of activations that a weight matrix is about to be multiplied by  [inputs of the matrix]. `tensor`: the name
  // of the tensor that has the matrix. `matrix`: the expert's index if the tensor has one matrix for each expert; otherwise 0. Called once
  // for each such row of a step, by the thread that computes the step. A fused tensor (Q, K and V in one) counts as one matrix, so it causes
  // one call for each row. Must not call the engine.
  virtual void see(std::string_view tensor, std::uint32_t matrix, std::span<const float> input) noexcept = 0;
};

}  // namespace tessera
