// A reply that reports the status of its answer to the server.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "http.hpp"
#include "notes.hpp"

namespace server {

// A reply that adds headers to the answer: `headers` (for pages of other origins) and the headers of `notes`. Calls `told` with the
// answer's status when the answer or its stream begins.
class ToldReply final : public HttpReply {
 public:
  ToldReply(HttpReplyPtr to, Headers headers, std::shared_ptr<const Notes> notes, std::function<void(unsigned)> told)
      : to_(std::move(to)), headers_(std::move(headers)), notes_(std::move(notes)), told_(std::move(told)) {}
  void send(HttpResponse response) override {
    const unsigned status = response.status;
    add_headers(response);
    to_->send(std::move(response));
    told_(status);
  }
  void begin_stream(HttpResponse response, std::string idle) override {
    const unsigned status = response.status;
    add_headers(response);
    to_->begin_stream(std::move(response), std::move(idle));
    told_(status);
  }
  void write(std::string chunk) override { to_->write(std::move(chunk)); }
  void end_stream() override { to_->end_stream(); }
  [[nodiscard]] std::size_t unsent() const noexcept override { return to_->unsent(); }
  [[nodiscard]] bool gone() const noexcept override { return to_->gone(); }
  void on_change(std::function<void()> change) override { to_->on_change(std::move(change)); }

 private:
  void add_headers(HttpResponse& response) const {
    response.headers.insert(response.headers.end(), headers_.begin(), headers_.end());
    if (!notes_->empty()) response.headers.emplace_back(kIgnoredHeader, notes_->text());
    if (std::string warnings = notes_->warnings(); !warnings.empty()) response.headers.emplace_back(kWarningHeader, std::move(warnings));
  }

  HttpReplyPtr to_;
  Headers headers_;
  std::shared_ptr<const Notes> notes_;
  std::function<void(unsigned)> told_;
};

}  // namespace server
