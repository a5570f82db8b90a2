// For those who want to see what a model's matrices multiply (importance matrices): EngineOptions::input_observer.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tessera {

class InputObserver {
 public:
  virtual ~InputObserver() = default;
  // One row of what the matrix of a tensor multiplies  [its inputs]. `matrix`: which of a tensor's matrices, an expert's
  // number; 0 where it is one. Called for every row of a step, before the product, by the thread that computes the step; it must
  // not call the engine. A tensor that is several parts in one (fused Q, K and V) is seen once.
  virtual void see(std::string_view tensor, std::uint32_t matrix, std::span<const float> input) noexcept = 0;
};

}  // namespace tessera
