// Requests out of the bytes of a connection, one after the other; and what is wrong with what is none. No sockets here.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "http.hpp"

namespace server {

class HttpReader {
 public:
  enum class Step {
    waits,   // for more bytes
    headed,  // a header has come, and its body has not
    whole,   // a request has come: it is taken before the next step
    refused  // it is none that can be answered: refusal() says why. Where the next one begins nobody knows
  };

  HttpReader(std::size_t most_header, std::size_t most_body) : most_header_(most_header), most_body_(most_body) {}

  void add(std::string_view bytes);
  [[nodiscard]] Step step();
  [[nodiscard]] HttpRequest take();

  [[nodiscard]] bool is_within() const noexcept { return parser_.has_value(); }      // some of a request has come
  [[nodiscard]] std::size_t unread() const noexcept { return buffer_.size(); }       // bytes that no step has looked at
  // Of the request that is read, or was taken last.
  [[nodiscard]] bool keeps_alive() const noexcept { return keeps_alive_; }           // the connection, when it is answered
  [[nodiscard]] bool is_http_1_0() const noexcept { return is_http_1_0_; }
  [[nodiscard]] bool expects_continue() const noexcept { return expects_continue_; }

  struct Refusal {
    unsigned status = 400;
    std::string message{};
  };
  [[nodiscard]] const Refusal& refusal() const noexcept { return refusal_; }
  // As far as it has come.
  [[nodiscard]] std::string path() const;

 private:
  Step refuse(unsigned status, std::string message);
  Step refuse(boost::system::error_code error);
  [[nodiscard]] bool takes_header();
  // Empty lines in front of a request are passed over. False: one may have come in part.
  [[nodiscard]] bool skips_empty_lines();

  std::size_t most_header_, most_body_;
  int skipped_ = 0;  // empty lines in front of this request
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
  bool headed_ = false, keeps_alive_ = true, is_http_1_0_ = false, expects_continue_ = false;
  HttpRequest request_;
  Refusal refusal_;
};

}  // namespace server
