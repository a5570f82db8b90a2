// The server as a whole: who may ask for what, which endpoint answers, what is counted and logged.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "api.hpp"
#include "figures.hpp"
#include "http.hpp"
#include "keys.hpp"

namespace server {

struct ServerOptions {
  RequestLimits limits;
  bool strict_fields = false;  // a field without effect is an error
  bool strict_model = false;   // so is another model's name
  Keys keys;
  double rate = 0.0;                // requests a minute of a key; 0: any number
  std::vector<std::string> cors{};  // origins of pages that may ask; "*": any
  bool logs_requests = true;
  bool serves_page = true;
  bool is_private = false;  // it asks for no key, and nobody but this machine reaches it
  std::uint32_t max_running = 64;
};

class Server {
 public:
  // All of these outlive it.
  Server(ServerOptions options, ServedModel& model, tessera::Scheduler& scheduler, Slices& slices, Workers& workers);

  // The handler of the HTTP server.
  void handle(HttpRequest request, HttpReplyPtr reply);
  // From now on /health says 503, and new requests are refused; those that run go on.
  void drain() noexcept;
  // What still runs is about to be cut, by the server and not by its clients: so the log and the figures say.
  void cut() noexcept { cutting_ = true; }
  // For /metrics: how many connections there are.
  void set_connections(std::function<std::size_t()> count) { connections_ = std::move(count); }

 private:
  struct Route;
  struct Exchange;  // a request on its way through the server
  static const std::vector<Route>& routes();
  void answer(const std::shared_ptr<Exchange>& exchange);
  void dispatch(const std::shared_ptr<Exchange>& exchange);
  void log(Exchange& exchange, unsigned status, const AnswerReport* report) const;
  // Answers of routes that need no worker. health() throws ApiError while the server ends, no_store() always.
  [[nodiscard]] HttpResponse health() const;
  [[nodiscard]] HttpResponse live() const;
  [[nodiscard]] HttpResponse greeting() const;
  [[nodiscard]] HttpResponse no_store() const;
  [[nodiscard]] HttpResponse metrics() const;
  [[nodiscard]] HttpResponse status() const;
  [[nodiscard]] static bool is_probe(const Route* route);
  // Returns whether a Host header names this machine, or the host of an origin that may ask.
  [[nodiscard]] bool is_named_here(std::string_view host) const;
  [[nodiscard]] bool allows_origin(std::string_view origin) const;
  [[nodiscard]] Headers cors_headers(const HttpRequest& request) const;
  [[nodiscard]] std::size_t connections() const { return connections_ ? connections_() : 0; }

  ServerOptions options_;
  Api api_;
  Figures figures_;
  Rates rates_;
  std::atomic<bool> draining_{false}, cutting_{false};
  std::function<std::size_t()> connections_;
};

}  // namespace server
