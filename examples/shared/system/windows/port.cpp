#include "system/port.hpp"

#include <winsock2.h>

namespace server {

bool prepare_to_bind(std::uintptr_t socket) noexcept {
  // SO_REUSEADDR would let two servers share a port here.
  const BOOL on = TRUE;
  return ::setsockopt(socket, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, reinterpret_cast<const char*>(&on), sizeof(on)) == 0;
}

}  // namespace server
