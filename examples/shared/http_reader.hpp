// Parses the bytes of a connection into requests, one after the other, and reports faulty requests. Uses no sockets.
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
  enum class Progress {
    waits,   // more bytes are needed
    headed,  // a header has come, without its body
    whole,   // a request has come: take() it before the next step
    refused  // the bytes are no request that can be answered: see refusal(). The beginning of a next request is not known
  };

  HttpReader(std::size_t most_header, std::size_t most_body) : most_header_(most_header), most_body_(most_body) {}

  void add(std::string_view bytes);
  [[nodiscard]] Progress step();
  [[nodiscard]] HttpRequest take();

  [[nodiscard]] bool is_within() const noexcept { return parser_.has_value(); }      // part of a request has come
  [[nodiscard]] std::size_t unread() const noexcept { return buffer_.size(); }       // bytes that no step has read
  // Properties of the request that is being read, or was taken last.
  [[nodiscard]] bool keeps_alive() const noexcept { return keeps_alive_; }           // the connection stays open after the answer
  [[nodiscard]] bool is_http_1_0() const noexcept { return is_http_1_0_; }
  [[nodiscard]] bool expects_continue() const noexcept { return expects_continue_; }

  struct Refusal {
    unsigned status = 400;
    std::string message{};
  };
  [[nodiscard]] const Refusal& refusal() const noexcept { return refusal_; }
  // Returns the part of the path that has come.
  [[nodiscard]] std::string path() const;

 private:
  Progress refuse(unsigned status, std::string message);
  Progress refuse(boost::system::error_code error);
  [[nodiscard]] bool takes_header();
  // Skips empty lines in front of a request. Returns false if an empty line may have come in part.
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
