// One connection. It reads requests one after the other, and writes the answer to each before it looks at the next request.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>

#include "http_server.hpp"

namespace server {

// The state that all connections share.
struct HttpShared {
  HttpOptions options;
  HttpHandler handler;
  HttpRefusal refusal;
  std::atomic<std::size_t> connections{0};  // open connections: a new one counts up, on_closed counts down
  std::atomic<std::size_t> answering{0};    // connections whose client waits for an answer or the rest of an answer
  std::atomic<bool> draining{false};
  std::function<void()> on_closed;     // called when a connection has ended
};

class HttpConnection {
 public:
  virtual ~HttpConnection() = default;
  // Write to the answer of the request with the number `request`. If this answer is over, the data are dropped.
  virtual void post_send(std::uint64_t request, HttpResponse response) = 0;
  virtual void post_begin(std::uint64_t request, HttpResponse response, std::string idle) = 0;
  virtual void post_write(std::uint64_t request, std::string chunk) = 0;
  virtual void post_end(std::uint64_t request) = 0;
  virtual void post_close_if_idle() = 0;
  virtual void post_close() = 0;
};

// A connection's answer to one request.
class ConnectionReply final : public HttpReply {
 public:
  ConnectionReply(std::shared_ptr<HttpConnection> connection, std::uint64_t request, std::string path, std::shared_ptr<HttpShared> shared)
      : connection_(std::move(connection)), request_(request), path_(std::move(path)), shared_(std::move(shared)) {}
  ~ConnectionReply() override;
  void send(HttpResponse response) override;
  void begin_stream(HttpResponse response, std::string idle) override;
  void write(std::string chunk) override;
  void end_stream() override;
  [[nodiscard]] std::size_t unsent() const noexcept override { return books_->unsent.load(); }
  [[nodiscard]] bool gone() const noexcept override { return books_->gone.load(); }
  void on_change(std::function<void()> change) override;

  // The state of the answer that the connection and the reply share.
  struct Books {
    std::atomic<std::size_t> unsent{0};
    std::atomic<bool> gone{false};
    std::mutex mutex;
    std::function<void()> change;
    void tell();
  };
  [[nodiscard]] const std::shared_ptr<Books>& books() const noexcept { return books_; }

 private:
  std::shared_ptr<HttpConnection> connection_;
  std::uint64_t request_;
  std::string path_;
  std::shared_ptr<HttpShared> shared_;
  std::shared_ptr<Books> books_ = std::make_shared<Books>();
  std::atomic<bool> begun_{false}, ended_{false};
};

void start_connection(boost::asio::ip::tcp::socket socket, std::shared_ptr<HttpShared> shared, boost::asio::ssl::context* tls,
                      const std::function<void(const std::shared_ptr<HttpConnection>&)>& made);

}  // namespace server
