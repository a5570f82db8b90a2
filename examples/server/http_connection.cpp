#include "http_connection.hpp"

#include <algorithm>
#include <deque>
#include <optional>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <fmt/format.h>

namespace server {

namespace net = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using Plain = net::ip::tcp::socket;
using Tls = net::ssl::stream<Plain>;

namespace {

constexpr auto kLingering = std::chrono::seconds(2);
constexpr auto kIdleStream = std::chrono::seconds(15);
constexpr std::size_t kReadBytes = 16 << 10;
constexpr auto kNever = Clock::time_point::max();

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return result;
}

Plain& socket_of(Plain& stream) { return stream; }
Plain& socket_of(Tls& stream) { return stream.next_layer(); }

// Every member function runs on the socket's strand, but for post_*().
template <class Stream>
class Connection final : public HttpConnection, public std::enable_shared_from_this<Connection<Stream>> {
 public:
  template <class... Args>
  explicit Connection(std::shared_ptr<HttpShared> shared, Args&&... args)
      : shared_(std::move(shared)), stream_(std::forward<Args>(args)...), timer_(stream_.get_executor()) {
    ++shared_->connections;
    error_code ignored;
    socket_of(stream_).set_option(net::ip::tcp::no_delay(true), ignored);
    const auto peer = socket_of(stream_).remote_endpoint(ignored);
    peer_ = ignored ? "unknown" : peer.address().to_string();
  }
  ~Connection() override {
    drop_books();
    if (shared_->on_closed) shared_->on_closed();
  }

  void start() {
    run([this] {
      if constexpr (std::is_same_v<Stream, Tls>) {
        due_read_ = Clock::now() + options().header_time;
        arm();
        stream_.async_handshake(net::ssl::stream_base::server, bound([this](error_code error) {
                                  if (error) close();
                                  else await_request();
                                }));
      } else {
        await_request();
      }
    });
  }

  void post_send(std::uint64_t request, HttpResponse response) override {
    run([this, request, response = std::move(response)]() mutable {
      if (request == request_ && answering_) respond(std::move(response));
    });
  }
  void post_begin(std::uint64_t request, HttpResponse response, std::string idle) override {
    run([this, request, response = std::move(response), idle = std::move(idle)]() mutable {
      if (request == request_ && answering_) begin(std::move(response), std::move(idle));
    });
  }
  void post_write(std::uint64_t request, std::string chunk) override {
    run([this, request, chunk = std::move(chunk)] {
      if (request == request_ && streaming_) put(framed(chunk), chunk.size());
    });
  }
  void post_end(std::uint64_t request) override {
    run([this, request] {
      if (request != request_ || !streaming_) return;
      if (chunked_) put("0\r\n\r\n", 0);
      finish();
    });
  }
  void post_close_if_idle() override {
    run([this] {
      if (!answering_ && parser_ == std::nullopt) close();
    });
  }
  void post_close() override {
    run([this] { close(); });
  }

 private:
  [[nodiscard]] const HttpOptions& options() const { return shared_->options; }

  template <class Fn>
  void run(Fn fn) {
    net::post(stream_.get_executor(), [self = this->shared_from_this(), fn = std::move(fn)]() mutable {
      if (!self->closed_) fn();
    });
  }
  // A handler of an operation of this connection, which it keeps alive.
  template <class Fn>
  auto bound(Fn fn) {
    return net::bind_executor(stream_.get_executor(), [self = this->shared_from_this(), fn = std::move(fn)](auto&&... args) mutable {
      if (!self->closed_) fn(std::forward<decltype(args)>(args)...);
    });
  }

  // --- Time.

  // One timer for all: it is set anew only for what is due earlier.
  void arm() {
    const auto due = std::min({due_read_, due_write_, due_idle_});
    if (due == kNever || due >= armed_) return;
    armed_ = due;
    timer_.expires_at(due);
    timer_.async_wait(bound([this](error_code error) {
      if (error) return;  // set anew
      armed_ = kNever;
      on_time();
    }));
  }
  void on_time() {
    const auto now = Clock::now();
    if (due_write_ <= now) return close();
    if (due_read_ <= now) {
      due_read_ = kNever;
      if (lingering_ || parser_ == std::nullopt) return close();
      return refuse(408, "The request did not arrive in time.");
    }
    if (due_idle_ <= now) {
      put(framed(idle_), 0);
    }
    arm();
  }

  // --- Requests.

  void await_request() {
    parser_.reset();
    due_read_ = Clock::now() + options().idle_time;
    arm();
    if (buffer_.size() > 0) return read_header();
    read_some();
  }

  // One read is under way at most, whether it is the next request's or the end of the client that it waits for.
  void read_some() {
    if (reading_) return;
    reading_ = true;
    stream_.async_read_some(buffer_.prepare(kReadBytes), bound([this](error_code error, std::size_t bytes) {
                              reading_ = false;
                              if (lingering_) return linger(error, bytes);
                              buffer_.commit(bytes);
                              if (error) return close();  // also while an answer is in the making: nobody waits for it
                              if (!answering_) read_header();
                            }));
  }

  void read_header() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(options().header_bytes));
    parser_->body_limit(options().body_bytes);
    due_read_ = Clock::now() + options().header_time;
    arm();
    reading_ = true;
    http::async_read_header(stream_, buffer_, *parser_, bound([this](error_code error, std::size_t) {
                              reading_ = false;
                              if (answering_ || lingering_) return close();  // it was refused meanwhile
                              if (error) return on_bad_request(error);
                              on_header();
                            }));
  }

  void on_header() {
    const auto& message = parser_->get();
    const bool has_length = message.count(http::field::content_length) > 0;
    if (has_length && message.count(http::field::transfer_encoding) > 0) {
      return refuse(400, "Content-Length and Transfer-Encoding exclude each other.");
    }
    if (const auto codings = message.count(http::field::transfer_encoding); codings > 0) {
      // A body of another coding has an end that nobody here knows: what follows it is not to be read as a request.
      if (codings > 1 || message.version() < 11) return refuse(400, "A request has one Transfer-Encoding header at most, and HTTP/1.0 has none.");
      if (lower(std::string(message[http::field::transfer_encoding])) != "chunked") return refuse(501, "The one transfer coding here is chunked.");
    }
    const auto hosts = message.count(http::field::host);
    if (hosts > 1 || (hosts == 0 && message.version() >= 11)) return refuse(400, "A request has one Host header.");
    if (parser_->content_length() && *parser_->content_length() > options().body_bytes) return on_bad_request(http::error::body_limit);
    if (parser_->is_done()) return dispatch();
    if (lower(std::string(message[http::field::expect])) == "100-continue") put("HTTP/1.1 100 Continue\r\n\r\n", 0);
    due_read_ = Clock::now() + options().body_time;
    arm();
    reading_ = true;
    http::async_read(stream_, buffer_, *parser_, bound([this](error_code error, std::size_t) {
                       reading_ = false;
                       if (answering_ || lingering_) return close();
                       if (error) return on_bad_request(error);
                       dispatch();
                     }));
  }

  void on_bad_request(error_code error) {
    if (error == http::error::header_limit) {
      return refuse(431, fmt::format("The header of a request has {} bytes at most.", options().header_bytes));
    }
    if (error == http::error::body_limit) {
      return refuse(413, fmt::format("The body of a request has {} bytes at most.", options().body_bytes));
    }
    if (error.category() == http::make_error_code(http::error::bad_target).category() && error != http::error::end_of_stream &&
        error != http::error::partial_message) {
      return refuse(400, "This is no HTTP/1.1 request: " + error.message() + ".");
    }
    close();
  }

  void dispatch() {
    due_read_ = kNever;
    auto message = parser_->release();
    parser_.reset();
    keep_alive_ = message.keep_alive() && !shared_->draining;
    http_1_0_ = message.version() < 11;
    head_only_ = message.method() == http::verb::head;
    HttpRequest request{.method = std::string(message.method_string()), .path = std::string(message.target()), .body = std::move(message.body()), .peer = peer_};
    if (const auto at = request.path.find('?'); at != std::string::npos) {
      request.query = request.path.substr(at + 1);
      request.path.resize(at);
    }
    for (const auto& field : message) request.headers.emplace_back(lower(std::string(field.name_string())), std::string(field.value()));
    set_answering(true);
    ++request_;
    auto reply = std::make_shared<ConnectionReply>(this->shared_from_this(), request_, shared_);
    books_ = reply->books();
    if (buffer_.size() == 0) read_some();  // the next request, or the client's end
    shared_->handler(std::move(request), std::move(reply));
  }

  // --- Answers.

  // An answer without a request that a handler could see. What the client still sends is not read as a request.
  void refuse(unsigned status, std::string_view message) {
    due_read_ = kNever;
    set_answering(true);
    keep_alive_ = false;
    head_only_ = false;
    respond({.status = status, .body = fmt::format(R"({{"error": {{"message": "{}", "type": "invalid_request_error", "param": null, "code": null}}}})", message)});
  }

  std::string head_of(const HttpResponse& response) const {
    std::string text = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nConnection: {}\r\n", response.status,
                                   std::string(http::obsolete_reason(static_cast<http::status>(response.status))), response.type,
                                   keep_alive_ ? "keep-alive" : "close");
    for (const auto& [name, value] : response.headers) text += fmt::format("{}: {}\r\n", name, value);
    return text;
  }

  void respond(HttpResponse response) {
    keep_alive_ = keep_alive_ && !shared_->draining;
    std::string text = head_of(response) + fmt::format("Content-Length: {}\r\n\r\n", response.body.size());
    if (!head_only_) text += response.body;
    put(std::move(text), 0);
    finish();
  }

  void begin(HttpResponse response, std::string idle) {
    chunked_ = !http_1_0_;
    keep_alive_ = keep_alive_ && chunked_ && !shared_->draining;
    std::string text = head_of(response) + (chunked_ ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n");
    streaming_ = true;
    idle_ = std::move(idle);
    put(std::move(text) + (response.body.empty() ? "" : framed(response.body)), 0);
  }

  [[nodiscard]] std::string framed(std::string_view chunk) const {
    return chunked_ ? fmt::format("{:x}\r\n{}\r\n", chunk.size(), chunk) : std::string(chunk);
  }

  // `counted` bytes of it are in the answer's books as not yet sent.
  void put(const std::string& text, std::size_t counted) {
    out_ += text;
    out_counted_ += counted;
    if (streaming_ && !idle_.empty()) due_idle_ = Clock::now() + kIdleStream;
    if (!writing_) write_out();
    arm();
  }

  void write_out() {
    writing_ = true;
    sending_ = std::move(out_);
    out_.clear();
    sending_counted_ = std::exchange(out_counted_, 0);
    sent_ = 0;
    write_rest();
  }
  // Piece by piece, so that a client that takes a little now and then is seen to.
  void write_rest() {
    due_write_ = Clock::now() + options().write_time;
    arm();
    stream_.async_write_some(net::buffer(sending_.data() + sent_, sending_.size() - sent_), bound([this](error_code error, std::size_t bytes) {
                               if (error) return close();
                               sent_ += bytes;
                               if (sent_ < sending_.size()) return write_rest();
                               on_written();
                             }));
  }
  void on_written() {
    writing_ = false;
    due_write_ = kNever;
    if (books_ != nullptr) books_->unsent -= sending_counted_;
    sending_.clear();
    if (!out_.empty()) return write_out();
    if (finished_) return next();
    if (books_ != nullptr) books_->tell();
  }

  void finish() {
    streaming_ = false;
    due_idle_ = kNever;
    finished_ = true;
    if (!writing_) next();
  }

  // The answer has been written.
  void next() {
    finished_ = false;
    set_answering(false);
    books_.reset();
    if (!keep_alive_) return shut();
    await_request();
  }

  // The client gets to read all before the connection ends, though it may still be sending.
  void shut() {
    lingering_ = true;
    due_read_ = Clock::now() + kLingering;
    arm();
    error_code ignored;
    if constexpr (std::is_same_v<Stream, Tls>) {
      stream_.async_shutdown(bound([this](error_code) { close(); }));
    } else {
      stream_.shutdown(Plain::shutdown_send, ignored);
      if (!reading_) read_some();
    }
  }
  void linger(error_code error, std::size_t bytes) {
    lingered_ += bytes;
    if (error || lingered_ > options().body_bytes) return close();
    read_some();
  }

  void set_answering(bool answering) {
    if (std::exchange(answering_, answering) == answering) return;
    if (answering) ++shared_->answering;
    else --shared_->answering;
  }
  void drop_books() {
    set_answering(false);
    out_.clear();
    sending_.clear();
    if (books_ == nullptr) return;
    books_->gone = true;
    books_->tell();
    books_.reset();
  }
  void close() {
    closed_ = true;
    timer_.cancel();
    error_code ignored;
    socket_of(stream_).close(ignored);
    drop_books();
  }

  std::shared_ptr<HttpShared> shared_;
  Stream stream_;
  net::steady_timer timer_;
  std::string peer_;
  boost::beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;  // a request that is arriving
  Clock::time_point due_read_ = kNever, due_write_ = kNever, due_idle_ = kNever, armed_ = kNever;

  std::uint64_t request_ = 0;  // counted: the one that is answered
  bool answering_ = false, streaming_ = false, chunked_ = true, keep_alive_ = true, http_1_0_ = false, head_only_ = false;
  bool reading_ = false, writing_ = false, finished_ = false, lingering_ = false, closed_ = false;
  std::shared_ptr<ConnectionReply::Books> books_;  // of the one that is answered
  std::string idle_;
  std::string out_, sending_;  // what is to be sent, and what is being sent
  std::size_t out_counted_ = 0, sending_counted_ = 0, sent_ = 0, lingered_ = 0;
};

}  // namespace

void start_connection(Plain socket, std::shared_ptr<HttpShared> shared, net::ssl::context* tls,
                      const std::function<void(const std::shared_ptr<HttpConnection>&)>& made) {
  const auto start = [&](const auto& connection) {
    made(connection);
    connection->start();
  };
  if (tls != nullptr) start(std::make_shared<Connection<Tls>>(std::move(shared), std::move(socket), *tls));
  else start(std::make_shared<Connection<Plain>>(std::move(shared), std::move(socket)));
}

}  // namespace server
