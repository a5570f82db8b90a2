// API keys, and whose requests they are: a key's name is a tenant of the scheduler, whose prompts share pages with its own alone.
#pragma once

#include <array>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http.hpp"

namespace server {

class Keys {
 public:
  // "KEY", or "NAME KEY"; one without a name is called key1, key2, ...
  void add(std::string_view line);
  // A file of such lines; empty ones and those that begin with # are not keys. Throws Failure.
  void read_file(const std::string& path);
  [[nodiscard]] bool empty() const noexcept { return keys_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return keys_.size(); }

  // The tenant of a request's "Authorization: Bearer KEY" or "x-api-key: KEY". It takes the same time whatever the key says,
  // and whichever of ours it is.
  [[nodiscard]] std::optional<std::string> tenant_of(const HttpRequest& request) const;

 private:
  using Digest = std::array<unsigned char, 32>;
  static Digest digest(std::string_view key);
  struct Key {
    std::string name;
    Digest digest;
  };
  std::vector<Key> keys_;
};

// Requests a minute of each tenant, with as many at once as come in ten seconds.
class Rates {
 public:
  explicit Rates(double per_minute) : per_minute_(per_minute) {}
  // 0: it may go on; else the seconds until it may.
  [[nodiscard]] double wait_of(const std::string& tenant);

 private:
  using Clock = std::chrono::steady_clock;
  struct Bucket {
    double left;
    Clock::time_point at;
  };
  double per_minute_;  // 0: no limit
  std::mutex mutex_;
  std::map<std::string, Bucket> buckets_;
};

}  // namespace server
