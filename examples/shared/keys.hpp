// API keys. The name of a key is a tenant of the scheduler. The scheduler shares pages only between prompts of the same tenant.
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
  // Adds a key: "KEY" or "NAME KEY". Keys without a name are called key1, key2, ...
  void add(std::string_view line);
  // Adds a key for each line of a file. Skips empty lines and lines that begin with #. Throws Failure.
  void read_file(const std::string& path);
  [[nodiscard]] bool empty() const noexcept { return keys_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return keys_.size(); }

  // Returns the tenant to whom the key of a request belongs ("Authorization: Bearer KEY" or "x-api-key: KEY"); nullopt if the key is not
  // known. Takes the same time for every key, so that nobody can guess a key by the time.
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

// Limits the requests a minute of each tenant. A tenant may send the requests of ten seconds at once.
class Rates {
 public:
  explicit Rates(double per_minute) : per_minute_(per_minute) {}
  // Counts a request. Returns 0 if the request may go on, else the seconds until a request may go on.
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
