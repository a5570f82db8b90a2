// One or several servers with the same model. Requests go to the servers in turn. A server that cannot be reached is passed over.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "upstream.hpp"

namespace gateway {

using server::Upstream;
using server::UpstreamAnswer;
using server::UpstreamError;

class Tier {
 public:
  // `model`: the name of the model that requests to these servers get in place of the client's; empty: the client's name stays. `retries`:
  // how often a request is tried again, as long as its answer has not begun.
  Tier(std::string name, std::string model, std::vector<Upstream> servers, std::size_t retries)
      : name_(std::move(name)), model_(std::move(model)), servers_(std::move(servers)), retries_(retries) {}

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::string& model() const noexcept { return model_; }
  [[nodiscard]] const std::vector<Upstream>& servers() const noexcept { return servers_; }

  // Asks a server, by Upstream::ask(). If the server cannot be reached, or answers 502 or 503 without Retry-After, asks the next server. If
  // there is only one server, asks it again.
  [[nodiscard]] UpstreamAnswer ask(const std::string& method, const std::string& path, const std::string& body, const std::string& authorization,
                                   const std::stop_token& stop, const Upstream::Pass& pass = {}) const;

 private:
  std::string name_, model_;
  std::vector<Upstream> servers_;
  std::size_t retries_;
  mutable std::atomic<std::size_t> next_{0};
};

}  // namespace gateway
