// The server as a whole: checks which clients may ask, chooses the endpoint, counts and logs.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "apis/api.hpp"
#include "figures.hpp"
#include "http.hpp"
#include "keys.hpp"
#include "kv/kv_transfer.hpp"
#include "models/models.hpp"
#include "workers.hpp"

namespace server {

struct ServerOptions {
  RequestLimits limits;
  bool strict_fields = false;  // a field without effect is an error
  Keys keys;
  double rate = 0.0;                // the most requests a minute of a key; 0: no limit
  std::vector<std::string> cors{};  // origins of web pages that may use the API; "*": any
  bool logs_requests = true;
  bool serves_page = true;
  bool is_private = false;  // the server needs no key, and only this machine reaches it
  std::uint32_t max_running = 64;
  KvTransferOptions kv{};
};

class Server {
 public:
  // Both references must outlive the server.
  Server(ServerOptions options, Models& models, Workers& workers);

  // Handles a request of the HTTP server.
  void handle(HttpRequest request, HttpReplyPtr reply);
  // Refuses new requests from now on, and makes /health answer 503. Running requests go on.
  void drain();
  // Call this before the connections of running requests are closed. From then on, the log and the figures show status 503 for these
  // requests, not 499, which means that the client left.
  void cut() noexcept { cutting_ = true; }
  // Sets the function that counts the connections, for /metrics.
  void set_connections(std::function<std::size_t()> count) { connections_ = std::move(count); }

 private:
  struct Route;
  struct Exchange;  // a request on its way through the server
  static const std::vector<Route>& routes();
  void answer(const std::shared_ptr<Exchange>& exchange);
  // Calls `work`, and answers with the error that it throws.
  template <class Work>
  void answer_errors(const std::shared_ptr<Exchange>& exchange, Work work);
  void dispatch(const std::shared_ptr<Exchange>& exchange);
  // Finds the model that the request names, and calls compute() when the model is loaded.
  void choose_model(const std::shared_ptr<Exchange>& exchange);
  void compute(const std::shared_ptr<Exchange>& exchange, ModelLease lease);
  [[nodiscard]] static bool uses_adapters(const Route& route) noexcept;
  [[nodiscard]] Call call_of(const std::shared_ptr<Exchange>& exchange, ModelLease lease);
  void log(Exchange& exchange, unsigned status, const AnswerReport* report) const;
  // Return the answers of routes that need no model. health() throws ApiError while the server ends; no_store() always throws ApiError.
  [[nodiscard]] HttpResponse health() const;
  [[nodiscard]] HttpResponse live() const;
  [[nodiscard]] HttpResponse greeting() const;
  [[nodiscard]] HttpResponse no_store() const;
  [[nodiscard]] HttpResponse metrics() const;
  [[nodiscard]] HttpResponse status() const;
  [[nodiscard]] static bool is_probe(const Route* route);
  // Returns whether a Host header names this machine, or the host of an allowed origin.
  [[nodiscard]] bool is_named_here(std::string_view host) const;
  [[nodiscard]] bool allows_origin(std::string_view origin) const;
  [[nodiscard]] Headers cors_headers(const HttpRequest& request) const;
  [[nodiscard]] std::size_t connections() const { return connections_ ? connections_() : 0; }

  ServerOptions options_;
  Models& models_;
  Workers& workers_;
  Figures figures_;
  Rates rates_;
  KvTransfers kv_;
  std::atomic<bool> draining_{false}, cutting_{false};
  std::function<std::size_t()> connections_;
};

}  // namespace server
