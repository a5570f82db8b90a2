#include "mpi_transport.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

namespace example {

namespace {

constexpr int kTag = 7345;  // the tag of this transport's messages
// The most bytes of a message, and the most messages to a rank that are not sent yet.
constexpr std::size_t kMessageBytes = std::size_t{1} << 20, kMostSent = 16;

tessera::Error ended() { return {tessera::ErrorCode::io, "the process has ended"}; }
tessera::Error no_memory() { return {tessera::ErrorCode::out_of_memory, "no memory for a message"}; }

}  // namespace

MpiTransport::MpiTransport() {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  rank_ = static_cast<std::uint32_t>(rank);
  peers_.resize(static_cast<std::size_t>(ranks));
}

MpiTransport::~MpiTransport() {
  for (std::uint32_t i = 0; i < peers_.size(); ++i) {
    if (i != rank_) close(i);
  }
  // MPI sends a large message only when the other process receives it. So each process receives here until all others have closed too.
  for (bool is_done = false; !is_done; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    is_done = true;
    for (std::uint32_t i = 0; i < peers_.size(); ++i) {
      if (i == rank_) continue;
      Peer& peer = peers_[i];
      forget_sent(peer);
      peer.read = peer.arrived.size();
      std::byte byte;
      (void)receive(i, {&byte, 1});
      is_done = is_done && peer.sent.empty() && peer.has_ended;
    }
  }
}

void MpiTransport::post(std::uint32_t to, std::span<const std::byte> bytes) {
  Sent& sent = peers_[to].sent.emplace_back();  // `sent` is a deque, so earlier messages keep their address
  sent.bytes.assign(bytes.begin(), bytes.end());
  MPI_Isend(sent.bytes.data(), static_cast<int>(sent.bytes.size()), MPI_BYTE, static_cast<int>(to), kTag, MPI_COMM_WORLD, &sent.request);
}

void MpiTransport::forget_sent(Peer& peer) noexcept {
  while (!peer.sent.empty()) {
    int done = 0;
    MPI_Test(&peer.sent.front().request, &done, MPI_STATUS_IGNORE);
    if (done == 0) return;
    peer.sent.pop_front();
  }
}

tessera::Result<std::size_t> MpiTransport::send(std::uint32_t to, std::span<const std::byte> bytes) noexcept {
  Peer& peer = peers_[to];
  if (peer.has_ended) return ended();
  forget_sent(peer);
  if (peer.sent.size() >= kMostSent || bytes.empty()) return std::size_t{0};
  const std::size_t n = std::min(bytes.size(), kMessageBytes);
  try {
    post(to, bytes.first(n));
  } catch (const std::exception&) {
    return no_memory();
  }
  return n;
}

tessera::Result<std::size_t> MpiTransport::receive(std::uint32_t from, std::span<std::byte> bytes) noexcept {
  Peer& peer = peers_[from];
  if (peer.read == peer.arrived.size() && !peer.has_ended) {
    int here = 0, size = 0;
    MPI_Status status;
    MPI_Iprobe(static_cast<int>(from), kTag, MPI_COMM_WORLD, &here, &status);
    if (here == 0) return std::size_t{0};
    MPI_Get_count(&status, MPI_BYTE, &size);
    try {
      peer.arrived.resize(static_cast<std::size_t>(size));
    } catch (const std::exception&) {
      return no_memory();
    }
    peer.read = 0;
    MPI_Recv(peer.arrived.data(), size, MPI_BYTE, static_cast<int>(from), kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    peer.has_ended = size == 0;
  }
  if (peer.has_ended) return ended();
  const std::size_t n = std::min(bytes.size(), peer.arrived.size() - peer.read);
  std::memcpy(bytes.data(), peer.arrived.data() + peer.read, n);
  peer.read += n;
  return n;
}

void MpiTransport::wait(std::chrono::milliseconds timeout) noexcept {
  // MPI cannot wait with a time limit, so this function looks repeatedly: often at first, as most answers come within microseconds.
  const auto end = std::chrono::steady_clock::now() + timeout;
  for (int looks = 0; std::chrono::steady_clock::now() < end; ++looks) {
    int here = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &here, MPI_STATUS_IGNORE);
    if (here != 0) return;
    for (Peer& peer : peers_) {
      const std::size_t before = peer.sent.size();
      forget_sent(peer);
      if (peer.sent.size() < before) return;
    }
    if (looks < 1000) std::this_thread::yield();
    else std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

void MpiTransport::close(std::uint32_t to) noexcept {
  Peer& peer = peers_[to];
  if (peer.is_closed) return;
  peer.is_closed = true;
  try {
    post(to, {});  // an empty message is a rank's last message
  } catch (const std::exception&) {
    MPI_Abort(MPI_COMM_WORLD, 1);  // the other process would wait for ever
  }
}

}  // namespace example
