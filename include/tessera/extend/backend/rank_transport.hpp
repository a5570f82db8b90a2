// Bytes between the ranks of one model, carried by a program of yours: over MPI, a cluster's own network, or an encrypted connection.
// examples/mpi is one over MPI.
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

// One rank's connections to all others. Between two ranks, bytes arrive in the order in which they were sent, each once; they need not arrive
// in the pieces in which they were sent. The library checks them by a hash. All functions are called by one thread at a time. send() and
// receive() never wait: two ranks may send to each other at once. An error means that the other rank is gone (io: it has closed); no call
// for it follows but close(). A transport must hold a few hundred bytes that nobody reads yet: ranks answer while the engine still loads.
class RankTransport {
 public:
  virtual ~RankTransport() = default;
  [[nodiscard]] virtual std::uint32_t rank() const noexcept = 0;   // this process; 0 is the engine's
  [[nodiscard]] virtual std::uint32_t ranks() const noexcept = 0;  // number of processes, at least 2

  // Takes bytes for another rank, and returns how many it has taken: 0 if it can take none now. The caller may change the bytes afterwards.
  virtual Result<std::size_t> send(std::uint32_t to, std::span<const std::byte> bytes) noexcept = 0;
  // Writes bytes of another rank that have arrived, and returns how many: 0 if there are none now.
  virtual Result<std::size_t> receive(std::uint32_t from, std::span<std::byte> bytes) noexcept = 0;
  // Returns when bytes of another rank have arrived, or when send(), which took less than it was given, may take more; at the latest after
  // `timeout`. It may return too early.
  virtual void wait(std::chrono::milliseconds timeout) noexcept = 0;
  // Says that this rank sends nothing more to another one, which learns it by an error of its receive(), behind all bytes sent before. It may
  // be called again. The library calls it when the engine is gone, or was not loaded, and when a rank no longer serves.
  virtual void close(std::uint32_t to) noexcept = 0;
};

}  // namespace tessera
