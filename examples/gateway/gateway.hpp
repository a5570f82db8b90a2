// The gateway: checks which clients may ask, answers each path, and limits how many requests are answered at once.
#pragma once

#include <atomic>
#include <cstddef>
#include <stop_token>
#include <string>

#include "http.hpp"
#include "keys.hpp"
#include "requests/answering.hpp"
#include "workers.hpp"

namespace gateway {

struct GatewayOptions {
  server::Keys keys{};             // empty: anybody may ask
  std::string tenant_header{};     // a header, in lower case, that a proxy in front sets; empty: none
  std::size_t at_once = 32;        // requests that are answered at once, a thread each
  std::size_t most_waiting = 256;  // further requests are refused (429)
  // The most bytes of the bodies of all requests that wait or are being answered. Further requests are refused (429).
  std::uint64_t body_bytes = std::uint64_t{256} << 20;
  bool logs_requests = true;
};

class Gateway {
 public:
  // `parts` must outlive the gateway.
  Gateway(const GatewayOptions& options, Parts& parts) : options_(options), parts_(parts), workers_(options.at_once) {}

  void handle(server::HttpRequest request, server::HttpReplyPtr reply);

  // Makes /health answer 503, and refuses new questions.
  void drain() noexcept { draining_ = true; }
  [[nodiscard]] bool is_idle() const noexcept { return open_ == 0; }
  // Ends the questions that are being answered.
  void cut() noexcept { all_.request_stop(); }

 private:
  void ask(Api api, const server::HttpRequest& request, const server::HttpReplyPtr& reply);
  void list_models(const server::HttpRequest& request, const server::HttpReplyPtr& reply);
  // Returns the tenant of a request. Throws server::ApiError (401).
  [[nodiscard]] std::string tenant_of(const server::HttpRequest& request) const;
  // Returns the value of the header Authorization that the gateway sends to servers for which it has no key: the client's key. If the
  // gateway has keys of its own for clients, returns an empty text, because the client's key is then the gateway's and must not be sent on.
  [[nodiscard]] std::string authorization_for_servers(const server::HttpRequest& request) const;
  // Queues a task that answers a request. `bytes`: the size of the request's body. Throws server::ApiError: 429, too many requests
  // wait; 503, the gateway ends.
  void post(server::HttpReplyPtr reply, std::uint64_t bytes, std::function<void()> task);

  const GatewayOptions options_;
  Parts& parts_;
  std::stop_source all_;
  std::atomic<std::size_t> open_{0};  // questions that wait or are being answered
  std::atomic<std::uint64_t> open_bytes_{0};  // bytes of the bodies of these questions
  std::atomic<bool> draining_{false};
  server::Workers workers_;           // destroyed first: its tasks use the members above
};

}  // namespace gateway
