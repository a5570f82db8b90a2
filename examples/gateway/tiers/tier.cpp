#include "tiers/tier.hpp"

namespace gateway {

UpstreamAnswer Tier::ask(const std::string& method, const std::string& path, const std::string& body, const std::string& authorization,
                         const std::stop_token& stop, const Upstream::Pass& pass) const {
  const std::size_t first = next_++;
  for (std::size_t i = 0;; ++i) {
    const Upstream& server = servers_[(first + i) % servers_.size()];
    const bool is_last = i >= retries_;
    try {
      UpstreamAnswer answer = server.ask(method, path, body, authorization, stop, pass);
      const bool may_pass = (answer.status == 502 || answer.status == 503) && answer.retry_after.empty();
      if (is_last || !may_pass) return answer;
    } catch (const UpstreamError& error) {
      if (is_last || error.kind != UpstreamError::Kind::unreachable) throw;
    }
  }
}

}  // namespace gateway
