// The seam between HTTP and what the server answers: handlers see these, and nothing of sockets.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace server {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // of the target, up to '?'
  std::string query{};
  Headers headers{};   // names in lower case
  std::string body{};
  std::string peer{};  // the client's address

  [[nodiscard]] std::string_view header(std::string_view name) const noexcept {  // empty if absent
    for (const auto& [key, value] : headers) {
      if (key == name) return value;
    }
    return {};
  }
};

struct HttpResponse {
  unsigned status = 200;
  std::string body{};
  std::string type = "application/json";
  Headers headers{};
};

// Where a request's answer goes: one response, or a stream of chunks. Any thread may call; once the client has gone, calls do
// nothing. One that is destroyed without an answer has the server say that it failed.
class HttpReply {
 public:
  virtual ~HttpReply() = default;
  virtual void send(HttpResponse response) = 0;
  // `response.body` is the first chunk. While nothing else is written, `idle` is every 15 seconds, so that neither client nor
  // proxies take the silence for the end.
  virtual void begin_stream(HttpResponse response, std::string idle) = 0;
  virtual void write(std::string chunk) = 0;
  virtual void end_stream() = 0;

  [[nodiscard]] virtual std::size_t unsent() const noexcept = 0;  // bytes that the client has not taken yet
  [[nodiscard]] virtual bool gone() const noexcept = 0;
  // Told when the client has taken all that was written, and when it has gone, by a thread that must not be kept.
  virtual void on_change(std::function<void()> change) = 0;
};
using HttpReplyPtr = std::shared_ptr<HttpReply>;

// Must not block, nor throw.
using HttpHandler = std::function<void(HttpRequest request, HttpReplyPtr reply)>;
// The answer to what no handler sees or answers: broken, slow and oversized requests. The path is empty if it has not come.
using HttpRefusal = std::function<HttpResponse(std::string_view path, unsigned status, const std::string& message)>;

}  // namespace server
