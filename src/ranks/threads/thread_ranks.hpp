// Ranks that are threads of one process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ranks/communicator.hpp"

namespace tessera::detail {

class ThreadRanks {
 public:
  explicit ThreadRanks(std::uint32_t ranks);
  ThreadRanks(const ThreadRanks&) = delete;
  ThreadRanks& operator=(const ThreadRanks&) = delete;

  ~ThreadRanks();

  [[nodiscard]] Communicator& of(std::uint32_t rank) noexcept;
  // Allows calls again after stop(). Precondition: no rank is in a call.
  void restart() noexcept;

 private:
  // Bytes of a *slot*: a buffer into which a rank copies the bytes that it gives to gather(), and from which the other ranks read them. If
  // any rank gives more bytes than this, that gather() uses no slots: each rank reads the other ranks' bytes where those ranks keep them.
  static constexpr std::size_t kSlotBytes = 32 * 1024;
  class End;

  // Waits until all ranks have called meet(). Returns false after stop().
  bool meet() noexcept;
  void stop() noexcept;

  std::vector<std::unique_ptr<End>> ends_;
  alignas(64) std::atomic<std::uint32_t> arrived_ = 0;
  alignas(64) std::atomic<std::uint32_t> meetings_ = 0;  // counts meetings; ranks wait for the next
  std::atomic<bool> stopped_ = false;
};

}  // namespace tessera::detail
