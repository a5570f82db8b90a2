#include "upstream.hpp"

#include <optional>
#include <utility>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <fmt/format.h>

#include "failure.hpp"

namespace server {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using tcp = net::ip::tcp;
using Kind = UpstreamError::Kind;

namespace {

constexpr std::uint32_t kHeaderBytes = 64 << 10;
constexpr std::size_t kPieceBytes = 64 << 10;  // the most bytes of an answer that one read takes

// One request and its answer. Each operation runs to its end on an io_context that only this exchange uses, so that time limits and a stop
// can end the operation.
template <class Stream>
class Exchange {
 public:
  template <class... Args>
  Exchange(const Url& url, const UpstreamLimits& limits, std::stop_token stop, net::io_context& io, Args&... args)
      : url_(url), limits_(limits), stop_(std::move(stop)), io_(io), stream_(io, args...) {}

  UpstreamAnswer run(const http::request<http::string_body>& request, const Upstream::Pass& pass) {
    const std::stop_callback ends(stop_, [this] { net::post(io_, [this] { close(); }); });
    connect();
    beast::get_lowest_layer(stream_).expires_after(limits_.answer_time);
    check(wait([&](auto done) { http::async_write(stream_, request, std::move(done)); }), Kind::unreachable);
    http::response_parser<http::string_body> parser;
    parser.header_limit(kHeaderBytes);
    parser.body_limit(limits_.answer_bytes);
    beast::flat_buffer buffer;
    buffer.reserve(kPieceBytes);  // otherwise each read would ask for only about a kilobyte
    check(wait([&](auto done) { http::async_read_header(stream_, buffer, parser, std::move(done)); }), Kind::broken);
    UpstreamAnswer answer{.status = parser.get().result_int(), .type = std::string(parser.get()[http::field::content_type]),
                          .retry_after = std::string(parser.get()[http::field::retry_after])};
    const bool passes = pass && answer.status == 200;
    for (;;) {
      if (passes && !parser.get().body().empty()) pass(std::exchange(parser.get().body(), {}));
      if (parser.is_done()) break;
      beast::get_lowest_layer(stream_).expires_after(limits_.silence);
      check(wait([&](auto done) { http::async_read_some(stream_, buffer, parser, std::move(done)); }), Kind::broken);
    }
    if (!passes) answer.body = std::move(parser.get().body());
    close();
    return answer;
  }

 private:
  template <class Start>
  error_code wait(Start start) {
    std::optional<error_code> result;
    if (stop_.stop_requested()) return net::error::operation_aborted;
    start([&result](error_code error, auto&&...) { result = error; });
    io_.restart();
    io_.run();
    return result.value_or(net::error::operation_aborted);
  }

  void check(error_code error, Kind kind) {
    if (!error) return;
    if (stop_.stop_requested()) throw UpstreamError(Kind::cancelled, "the request was cancelled");
    if (error == beast::error::timeout) throw UpstreamError(Kind::late, fmt::format("{} did not answer in time", url_.text()));
    if (error == http::error::body_limit) throw UpstreamError(Kind::broken, fmt::format("the answer of {} is larger than {} bytes", url_.text(), limits_.answer_bytes));
    throw UpstreamError(kind, fmt::format("{}: {}", url_.text(), error.message()));
  }

  void connect() {
    tcp::resolver resolver(io_);
    tcp::resolver::results_type found;
    std::optional<error_code> resolved;
    beast::get_lowest_layer(stream_).expires_after(limits_.connect_time);
    resolver.async_resolve(url_.host, url_.port, [&](error_code error, auto results) {
      resolved = error;
      found = std::move(results);
    });
    io_.restart();
    io_.run_for(limits_.connect_time);
    if (!resolved) {
      resolver.cancel();
      io_.run();
      throw UpstreamError(stop_.stop_requested() ? Kind::cancelled : Kind::unreachable, fmt::format("the name of {} was not found in time", url_.text()));
    }
    check(*resolved, Kind::unreachable);
    beast::get_lowest_layer(stream_).expires_after(limits_.connect_time);
    const error_code connected = wait([&](auto done) { beast::get_lowest_layer(stream_).async_connect(found, std::move(done)); });
    check(connected == beast::error::timeout ? error_code(net::error::timed_out) : connected, Kind::unreachable);
    error_code ignored;
    beast::get_lowest_layer(stream_).socket().set_option(tcp::no_delay(true), ignored);
    if constexpr (!std::is_same_v<Stream, beast::tcp_stream>) {
      stream_.set_verify_callback(net::ssl::host_name_verification(url_.host), ignored);
      SSL_set_tlsext_host_name(stream_.native_handle(), url_.host.c_str());
      check(wait([&](auto done) { stream_.async_handshake(net::ssl::stream_base::client, std::move(done)); }), Kind::unreachable);
    }
  }
  void close() {
    error_code ignored;
    beast::get_lowest_layer(stream_).socket().close(ignored);
  }

  const Url& url_;
  const UpstreamLimits& limits_;
  std::stop_token stop_;
  net::io_context& io_;
  Stream stream_;
};

}  // namespace

std::string Url::authority() const { return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port); }
std::string Url::text() const { return fmt::format("{}://{}{}", is_tls ? "https" : "http", authority(), prefix); }

Url parse_url(const std::string& text) {
  const auto wrong = [&] { return UsageError(fmt::format("\"{}\" is no address of a server, such as http://127.0.0.1:8080", text)); };
  std::string_view rest = text;
  Url url;
  if (rest.starts_with("https://")) {
    url.is_tls = true;
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else {
    throw wrong();
  }
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view authority = rest.substr(0, slash);
  std::string_view path = rest.substr(slash);
  while (path.ends_with('/')) path.remove_suffix(1);
  if (path.ends_with("/v1")) path.remove_suffix(3);
  url.prefix = path;
  const std::size_t bracket = authority.find(']'), colon = authority.find(':', bracket == authority.npos ? 0 : bracket);
  url.port = colon == authority.npos ? (url.is_tls ? "443" : "80") : std::string(authority.substr(colon + 1));
  authority = authority.substr(0, colon);
  if (authority.starts_with('[') && authority.ends_with(']')) authority = authority.substr(1, authority.size() - 2);
  url.host = authority;
  const bool is_bad = text.find_first_of(" \t\r\n@?#") != text.npos;
  if (is_bad || url.host.empty() || url.port.empty() || url.port.find_first_not_of("0123456789") != std::string::npos || url.port.size() > 5) throw wrong();
  if (const int port = std::stoi(url.port); port < 1 || port > 65535) throw wrong();
  return url;
}

UpstreamAnswer Upstream::ask(const std::string& method, const std::string& path, const std::string& body, const std::string& authorization,
                             const std::stop_token& stop, const Pass& pass) const {
  http::request<http::string_body> request(http::string_to_verb(method), url_.prefix + path, 11);
  request.set(http::field::host, url_.authority());
  request.set(http::field::user_agent, "tessera");
  request.set(http::field::accept, "application/json, text/event-stream");
  request.set(http::field::connection, "close");
  if (!key_.empty()) request.set(http::field::authorization, "Bearer " + key_);
  else if (!authorization.empty()) request.set(http::field::authorization, authorization);
  if (!body.empty()) request.set(http::field::content_type, "application/json");
  request.body() = body;
  request.prepare_payload();
  net::io_context io(1);
  if (!url_.is_tls) return Exchange<beast::tcp_stream>(url_, limits_, stop, io).run(request, pass);
  net::ssl::context tls(net::ssl::context::tls_client);
  error_code ignored;
  tls.set_default_verify_paths(ignored);
  tls.set_verify_mode(net::ssl::verify_peer);
  return Exchange<beast::ssl_stream<beast::tcp_stream>>(url_, limits_, stop, io, tls).run(request, pass);
}

}  // namespace server
