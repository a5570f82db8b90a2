// os/socket.hpp on POSIX systems.
#include "os/socket.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "os/error.hpp"

namespace tessera::os {
namespace {

#if defined(MSG_NOSIGNAL)
constexpr int kSendFlags = MSG_NOSIGNAL;
#else
constexpr int kSendFlags = 0;
#endif
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;

using SteadyClock = std::chrono::steady_clock;

struct Address {
  ::sockaddr_storage storage = {};
  ::socklen_t size = 0;

  [[nodiscard]] const ::sockaddr* get() const noexcept { return reinterpret_cast<const ::sockaddr*>(&storage); }
};

constexpr std::string_view kUnix = "unix:";

Result<std::vector<Address>> addresses_of(const std::string& text, bool to_listen) {
  const auto wrong = [&](std::string_view why) {
    return detail::make_error(ErrorCode::invalid_argument, "address \"{}\": {}; expected HOST:PORT or unix:PATH", text, why);
  };
  if (text.starts_with(kUnix)) {
    const std::string path = text.substr(kUnix.size());
    ::sockaddr_un un{};
    if (path.empty() || path.size() >= sizeof un.sun_path) return wrong("the path is empty or too long");
    un.sun_family = AF_UNIX;
    std::memcpy(un.sun_path, path.c_str(), path.size());
    Address address{.size = sizeof un};
    std::memcpy(&address.storage, &un, sizeof un);
    return std::vector<Address>{address};
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size()) return wrong("it has no host or no port");
  std::string host = text.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  ::addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = to_listen ? AI_PASSIVE : 0;
  ::addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), text.c_str() + colon + 1, &hints, &found); error != 0) return wrong(::gai_strerror(error));
  const std::unique_ptr<::addrinfo, decltype(&::freeaddrinfo)> owned(found, &::freeaddrinfo);
  std::vector<Address> list;
  for (const ::addrinfo* at = found; at != nullptr; at = at->ai_next) {
    Address address{.size = static_cast<::socklen_t>(at->ai_addrlen)};
    std::memcpy(&address.storage, at->ai_addr, at->ai_addrlen);
    list.push_back(address);
  }
  return list;
}

int new_socket(const Address& address, Socket& socket) noexcept {
  const int handle = ::socket(address.storage.ss_family, SOCK_STREAM, 0);
  if (handle < 0) return errno;
  socket = Socket(handle);
  ::fcntl(handle, F_SETFD, FD_CLOEXEC);
  ::fcntl(handle, F_SETFL, ::fcntl(handle, F_GETFL) | O_NONBLOCK);
  return 0;
}

// Sets the options of a connection: calls never block, small messages are sent at once (TCP_NODELAY), and if the other host is gone without
// a word, the connection gets an error (keep-alive).
void set_up(const Socket& socket) noexcept {
  const int on = 1;
  ::fcntl(socket.handle(), F_SETFD, FD_CLOEXEC);
  ::fcntl(socket.handle(), F_SETFL, ::fcntl(socket.handle(), F_GETFL) | O_NONBLOCK);
  ::setsockopt(socket.handle(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket.handle(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
#if defined(TCP_KEEPIDLE) && defined(TCP_KEEPINTVL) && defined(TCP_KEEPCNT)
  const int idle = 30, interval = 10, count = 3;  // a host that has lost power is noticed within a minute
  ::setsockopt(socket.handle(), IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  ::setsockopt(socket.handle(), IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  ::setsockopt(socket.handle(), IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
#endif
#if defined(SO_NOSIGPIPE)
  ::setsockopt(socket.handle(), SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
}

// Connects a new socket to the address, by the time `end` at the latest. Returns 0 if it is connected, otherwise the system's number of an
// error.
int connect_one(const Address& address, Socket& socket, SteadyClock::time_point end) {
  if (const int error = new_socket(address, socket); error != 0) return error;
  if (::connect(socket.handle(), address.get(), address.size) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  Awaited one{.socket = &socket, .to_send = true};
  while (!one.can_send) {  // a signal may end a wait early
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - SteadyClock::now());
    if (left.count() <= 0) return ETIMEDOUT;
    if (const int error = wait_for({&one, 1}, left); error != 0) return error;
  }
  int error = 0;
  ::socklen_t size = sizeof error;
  return ::getsockopt(socket.handle(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 ? errno : error;
}

Socket::Moved moved(::ssize_t n) noexcept {
  if (n > 0) return {.bytes = static_cast<std::size_t>(n)};
  if (n == 0) return {.closed = true};
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {.must_wait = true};
  if (errno == ECONNRESET || errno == EPIPE) return {.closed = true};
  return {.error = errno};
}

}  // namespace

void Socket::close() noexcept {
  if (handle_ != -1) ::close(std::exchange(handle_, -1));
}

Socket::Moved Socket::send(std::span<const std::byte> bytes) noexcept {
  return moved(::send(handle_, bytes.data(), std::min(bytes.size(), kMostAtOnce), kSendFlags));
}

Socket::Moved Socket::receive(std::span<std::byte> bytes) noexcept {
  return moved(::recv(handle_, bytes.data(), std::min(bytes.size(), kMostAtOnce), 0));
}

Result<Socket> connect_to(const std::string& address, std::chrono::milliseconds timeout) {
  const SteadyClock::time_point end = SteadyClock::now() + timeout;
  TESSERA_TRY(const std::vector<Address> list, addresses_of(address, false));
  int error = 0;
  for (const Address& one : list) {
    Socket socket;
    error = connect_one(one, socket, end);
    if (error != 0) continue;
    set_up(socket);
    return socket;
  }
  return system_error_at(address, "connect", error);
}

namespace {

// Returns whether the address is a Unix socket on which no process listens: a program that was killed has left it behind, so it may be
// removed.
bool is_left_over(const std::string& address) {
  struct ::stat status;
  if (!address.starts_with(kUnix) || ::stat(address.c_str() + kUnix.size(), &status) != 0 || !S_ISSOCK(status.st_mode)) return false;
  const auto list = addresses_of(address, false);
  Socket socket;
  return list && connect_one(list->front(), socket, SteadyClock::now() + std::chrono::seconds(1)) == ECONNREFUSED;
}

}  // namespace

Result<Listener> Listener::open(const std::string& address) {
  TESSERA_TRY(const std::vector<Address> list, addresses_of(address, true));
  Listener listener;
  int error = 0;
  for (const Address& one : list) {
    error = new_socket(one, listener.socket_);
    if (error != 0) continue;
    const int on = 1;
    ::setsockopt(listener.socket_.handle(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (is_left_over(address)) ::unlink(address.c_str() + kUnix.size());
    if (::bind(listener.socket_.handle(), one.get(), one.size) != 0 || ::listen(listener.socket_.handle(), 64) != 0) {
      error = errno;
      continue;
    }
    listener.address_ = address;
    if (address.starts_with(kUnix)) {
      listener.path_ = address.substr(kUnix.size());
      return listener;
    }
    Address own{.size = sizeof own.storage};
    ::getsockname(listener.socket_.handle(), reinterpret_cast<::sockaddr*>(&own.storage), &own.size);
    char port[8] = {};
    ::getnameinfo(own.get(), own.size, nullptr, 0, port, sizeof port, NI_NUMERICSERV);
    listener.address_ = address.substr(0, address.rfind(':') + 1) + port;
    return listener;
  }
  return system_error_at(address, "listen", error);
}

Listener& Listener::operator=(Listener&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(address_, other.address_);
  std::swap(path_, other.path_);
  return *this;
}

Listener::~Listener() {
  if (socket_.is_open() && !path_.empty()) ::unlink(path_.c_str());
}

Result<Socket> Listener::accept(std::chrono::milliseconds timeout, const std::stop_token& stop) {
  constexpr std::chrono::milliseconds kLook{100};  // time between two looks at `stop`
  const SteadyClock::time_point end = SteadyClock::now() + timeout;
  for (;;) {
    if (stop.stop_requested()) return detail::make_error(ErrorCode::cancelled, "stopped while waiting for a connection at {}", address_);
    Awaited one{.socket = &socket_, .to_receive = true};
    if (const int error = wait_for({&one, 1}, kLook); error != 0) return system_error_at(address_, "wait for a connection", error);
    if (one.can_receive) {
      const int handle = ::accept(socket_.handle(), nullptr, nullptr);
      if (handle >= 0) {
        Socket socket(handle);
        set_up(socket);
        return socket;
      }
      if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR && errno != ECONNABORTED) return system_error_at(address_, "accept a connection", errno);
    }
    if (SteadyClock::now() >= end) return detail::make_error(ErrorCode::io, "nobody has connected to {}", address_);
  }
}

int wait_for(std::span<Awaited> sockets, std::chrono::milliseconds timeout) {
  std::vector<::pollfd> list;
  list.reserve(sockets.size());
  for (Awaited& one : sockets) {
    one.can_send = one.can_receive = false;
    const bool waits = one.socket != nullptr && (one.to_send || one.to_receive);
    list.push_back({.fd = waits ? one.socket->handle() : -1,
                    .events = static_cast<short>((one.to_send ? POLLOUT : 0) | (one.to_receive ? POLLIN : 0)),
                    .revents = 0});
  }
  const auto most = std::chrono::milliseconds(std::chrono::hours(24));
  const int n = ::poll(list.data(), static_cast<::nfds_t>(list.size()), static_cast<int>(std::min(timeout, most).count()));
  if (n < 0) return errno == EINTR ? 0 : errno;
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    const bool failed = (list[i].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
    sockets[i].can_send = sockets[i].to_send && (failed || (list[i].revents & POLLOUT) != 0);
    sockets[i].can_receive = sockets[i].to_receive && (failed || (list[i].revents & POLLIN) != 0);
  }
  return 0;
}

}  // namespace tessera::os
