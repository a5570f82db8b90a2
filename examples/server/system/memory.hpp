// The memory that a server may plan with.
#pragma once

#include <cstdint>

namespace server {

// Returns the bytes of memory that are free on the machine, or in the container if those are less. 4 GiB if the system does not say.
[[nodiscard]] std::uint64_t available_memory();

// Returns freed memory, which the C library may keep, to the system. Does nothing if the C library has no function for this. Call this after
// much memory was freed.
void give_back_memory() noexcept;

}  // namespace server
