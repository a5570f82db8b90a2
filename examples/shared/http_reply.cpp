// ConnectionReply: passes the answer of a handler on to the connection's strand.
#include <utility>

#include "http_connection.hpp"

namespace server {

ConnectionReply::~ConnectionReply() {
  if (ended_) return;
  if (!begun_) {
    send(shared_->refusal(path_, 500, "The server failed to answer; its log says more."));
  } else {
    connection_->post_close();
  }
}

void ConnectionReply::send(HttpResponse response) {
  if (begun_.exchange(true)) return;
  ended_ = true;
  connection_->post_send(request_, std::move(response));
}

void ConnectionReply::begin_stream(HttpResponse response, std::string idle) {
  if (begun_.exchange(true)) return;
  connection_->post_begin(request_, std::move(response), std::move(idle));
}

void ConnectionReply::write(std::string chunk) {
  if (chunk.empty() || gone() || ended_) return;
  books_->unsent += chunk.size();
  connection_->post_write(request_, std::move(chunk));
}

void ConnectionReply::end_stream() {
  if (!ended_.exchange(true)) connection_->post_end(request_);
}

void ConnectionReply::on_change(std::function<void()> change) {
  const std::lock_guard lock(books_->mutex);
  books_->change = std::move(change);
}

void ConnectionReply::Books::tell() {
  std::function<void()> call;
  {
    const std::lock_guard lock(mutex);
    call = change;
  }
  if (call) call();
}

}  // namespace server
