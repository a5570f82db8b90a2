#include "system/port.hpp"

#include <sys/socket.h>

namespace server {

bool prepare_to_bind(std::uintptr_t socket) noexcept {
  const int on = 1;
  return ::setsockopt(static_cast<int>(socket), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0;
}

}  // namespace server
