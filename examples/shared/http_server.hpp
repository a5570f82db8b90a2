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
  std::uint16_t port = 8080;          // 0: any free port
  std::string tls_certificate{};      // PEM files; empty: plain HTTP
  std::string tls_key{};
  std::size_t threads = 2;
  std::size_t header_bytes = 32 << 10;
  std::size_t body_bytes = std::size_t{16} << 20;
  std::size_t connections = 4096;     // the most open connections; further ones wait in the system's queue
  std::chrono::seconds header_time{15};  // for a request's whole header, and for a TLS handshake
  std::chrono::seconds body_time{60};    // for a request's whole body
  std::chrono::seconds idle_time{75};    // between two requests of a connection
  std::chrono::seconds write_time{60};   // while a client takes no byte of an answer
};

class HttpServer {
 public:
  // Takes the port and reads the certificates, so that errors show before a model is loaded. Throws Failure: an invalid host, a port in
  // use, certificates that cannot be read. start() may throw Failure too.
  explicit HttpServer(const HttpOptions& options);
  // Begins to listen and to answer.
  void start(HttpHandler handler, HttpRefusal refusal);
  // Precondition: close() has returned true.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept;
  [[nodiscard]] std::size_t connections() const noexcept;
  // Closes idle connections at once, and the other connections after their present answer. New connections are still answered, for probes.
  void drain() noexcept;
  // Waits until every request has its whole answer, but not longer than `most`.
  void flush(std::chrono::milliseconds most) noexcept;
  // Accepts no more connections, closes all, and waits at most `most` until all HttpReply objects are destroyed. Returns whether they are.
  [[nodiscard]] bool close(std::chrono::milliseconds most) noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace server
