// Sets the system's rules for taking a port.
#pragma once

#include <cstdint>

namespace server {

// Prepares a socket (a descriptor, or Windows's SOCKET) for bind(). bind() then succeeds even if connections of an earlier server are still
// closing, and fails if another program listens on the port. Returns false if the system refuses the setting.
[[nodiscard]] bool prepare_to_bind(std::uintptr_t socket) noexcept;

}  // namespace server
