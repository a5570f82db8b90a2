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

// Detects a malformed chunk, whose first line (size, then extensions) ends within quotes: Beast would look for the closing quote in the
// chunk's data. Returns true for such a line. `around`: the unread bytes, from the end of the previous chunk on.
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

struct Target {
  std::string path, query, host;  // host: from the absolute form "http://host/path"; replaces the Host header
  bool is_absolute = false;
};

Target target_of(std::string_view text) {
  Target target;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (lower(text.substr(0, scheme.size())) != scheme) continue;
    text.remove_prefix(scheme.size());
    const std::size_t end = std::min(text.find_first_of("/?"), text.size());
    target.host = text.substr(0, end);
    target.is_absolute = true;
    text.remove_prefix(end);
    break;
  }
  const std::size_t query = std::min(text.find('?'), text.size());
  target.path = text.substr(0, query);
  if (target.is_absolute && target.path.empty()) target.path = "/";
  if (query < text.size()) target.query = text.substr(query + 1);
  return target;
}

}  // namespace

void HttpReader::add(std::string_view bytes) { buffer_.commit(net::buffer_copy(buffer_.prepare(bytes.size()), net::buffer(bytes))); }

// Skips empty lines in front of a request, because some clients send an additional empty line after a body (RFC 9112, 2.2). Skips only a
// few, so that no client can keep a connection open with them.
bool HttpReader::skips_empty_lines() {
  constexpr int kMost = 8;
  while (skipped_ < kMost) {
    const std::string_view unread(static_cast<const char*>(buffer_.data().data()), buffer_.size());
    if (unread == "\r") return false;
    if (!unread.starts_with("\r\n")) break;
    buffer_.consume(2);
    ++skipped_;
  }
  return true;
}

HttpReader::Progress HttpReader::step() {
  if (!parser_ && !skips_empty_lines()) return Progress::waits;
  if (!parser_ && buffer_.size() > 0) {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(most_header_));
    parser_->body_limit(most_body_);
  }
  // Beast asserts that it gets at least as many bytes as the shortest last chunk has.
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
      if (!takes_header()) return Progress::refused;
      headed_ = true;
      return parser_->is_done() ? Progress::whole : Progress::headed;
    }
    // Beast limits neither the bytes between chunks (sizes, extensions) nor the bytes after the last chunk (trailers).
    const std::size_t around = read - (parser_->get().body().size() - body);
    if (std::max(around, error ? buffer_.size() : 0) > most_header_) return refuse(http::error::header_limit);
    if (parser_->is_done()) return Progress::whole;
    if (error) return Progress::waits;
  }
  return Progress::waits;
}

HttpRequest HttpReader::take() {
  request_.body = std::move(parser_->get().body());
  parser_.reset();
  headed_ = false;
  skipped_ = 0;
  return std::exchange(request_, {});
}

std::string HttpReader::path() const {
  if (!parser_) return {};
  return target_of(parser_->get().target()).path;
}

HttpReader::Progress HttpReader::refuse(unsigned status, std::string message) {
  refusal_ = {status, std::move(message)};
  return Progress::refused;
}

HttpReader::Progress HttpReader::refuse(error_code error) {
  if (error == http::error::header_limit) return refuse(431, fmt::format("The header of a request has {} bytes at most.", most_header_));
  if (error == http::error::body_limit) return refuse(413, fmt::format("The body of a request has {} bytes at most.", most_body_));
  return refuse(400, fmt::format("This is no HTTP/1.1 request: {}.", error.message()));
}

// Takes the header in front of the body. Fields after a body in chunks (trailers) are ignored.
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
    // The end of a body in another coding cannot be found, so the next bytes must not be read as a request.
    if (codings > 1 || is_http_1_0_) return fails(400, "A request has one Transfer-Encoding header at most, and HTTP/1.0 has none.");
    if (lower(message[http::field::transfer_encoding]) != "chunked") return fails(501, "The only transfer coding that this server knows is chunked.");
  }
  const auto hosts = message.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && !is_http_1_0_)) return fails(400, "A request has one Host header.");
  if (parser_->content_length() && *parser_->content_length() > most_body_) {
    (void)refuse(http::error::body_limit);
    return false;
  }
  keeps_alive_ = message.keep_alive();
  expects_continue_ = !is_http_1_0_ && lower(message[http::field::expect]) == "100-continue";
  Target target = target_of(message.target());
  if (target.is_absolute && (target.host.empty() || target.host.find('@') != std::string::npos)) return fails(400, "The target of the request names no host.");
  request_ = {.method = std::string(message.method_string()), .path = std::move(target.path), .query = std::move(target.query)};
  for (const auto& field : message) {
    const bool is_host = field.name() == http::field::host;
    request_.headers.emplace_back(lower(field.name_string()), is_host && target.is_absolute ? target.host : std::string(field.value()));
  }
  return true;
}

}  // namespace server
