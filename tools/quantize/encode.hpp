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
  double squares = 0, error = 0;  // sums over values of x * x and of (x - decoded x)^2
};

struct Progress {
  void (*tell)(void* context, std::uint64_t values) = nullptr;  // called as values are done
  void* context = nullptr;
  const volatile std::sig_atomic_t* stop = nullptr;  // not 0: give up
};

// Reads the step's tensor, encodes it and passes its bytes to `write`. NaN, an infinity and what F16 cannot hold are
// errors that name the tensor: a quantised model would hide them. `importance`: of each input of each of the tensor's
// matrices, or nullptr.
[[nodiscard]] Result<Loss> encode_tensor(const ModelFile& model, const Step& step, const std::vector<float>* importance,
                                         unsigned threads, const ByteSink& write, const Progress& progress);

}  // namespace tessera::quantize
