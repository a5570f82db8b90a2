// Encodes one tensor, in pieces of bounded size on several threads. The bytes and figures are the same for any number
// of threads.
#pragma once

#include <csignal>
#include <cstdint>

#include <tessera/extend/files/gguf_writer.hpp>

#include "importance.hpp"
#include "plan.hpp"

namespace tessera::quantize {

struct Loss {
  double squares = 0, error = 0;  // sums over all values x: of x^2, and of (x - decoded x)^2
};

struct Progress {
  void (*tell)(void* context, std::uint64_t values) = nullptr;  // called each time that `values` more values are encoded
  void* context = nullptr;
  const volatile std::sig_atomic_t* stop = nullptr;  // *stop is not 0: give up
};

// Reads the step's tensor, encodes it and passes its bytes to `write`. NaNs, infinities and numbers that F16 cannot hold are errors that
// name the tensor, because a quantised model would hide such numbers. `importance`: the importance of each input of each of the tensor's
// matrices, or nullptr.
[[nodiscard]] Result<Loss> encode_tensor(const ModelSource& model, const TensorPlan& step, const std::vector<float>* importance,
                                         unsigned threads, const ByteSink& write, const Progress& progress);

}  // namespace tessera::quantize
