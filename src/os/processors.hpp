// The processors that this process may use, and what the system lets it do with them.
#pragma once

#include <cstddef>

namespace tessera::os {

// Returns the number of processors that the system gives this thread, at least 1: those in its affinity mask (Linux), those of the
// process (Windows), the fast ones (macOS).
[[nodiscard]] std::size_t affine_processors() noexcept;

// Returns the processor time that the process may use, as a number of processors: the quota of control groups (Linux) or of a job
// (Windows). Infinity: there is no limit, or none that can be read.
[[nodiscard]] double processor_quota() noexcept;

// x86-64: returns whether this system gives tile registers (AMX) to a process that asks.
[[nodiscard]] bool knows_tiles() noexcept;

// x86-64: asks for tile registers for the whole process. Returns whether it has them.
[[nodiscard]] bool ask_for_tiles() noexcept;

// ARMv8: returns whether the processors have the dot products of 8-bit integers.
[[nodiscard]] bool has_dot_products() noexcept;

}  // namespace tessera::os
