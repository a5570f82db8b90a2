#include "os/processors.hpp"

#include <sys/sysctl.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <thread>

namespace tessera::os {
namespace {

// Returns the value that the kernel has under a name (sysctl); 0 if the kernel does not know the name.
std::size_t known(const char* name) noexcept {
  std::int32_t value = 0;
  std::size_t bytes = sizeof value;
  return ::sysctlbyname(name, &value, &bytes, nullptr, 0) == 0 && value > 0 ? static_cast<std::size_t>(value) : 0;
}

}  // namespace

std::size_t affine_processors() noexcept {
  // Counts only the fast cores (level 0) if there are slow ones too: a step ends when its last thread ends, so threads on slow cores would
  // delay it.
  const std::size_t fast = known("hw.perflevel0.logicalcpu");
  const std::size_t all = fast != 0 ? fast : known("hw.activecpu");
  return all != 0 ? all : std::max<std::size_t>(1, std::thread::hardware_concurrency());
}

double processor_quota() noexcept { return std::numeric_limits<double>::infinity(); }

bool knows_tiles() noexcept { return false; }  // no Mac has AMX of x86-64

bool ask_for_tiles() noexcept { return false; }

bool has_dot_products() noexcept { return known("hw.optional.arm.FEAT_DotProd") != 0; }

}  // namespace tessera::os
