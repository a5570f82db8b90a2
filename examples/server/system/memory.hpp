// The memory that a server may plan with.
#pragma once

#include <cstdint>

namespace server {

// Returns the bytes of memory that are free on the machine, or in the container if those are less. 4 GiB if the system does not say.
[[nodiscard]] std::uint64_t available_memory();

// Gives memory back to the system: the C library may keep memory that was freed. Call this after much memory was freed. Does nothing if the
// C library has no function for this.
void give_back_memory() noexcept;

}  // namespace server
