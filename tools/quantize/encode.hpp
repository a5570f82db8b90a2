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

// Encodes one tensor as its step says: reads the tensor, and passes the encoded bytes to `write`. Errors name the tensor: it has a NaN, an
// infinity or a number that F16 cannot hold, which a quantised model would hide. `importance`: the importance of each input of each of the
// tensor's matrices, or nullptr.
[[nodiscard]] Result<Loss> encode_tensor(const ModelSource& model, const TensorPlan& step, const std::vector<float>* importance,
                                         unsigned threads, const ByteSink& write, const Progress& progress);

}  // namespace tessera::quantize
