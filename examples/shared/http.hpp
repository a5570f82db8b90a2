// The interface between HTTP and the handlers of requests. Handlers know nothing of sockets.
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
  std::string path;    // the target up to '?'
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

// The answer to one request, as its handler sends it: one response, or a stream of chunks. Any thread may call the functions. Once the
// client has gone, the functions do nothing. If a reply is destroyed before an answer was begun, the client gets an error of status 500. If
// a reply is destroyed within a stream, the connection is closed.
class HttpReply {
 public:
  virtual ~HttpReply() = default;
  virtual void send(HttpResponse response) = 0;
  // Begins a stream, whose first chunk is `response.body`. While nothing else is written, `idle` is written every 15 seconds, so that
  // neither the client nor a proxy takes the silence for the end. If `idle` is empty, nothing is written.
  virtual void begin_stream(HttpResponse response, std::string idle) = 0;
  virtual void write(std::string chunk) = 0;
  virtual void end_stream() = 0;

  [[nodiscard]] virtual std::size_t unsent() const noexcept = 0;  // bytes that the client has not taken yet
  [[nodiscard]] virtual bool gone() const noexcept = 0;
  // Sets a function that is called when the client has taken all that was written, and when the client has gone. The function must return
  // soon.
  virtual void on_change(std::function<void()> change) = 0;
};
using HttpReplyPtr = std::shared_ptr<HttpReply>;

// Handles a request. Must neither block nor throw.
using HttpHandler = std::function<void(HttpRequest request, HttpReplyPtr reply)>;
// A function that makes the answer to a request which no handler answers: because the request is broken, slow or oversized, or because its
// handler has failed. `path` is empty if the path is not known.
using HttpRefusal = std::function<HttpResponse(std::string_view path, unsigned status, const std::string& message)>;

}  // namespace server
