// A RankTransport carries bytes between the ranks of one model. Your program implements it: over MPI, a cluster's own network, or an
// encrypted connection. examples/mpi is a transport over MPI.
//
//   std::shared_ptr<tessera::RankTransport> mine;                        // an object of your class, in every process
//   auto engine = tessera::Engine::load(path, {.rank_transport = mine});  // in the process with rank() 0
//   auto served = tessera::serve_rank(path, {.transport = mine});         // in all others
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include <tessera/core/result.hpp>

namespace tessera {

// One rank's connections to all other ranks. Between two ranks, each byte arrives once, and bytes arrive in the order in which they were
// sent. The bytes of one send() may arrive in several pieces. The library checks the bytes by a hash.
// send() and receive() return at once, without waiting for the other rank, so two ranks may send to each other at the same time.
// Errors of send() and receive(): the other rank is gone (io: it has closed the connection). After an error the library calls only close()
// for that rank.
// A transport must buffer a few hundred bytes that the other rank has not read yet, because ranks answer while the engine still loads.
// Threads: one at a time.
class RankTransport {
 public:
  virtual ~RankTransport() = default;
  [[nodiscard]] virtual std::uint32_t rank() const noexcept = 0;   // number of this process; 0 is the engine's process
  [[nodiscard]] virtual std::uint32_t ranks() const noexcept = 0;  // number of processes, at least 2

  // Accepts bytes for rank `to`. Returns how many bytes were accepted: 0 if none can be sent now. The caller may change `bytes` after the
  // call.
  virtual Result<std::size_t> send(std::uint32_t to, std::span<const std::byte> bytes) noexcept = 0;
  // Writes arrived bytes of rank `from` to the beginning of `bytes`. Returns how many bytes were written: 0 if none have arrived.
  virtual Result<std::size_t> receive(std::uint32_t from, std::span<std::byte> bytes) noexcept = 0;
  // Waits until one of three things is true: bytes of another rank have arrived; send() may accept more bytes, after a send() that did not
  // accept all of its bytes; `timeout` has passed. May return earlier.
  virtual void wait(std::chrono::milliseconds timeout) noexcept = 0;
  // Ends sending to rank `to`. Rank `to` first receives all bytes that were sent before; then its receive() returns an error. May be called
  // several times for one rank. The library calls close() when the engine is destroyed or could not be loaded, and when a rank stops
  // serving.
  virtual void close(std::uint32_t to) noexcept = 0;
};

}  // namespace tessera
