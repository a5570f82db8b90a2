// The memory that a server may plan with.
#pragma once

#include <cstdint>

namespace server {

// Returns the bytes of memory that are free: the machine's, or the container's if these are less. 4 GiB if the system
// does not say.
[[nodiscard]] std::uint64_t available_memory();

// Returns freed memory, which the C library keeps, to the system, if the system has a call for this. Call it after much memory was freed.
void give_back_memory() noexcept;

}  // namespace server
