// Says how many processors this process may use, and which of their features the system allows.
#pragma once

#include <cstddef>

namespace tessera::os {

// Returns the number of processors that this thread may use, at least 1. Linux: the processors in the thread's affinity mask. Windows: the
// processors that the process may use. macOS: the fast processors.
[[nodiscard]] std::size_t affine_processors() noexcept;

// Returns how much processor time the process may use, as a number of processors (1.5: one and a half): the quota of control groups (Linux)
// or of a job (Windows). Infinity if there is no limit, or if the limit cannot be read.
[[nodiscard]] double processor_quota() noexcept;

// Returns whether this system gives tile registers (AMX) to processes that request them. Only on x86-64.
[[nodiscard]] bool knows_tiles() noexcept;

// Requests tile registers from the system, for the whole process. Returns whether the process has them now. Only on x86-64.
[[nodiscard]] bool ask_for_tiles() noexcept;

// Returns whether the processors have instructions for dot products of 8-bit integers. Only on ARMv8.
[[nodiscard]] bool has_dot_products() noexcept;

}  // namespace tessera::os
