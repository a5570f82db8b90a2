#include "http_connection.hpp"

#include <algorithm>
#include <array>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/status.hpp>
#include <fmt/format.h>

#include "http_reader.hpp"

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
constexpr std::size_t kMostAhead = 64 << 10;  // about the most bytes of further requests that are read during an answer
constexpr auto kNever = Clock::time_point::max();

Plain& socket_of(Plain& stream) { return stream; }
Plain& socket_of(Tls& stream) { return stream.next_layer(); }

// Member functions run on the socket's strand. Exception: post_*() may be called on any thread.
template <class Stream>
class Connection final : public HttpConnection, public std::enable_shared_from_this<Connection<Stream>> {
 public:
  template <class... Args>
  explicit Connection(std::shared_ptr<HttpShared> shared, Args&&... args)
      : counted_(shared), shared_(std::move(shared)), stream_(std::forward<Args>(args)...), timer_(stream_.get_executor()),
        reader_(shared_->options.header_bytes, shared_->options.body_bytes) {
    error_code ignored;
    socket_of(stream_).set_option(net::ip::tcp::no_delay(true), ignored);
    const auto peer = socket_of(stream_).remote_endpoint(ignored);
    peer_ = ignored ? "unknown" : peer.address().to_string();
  }
  ~Connection() override { drop_books(); }

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
      if (!answering_ && !reader_.is_within()) close();
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
  // Returns a handler for an asynchronous operation. The handler keeps this connection alive.
  template <class Fn>
  auto bound(Fn fn) {
    return net::bind_executor(stream_.get_executor(), [self = this->shared_from_this(), fn = std::move(fn)](auto&&... args) mutable {
      if (!self->closed_) fn(std::forward<decltype(args)>(args)...);
    });
  }

  // --- Time.

  // Sets the connection's timer to the earliest of its three deadlines, unless the timer already expires before that.
  void arm() {
    const auto due = std::min({due_read_, due_write_, due_idle_});
    if (due == kNever || due >= armed_) return;
    armed_ = due;
    timer_.expires_at(due);
    timer_.async_wait(bound([this](error_code error) {
      if (error) return;  // the timer was set anew
      armed_ = kNever;
      on_time();
    }));
  }
  void on_time() {
    const auto now = Clock::now();
    if (due_write_ <= now) return close();
    if (due_read_ <= now) {
      due_read_ = kNever;
      if (lingering_ || !reader_.is_within()) return close();
      return refuse(408, "The request did not arrive in time.");
    }
    if (due_idle_ <= now) {
      put(framed(idle_), 0);
    }
    arm();
  }

  // --- Requests.

  void await_request() {
    if (reader_.unread() > 0) return read_on();
    due_read_ = Clock::now() + options().idle_time;
    arm();
    read_some();
  }

  // Begins a read. A read is always under way, also while a request is answered, so that the server notices a client that leaves.
  void read_some() {
    if (reading_ || (answering_ && reader_.unread() >= kMostAhead)) return;
    reading_ = true;
    stream_.async_read_some(net::buffer(incoming_), bound([this](error_code error, std::size_t bytes) {
                              reading_ = false;
                              if (lingering_) return linger(error, bytes);
                              if (error) return close();  // the client does not wait for the present answer any more
                              reader_.add({incoming_.data(), bytes});
                              if (answering_) return read_some();
                              read_on();
                            }));
  }

  void read_on() {
    if (!reader_.is_within()) {
      due_read_ = Clock::now() + options().header_time;
      arm();
    }
    HttpReader::Progress progress = reader_.step();
    if (progress == HttpReader::Progress::headed) {
      if (reader_.expects_continue()) put("HTTP/1.1 100 Continue\r\n\r\n", 0);
      due_read_ = Clock::now() + options().body_time;
      arm();
      progress = reader_.step();
    }
    if (progress == HttpReader::Progress::refused) return refuse(reader_.refusal().status, reader_.refusal().message);
    if (progress == HttpReader::Progress::whole) return dispatch();
    read_some();
  }

  void dispatch() {
    due_read_ = kNever;
    keep_alive_ = reader_.keeps_alive() && !shared_->draining;
    http_1_0_ = reader_.is_http_1_0();
    HttpRequest request = reader_.take();
    request.peer = peer_;
    head_only_ = request.method == "HEAD";
    set_answering(true);
    ++request_;
    auto reply = std::make_shared<ConnectionReply>(this->shared_from_this(), request_, request.path, shared_);
    books_ = reply->books();
    read_some();  // the next request, or the client's end
    shared_->handler(std::move(request), std::move(reply));
  }

  // --- Answers.

  // Answers bytes that are no request for a handler. Does not read further bytes of the client as a request.
  void refuse(unsigned status, const std::string& message) {
    due_read_ = kNever;
    set_answering(true);
    keep_alive_ = false;
    head_only_ = false;
    respond(shared_->refusal(reader_.path(), status, message));
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

  // Queues `text` for sending. `counted`: how many of its bytes are counted in Books::unsent.
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
  // Writes the bytes piece by piece, each with a new time limit, so that a slow client stays connected as long as it takes bytes.
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

  // Ends the present answer, and awaits the next request or ends the connection. Precondition: the answer was written.
  void next() {
    finished_ = false;
    set_answering(false);
    books_.reset();
    if (!keep_alive_) return shut();
    await_request();
  }

  // Ends the connection so that the client, which may still be sending, can read all of the answer.
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

  // Counts the open connections. This must be the first member of Connection, so that it is destroyed last: when the count is 0, the server
  // ends the io_context, on which sockets and timers run.
  struct Counted {
    std::shared_ptr<HttpShared> shared;

    explicit Counted(std::shared_ptr<HttpShared> by) : shared(std::move(by)) { ++shared->connections; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    ~Counted() {
      if (shared->on_closed) shared->on_closed();
    }
  };

  Counted counted_;
  std::shared_ptr<HttpShared> shared_;
  Stream stream_;
  net::steady_timer timer_;
  std::string peer_;
  std::array<char, kReadBytes> incoming_;
  HttpReader reader_;
  Clock::time_point due_read_ = kNever, due_write_ = kNever, due_idle_ = kNever, armed_ = kNever;

  std::uint64_t request_ = 0;  // number of the request that is being answered
  bool answering_ = false, streaming_ = false, chunked_ = true, keep_alive_ = true, http_1_0_ = false, head_only_ = false;
  bool reading_ = false, writing_ = false, finished_ = false, lingering_ = false, closed_ = false;
  std::shared_ptr<ConnectionReply::Books> books_;  // books of the present answer
  std::string idle_;
  std::string out_, sending_;  // bytes to send next, bytes being sent
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
