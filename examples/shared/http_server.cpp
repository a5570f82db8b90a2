#include "http_server.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <mutex>
#include <thread>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <fmt/format.h>

#include "failure.hpp"
#include "http_connection.hpp"
#include "system/port.hpp"
#include "system/program.hpp"

namespace server {

namespace net = boost::asio;
using boost::system::error_code;
using tcp = net::ip::tcp;

struct HttpServer::State : std::enable_shared_from_this<HttpServer::State> {
  explicit State(const HttpOptions& options)
      : io(static_cast<int>(options.threads)), acceptor(net::make_strand(io)), retry(acceptor.get_executor()) {
    shared->options = options;
  }

  void bind();
  void listen();
  [[noreturn]] void fail_to_listen(const error_code& error) const;
  void load_certificates();
  void accept();
  void closed();
  void keep(const std::shared_ptr<HttpConnection>& connection);
  template <class Fn>
  void each(Fn fn);

  std::shared_ptr<HttpShared> shared = std::make_shared<HttpShared>();
  net::io_context io;
  net::executor_work_guard<net::io_context::executor_type> work{io.get_executor()};  // keeps the threads running
  tcp::acceptor acceptor;
  net::steady_timer retry;
  std::unique_ptr<net::ssl::context> tls;
  std::vector<std::thread> threads;
  bool accepting = false;  // used on the acceptor's strand
  std::mutex mutex;        // guards `connections`
  std::vector<std::weak_ptr<HttpConnection>> connections;
};

void HttpServer::State::load_certificates() {
  const HttpOptions& o = shared->options;
  if (o.tls_certificate.empty()) return;
  tls = std::make_unique<net::ssl::context>(net::ssl::context::tls_server);
  tls->set_options(net::ssl::context::default_workarounds | net::ssl::context::no_tlsv1 | net::ssl::context::no_tlsv1_1 |
                   net::ssl::context::no_compression);
  // Checks first that the file is there, because OpenSSL's error does not say so.
  const auto use = [](const char* option, const std::string& path, auto&& load) {
    std::ifstream file(tessera::tool::path_of(path));
    error_code error;
    if (file.get() == std::ifstream::traits_type::eof()) throw Failure(tessera::ErrorCode::io, fmt::format("{}: cannot read {}", option, path));
    load(error);
    if (error) throw Failure(tessera::ErrorCode::io, fmt::format("{} {}: {}", option, path, error.message()));
  };
  use("--tls-cert", o.tls_certificate, [&](error_code& error) { tls->use_certificate_chain_file(o.tls_certificate, error); });
  use("--tls-key", o.tls_key, [&](error_code& error) { tls->use_private_key_file(o.tls_key, net::ssl::context::pem, error); });
}

void HttpServer::State::fail_to_listen(const error_code& error) const {
  const HttpOptions& o = shared->options;
  throw Failure(tessera::ErrorCode::io, fmt::format("cannot listen on {} port {}: {}", o.host, o.port, error.message()));
}

void HttpServer::State::bind() {
  const HttpOptions& o = shared->options;
  error_code error;
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(o.host, std::to_string(o.port), tcp::resolver::passive, error);
  if (error) fail_to_listen(error);
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor.open(endpoint.protocol(), error);
  // Does not check the result: if the port cannot be used, the bind fails.
  if (!error) (void)prepare_to_bind(static_cast<std::uintptr_t>(acceptor.native_handle()));
  if (!error) acceptor.bind(endpoint, error);
  if (error) fail_to_listen(error);
}

void HttpServer::State::listen() {
  error_code error;
  acceptor.listen(net::socket_base::max_listen_connections, error);
  if (error) fail_to_listen(error);
}

void HttpServer::State::accept() {
  if (accepting || !acceptor.is_open() || shared->connections >= shared->options.connections) return;
  accepting = true;
  acceptor.async_accept(net::make_strand(io), [self = shared_from_this()](error_code error, tcp::socket socket) {
    self->accepting = false;
    if (error == net::error::operation_aborted) return;
    if (error) {  // for example no more file descriptors: tries again later
      self->retry.expires_after(std::chrono::milliseconds(100));
      self->retry.async_wait([self](error_code stopped) {
        if (!stopped) self->accept();
      });
      return;
    }
    start_connection(std::move(socket), self->shared, self->tls.get(), [&](const auto& connection) { self->keep(connection); });
    self->accept();
  });
}

void HttpServer::State::keep(const std::shared_ptr<HttpConnection>& connection) {
  const std::lock_guard lock(mutex);
  if (connections.size() >= 2 * shared->connections + 16) {
    std::erase_if(connections, [](const auto& each) { return each.expired(); });
  }
  connections.push_back(connection);
}

void HttpServer::State::closed() {
  net::post(acceptor.get_executor(), [self = shared_from_this()] {
    --self->shared->connections;
    self->accept();
  });
}

template <class Fn>
void HttpServer::State::each(Fn fn) {
  std::vector<std::weak_ptr<HttpConnection>> all;
  {
    const std::lock_guard lock(mutex);
    all = connections;
  }
  for (const auto& weak : all) {
    if (const auto connection = weak.lock()) fn(*connection);
  }
}

HttpServer::HttpServer(const HttpOptions& options) : state_(std::make_shared<State>(options)) {
  state_->load_certificates();
  state_->bind();
}

void HttpServer::start(HttpHandler handler, HttpRefusal refusal) {
  state_->shared->handler = std::move(handler);
  state_->shared->refusal = std::move(refusal);
  state_->listen();
  state_->shared->on_closed = [weak = std::weak_ptr<State>(state_)] {
    if (const auto state = weak.lock()) state->closed();
  };
  net::post(state_->acceptor.get_executor(), [state = state_] { state->accept(); });
  for (std::size_t i = 0; i < std::max<std::size_t>(state_->shared->options.threads, 1); ++i) {
    state_->threads.emplace_back([state = state_.get()] {
      for (;;) {
        try {
          state->io.run();
          return;
        } catch (const std::exception& error) {  // no memory for one connection: other connections go on
          std::fprintf(stderr, "a connection was given up: %s\n", error.what());
        }
      }
    });
  }
}

HttpServer::~HttpServer() {
  (void)close(std::chrono::milliseconds(0));
  state_->work.reset();
  if (state_->threads.empty()) state_->io.poll();             // never started: runs the work that close() has posted, which holds the state
  for (std::thread& thread : state_->threads) thread.join();  // the threads end when there is no work left
}

std::uint16_t HttpServer::port() const noexcept {
  error_code ignored;
  return state_->acceptor.local_endpoint(ignored).port();
}
std::size_t HttpServer::connections() const noexcept { return state_->shared->connections; }

void HttpServer::drain() noexcept {
  state_->shared->draining = true;
  state_->each([](HttpConnection& connection) { connection.post_close_if_idle(); });
}

bool HttpServer::close(std::chrono::milliseconds most) noexcept {
  net::post(state_->acceptor.get_executor(), [state = state_] {
    error_code ignored;
    state->acceptor.close(ignored);
    state->retry.cancel();
  });
  const auto end = std::chrono::steady_clock::now() + most;
  for (;;) {  // again, because a connection may have been accepted meanwhile
    state_->each([](HttpConnection& connection) { connection.post_close(); });
    if (state_->shared->connections == 0) return true;
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void HttpServer::flush(std::chrono::milliseconds most) noexcept {
  const auto end = std::chrono::steady_clock::now() + most;
  while (state_->shared->answering > 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

}  // namespace server
