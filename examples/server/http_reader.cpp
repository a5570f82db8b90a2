#include "http_reader.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <fmt/format.h>

namespace server {

namespace net = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return result;
}

// Whether the first line of what stands around chunks ends within quotes, which nothing may that is behind a chunk's size. Beast looks
// for the other quote behind the line, among what has come so far.
bool ends_in_quotes(std::string_view around) {
  if (around.starts_with("\r\n")) around.remove_prefix(2);
  const std::size_t end = around.find("\r\n");
  bool quoted = false;
  for (std::size_t i = 0; end != around.npos && i < end; ++i) {
    if (quoted && around[i] == '\\') ++i;
    else if (around[i] == '"') quoted = !quoted;
  }
  return quoted;
}

}  // namespace

void HttpReader::add(std::string_view bytes) { buffer_.commit(net::buffer_copy(buffer_.prepare(bytes.size()), net::buffer(bytes))); }

HttpReader::Step HttpReader::step() {
  if (!parser_ && buffer_.size() > 0) {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(most_header_));
    parser_->body_limit(most_body_);
  }
  // Beast asserts that it gets no fewer bytes than the shortest end of chunks has.
  constexpr std::size_t kLastChunk = std::string_view("0\r\n\r\n").size();
  while (buffer_.size() >= (headed_ && parser_->chunked() ? kLastChunk : 1)) {
    error_code error;
    const std::size_t body = parser_->get().body().size();
    const std::size_t read = parser_->put(buffer_.data(), error);
    buffer_.consume(read);
    if (error && error != http::error::need_more) return refuse(error);
    const std::string_view unread(static_cast<const char*>(buffer_.data().data()), buffer_.size());
    if (error && headed_ && parser_->chunked() && ends_in_quotes(unread)) return refuse(http::error::bad_chunk_extension);
    if (!headed_ && parser_->is_header_done()) {
      if (!takes_header()) return Step::refused;
      headed_ = true;
      return parser_->is_done() ? Step::whole : Step::headed;
    }
    // What stands around a chunk, and behind the last one, has no limit in Beast.
    const std::size_t around = read - (parser_->get().body().size() - body);
    if (std::max(around, error ? buffer_.size() : 0) > most_header_) return refuse(http::error::header_limit);
    if (parser_->is_done()) return Step::whole;
    if (error) return Step::waits;
  }
  return Step::waits;
}

HttpRequest HttpReader::take() {
  request_.body = std::move(parser_->get().body());
  parser_.reset();
  headed_ = false;
  return std::exchange(request_, {});
}

std::string HttpReader::path() const {
  if (!parser_) return {};
  const auto target = parser_->get().target();
  return std::string(target.substr(0, target.find('?')));
}

HttpReader::Step HttpReader::refuse(unsigned status, std::string message) {
  refusal_ = {status, std::move(message)};
  return Step::refused;
}

HttpReader::Step HttpReader::refuse(error_code error) {
  if (error == http::error::header_limit) return refuse(431, fmt::format("The header of a request has {} bytes at most.", most_header_));
  if (error == http::error::body_limit) return refuse(413, fmt::format("The body of a request has {} bytes at most.", most_body_));
  return refuse(400, fmt::format("This is no HTTP/1.1 request: {}.", error.message()));
}

// The header as it stands in front of the body: fields behind a body in chunks (trailers) add nothing to it.
bool HttpReader::takes_header() {
  const auto& message = parser_->get();
  const auto fails = [this](unsigned status, std::string why) {
    (void)refuse(status, std::move(why));
    return false;
  };
  const auto codings = message.count(http::field::transfer_encoding), lengths = message.count(http::field::content_length);
  is_http_1_0_ = message.version() < 11;
  if (lengths > 0 && codings > 0) return fails(400, "Content-Length and Transfer-Encoding exclude each other.");
  if (codings > 0) {
    // A body of another coding has an end that nobody here knows: what follows it is not to be read as a request.
    if (codings > 1 || is_http_1_0_) return fails(400, "A request has one Transfer-Encoding header at most, and HTTP/1.0 has none.");
    if (lower(message[http::field::transfer_encoding]) != "chunked") return fails(501, "The one transfer coding here is chunked.");
  }
  const auto hosts = message.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && !is_http_1_0_)) return fails(400, "A request has one Host header.");
  if (parser_->content_length() && *parser_->content_length() > most_body_) {
    (void)refuse(http::error::body_limit);
    return false;
  }
  keeps_alive_ = message.keep_alive();
  expects_continue_ = !is_http_1_0_ && lower(message[http::field::expect]) == "100-continue";
  request_ = {.method = std::string(message.method_string()), .path = std::string(message.target())};
  if (const auto at = request_.path.find('?'); at != std::string::npos) {
    request_.query = request_.path.substr(at + 1);
    request_.path.resize(at);
  }
  for (const auto& field : message) request_.headers.emplace_back(lower(field.name_string()), std::string(field.value()));
  return true;
}

}  // namespace server
