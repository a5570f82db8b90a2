// HTTP/1.1 by Boost.Beast: connections, limits, TLS.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "http.hpp"

namespace server {

struct HttpOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;          // 0: one that is free
  std::string tls_certificate{};      // files of PEM; without them plain HTTP
  std::string tls_key{};
  std::size_t threads = 2;
  std::size_t header_bytes = 32 << 10;
  std::size_t body_bytes = std::size_t{16} << 20;
  std::size_t connections = 4096;     // at once; further ones wait in the system's queue
  std::chrono::seconds header_time{15};  // for all of a request's header, and of a TLS handshake
  std::chrono::seconds body_time{60};    // for all of its body
  std::chrono::seconds idle_time{75};    // between two requests of a connection
  std::chrono::seconds write_time{60};   // without a byte taken by a client that is to read
};

class HttpServer {
 public:
  // Takes the port and reads the certificates: what is wrong with them is said before a model is loaded. Throws Failure (a host that
  // is none, a port in use, certificates that cannot be read), as start() may.
  explicit HttpServer(const HttpOptions& options);
  // Listens, and answers.
  void start(HttpHandler handler, HttpRefusal refusal);
  // Only after close() has said that nobody holds an answer any more.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept;
  [[nodiscard]] std::size_t connections() const noexcept;
  // Connections are closed after the answer that they wait for, idle ones at once. New ones are still answered, so that
  // probes are.
  void drain() noexcept;
  // Waits until every request has its whole answer, at most so long.
  void flush(std::chrono::milliseconds most) noexcept;
  // Takes no more connections, closes all, and waits until whoever answers one has seen it and let go of it. false: some had
  // not, in this time.
  [[nodiscard]] bool close(std::chrono::milliseconds most) noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace server
