#include <algorithm>
#include <cmath>

#include <tessera/extend/core/executor.hpp>

#include "os/processors.hpp"

namespace tessera {

std::size_t usable_threads() noexcept {
  const std::size_t processors = os::affine_processors();
  const double quota = std::floor(os::processor_quota());
  return quota >= static_cast<double>(processors) ? processors
                                                  : std::max<std::size_t>(1, static_cast<std::size_t>(quota));
}

}  // namespace tessera
