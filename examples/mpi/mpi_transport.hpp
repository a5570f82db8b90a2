// Carries the bytes between tessera's ranks over MPI: process i of MPI_COMM_WORLD is rank i.
#pragma once

#include <deque>
#include <vector>

#include <mpi.h>

#include <tessera/extend/backend/rank_transport.hpp>

namespace example {

// Preconditions: MPI_Init_thread() was called with at least MPI_THREAD_SERIALIZED, and the object is destroyed before MPI_Finalize().
class MpiTransport final : public tessera::RankTransport {
 public:
  MpiTransport();
  ~MpiTransport() override;  // closes the connections, and waits until the other ranks have closed theirs

  [[nodiscard]] std::uint32_t rank() const noexcept override { return rank_; }
  [[nodiscard]] std::uint32_t ranks() const noexcept override { return static_cast<std::uint32_t>(peers_.size()); }
  tessera::Result<std::size_t> send(std::uint32_t to, std::span<const std::byte> bytes) noexcept override;
  tessera::Result<std::size_t> receive(std::uint32_t from, std::span<std::byte> bytes) noexcept override;
  void wait(std::chrono::milliseconds timeout) noexcept override;
  void close(std::uint32_t to) noexcept override;

 private:
  // A message that MPI has not sent yet. MPI reads the bytes until `request` is done.
  struct Sent {
    std::vector<std::byte> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  struct Peer {
    std::deque<Sent> sent;
    std::vector<std::byte> arrived;  // the message that is being read
    std::size_t read = 0;            // bytes of `arrived` that were read
    bool has_ended = false;          // the other rank has sent its last message, an empty one
    bool is_closed = false;          // this rank has sent its last message
  };

  void post(std::uint32_t to, std::span<const std::byte> bytes);
  void forget_sent(Peer& peer) noexcept;

  std::uint32_t rank_ = 0;
  std::vector<Peer> peers_;
};

}  // namespace example
