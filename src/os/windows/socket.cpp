// os/socket.hpp on Windows: not implemented yet. Functions that return a Result return an error.
#include "os/socket.hpp"

#include "core/error.hpp"

namespace tessera::os {
namespace {

Error unwritten() { return detail::make_error(ErrorCode::unsupported, "ranks in other processes are not available on Windows yet"); }

}  // namespace

void Socket::close() noexcept {}
Socket::Moved Socket::send(std::span<const std::byte>) noexcept { return {.closed = true}; }
Socket::Moved Socket::receive(std::span<std::byte>) noexcept { return {.closed = true}; }
Result<Socket> connect_to(const std::string&, std::chrono::milliseconds) { return unwritten(); }
Result<Listener> Listener::open(const std::string&) { return unwritten(); }
Listener& Listener::operator=(Listener&&) noexcept { return *this; }
Listener::~Listener() = default;
Result<Socket> Listener::accept(std::chrono::milliseconds, const std::stop_token&) { return unwritten(); }
int wait_for(std::span<Awaited>, std::chrono::milliseconds) { return 0; }

}  // namespace tessera::os
