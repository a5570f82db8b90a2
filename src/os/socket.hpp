// Connections to other processes, on this machine or others. Forms of an address: "HOST:PORT", "[IPV6]:PORT", "unix:PATH".
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <utility>

#include <tessera/core/result.hpp>

namespace tessera::os {

// A connection. Its calls move as many bytes as possible at once and never wait; use wait_for() to wait.
class Socket {
 public:
  Socket() noexcept = default;
  explicit Socket(int handle) noexcept : handle_(handle) {}
  Socket(Socket&& other) noexcept : handle_(std::exchange(other.handle_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    if (this != &other) {
      close();
      handle_ = std::exchange(other.handle_, -1);
    }
    return *this;
  }
  ~Socket() { close(); }

  [[nodiscard]] bool is_open() const noexcept { return handle_ != -1; }
  [[nodiscard]] int handle() const noexcept { return handle_; }
  void close() noexcept;

  // The result of send() or receive(). `bytes`: number of bytes that were moved, at least 1. If it is 0, one of the other members says why.
  struct Moved {
    std::size_t bytes = 0;
    bool must_wait = false;  // no byte can be moved now
    bool closed = false;     // the other side has closed the connection
    int error = 0;           // the system's number of an error
  };
  [[nodiscard]] Moved send(std::span<const std::byte> bytes) noexcept;
  [[nodiscard]] Moved receive(std::span<std::byte> bytes) noexcept;

 private:
  int handle_ = -1;
};

// Connects to an address, within `timeout`. Errors: invalid_argument, the address is malformed; io, no process answers there.
[[nodiscard]] Result<Socket> connect_to(const std::string& address, std::chrono::milliseconds timeout);

// Waits for connections to an address. If the port in the address is 0, the system chooses a free port.
class Listener {
 public:
  Listener() noexcept = default;
  // Begins to listen. Errors: invalid_argument, the address is malformed; io, the system refuses it (another program listens there, for
  // example).
  [[nodiscard]] static Result<Listener> open(const std::string& address);
  Listener(Listener&&) noexcept = default;
  Listener& operator=(Listener&& other) noexcept;
  ~Listener();

  // Waits for a connection and returns it. Errors: cancelled, `stop` was requested; io, `timeout` has passed.
  [[nodiscard]] Result<Socket> accept(std::chrono::milliseconds timeout, const std::stop_token& stop);
  // Returns the address, with the port that the system chose if it was 0.
  [[nodiscard]] const std::string& address() const noexcept { return address_; }

 private:
  Socket socket_;
  std::string address_;
  std::string path_;  // path of a Unix socket, which the destructor removes; empty for other addresses
};

// A socket for wait_for(): says what to wait for, and receives the result.
struct Awaited {
  const Socket* socket = nullptr;
  bool to_send = false, to_receive = false;    // what to wait for; neither: the socket is left out
  bool can_send = false, can_receive = false;  // "can" is also set if the connection has an error, which the next call returns
};
// Waits until at least one of the sockets can do what its element asks for (to_send, to_receive), or until `timeout` has passed. Sets
// can_send and can_receive of all elements. Returns 0, or the system's number of an error.
[[nodiscard]] int wait_for(std::span<Awaited> sockets, std::chrono::milliseconds timeout);

}  // namespace tessera::os
