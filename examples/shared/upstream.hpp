// Sends requests to another server, over HTTP/1.1 or HTTPS. Each request opens a connection.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>

#include "http.hpp"

namespace server {

struct Url {
  bool is_tls = false;
  std::string host;
  std::string port;
  std::string prefix;  // stands in front of "/v1/...": empty, or "/path"
  [[nodiscard]] std::string authority() const;  // "HOST:PORT", with brackets around an address of IPv6
  [[nodiscard]] std::string text() const;
};
// Reads "http://HOST[:PORT][/PATH]", or with https. Removes "/v1" from the end. Throws UsageError.
[[nodiscard]] Url parse_url(const std::string& text);

struct UpstreamLimits {
  std::chrono::milliseconds connect_time{5000};
  std::chrono::milliseconds answer_time{300'000};  // from the request to the head of the answer
  std::chrono::milliseconds silence{60'000};       // between two pieces of an answer
  std::size_t answer_bytes = std::size_t{64} << 20;
};

struct UpstreamError : std::runtime_error {
  enum class Kind { unreachable, late, broken, cancelled };
  UpstreamError(Kind kind_, const std::string& message) : std::runtime_error(message), kind(kind_) {}
  Kind kind;
};

struct UpstreamAnswer {
  unsigned status = 0;
  std::string type{}, retry_after{};
  std::string body{};  // empty if the pieces were passed on
};

class Upstream {
 public:
  Upstream(Url url, std::string key, const UpstreamLimits& limits) : url_(std::move(url)), key_(std::move(key)), limits_(limits) {}

  // A function that gets the pieces of an answer of status 200 as they come.
  using Pass = std::function<void(std::string_view piece)>;
  // Sends a request and returns the answer. If `pass` is set and the status is 200, the body goes to `pass`, piece by piece, and not into
  // the answer. `authorization`: the client's header; it is sent if this object has no key for the server. A requested `stop` ends the
  // exchange at once. Throws UpstreamError.
  [[nodiscard]] UpstreamAnswer ask(const std::string& method, const std::string& path, const std::string& body, const std::string& authorization,
                                   const std::stop_token& stop, const Pass& pass = {}) const;
  [[nodiscard]] const Url& url() const noexcept { return url_; }

 private:
  Url url_;
  std::string key_;
  UpstreamLimits limits_;
};

}  // namespace server
