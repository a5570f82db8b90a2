#include "ranks/processes/rank_lines.hpp"

#include "core/error.hpp"
#include "core/printable.hpp"
#include "os/error.hpp"

namespace tessera::detail {

namespace {

RankLines::Moved moved(const os::Socket::Moved& by_system) {
  if (by_system.closed) return {.gone = "the connection was closed", .was_closed = true};
  if (by_system.error != 0) return {.gone = os::words_of(by_system.error)};
  return {.bytes = by_system.must_wait ? 0 : by_system.bytes};
}

}  // namespace

RankLines::Moved SocketLines::send(std::uint32_t rank, std::span<const std::byte> bytes) { return moved(sockets_[rank].send(bytes)); }
RankLines::Moved SocketLines::receive(std::uint32_t rank, std::span<std::byte> bytes) { return moved(sockets_[rank].receive(bytes)); }

Status SocketLines::wait(std::span<const Awaited> lines, std::chrono::milliseconds timeout) {
  awaited_.clear();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    awaited_.push_back({.socket = &sockets_[i], .to_send = lines[i].to_send, .to_receive = lines[i].to_receive});
  }
  if (const int error = os::wait_for(awaited_, timeout); error != 0) return os::system_error_at("ranks", "wait", error);
  return {};
}

TransportLines::TransportLines(std::shared_ptr<RankTransport> transport) : transport_(std::move(transport)), lines_(transport_->ranks(), Line::open) {
  lines_[transport_->rank()] = Line::closed;
}
TransportLines::~TransportLines() {
  for (std::uint32_t rank = 0; rank < lines_.size(); ++rank) close(rank);
}

// Checks the count of bytes that a transport returns, because the transport is code of the host and the count may be
// wrong.
RankLines::Moved TransportLines::moved(std::uint32_t rank, const Result<std::size_t>& by_transport, std::size_t most) {
  if (by_transport && *by_transport <= most) return {.bytes = *by_transport};
  lines_[rank] = Line::failed;
  if (by_transport) return {.gone = "its transport moves more bytes than there are"};
  return {.gone = printable(by_transport.error().text(), 500), .was_closed = by_transport.error().code() == ErrorCode::io};
}

RankLines::Moved TransportLines::send(std::uint32_t rank, std::span<const std::byte> bytes) {
  if (!is_open(rank)) return {.gone = "there is no connection"};
  return moved(rank, transport_->send(rank, bytes), bytes.size());
}
RankLines::Moved TransportLines::receive(std::uint32_t rank, std::span<std::byte> bytes) {
  if (!is_open(rank)) return {.gone = "there is no connection"};
  return moved(rank, transport_->receive(rank, bytes), bytes.size());
}

void TransportLines::close(std::uint32_t rank) noexcept {
  if (lines_[rank] == Line::closed) return;
  lines_[rank] = Line::closed;
  transport_->close(rank);
}

Status TransportLines::wait(std::span<const Awaited>, std::chrono::milliseconds timeout) {
  transport_->wait(timeout);
  return {};
}

}  // namespace tessera::detail
