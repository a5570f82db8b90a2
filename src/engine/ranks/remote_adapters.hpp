// Gives an engine's adapters to the ranks in other processes.
#pragma once

#include <map>
#include <mutex>
#include <stop_token>

#include "adapters/adapter_file.hpp"
#include "engine/run/fair_queue.hpp"
#include "ranks/processes/rank_adapters.hpp"
#include "ranks/processes/remote_ranks.hpp"

namespace tessera::detail {

// Thread-safe.
class RemoteAdapters {
 public:
  // `queue`: the engine's turns.
  RemoteAdapters(RemoteRanks& ranks, FairQueue& queue) noexcept : ranks_(ranks), queue_(queue) {}

  // Gives the adapter to all ranks, unless they have one of the same content. Errors: cancelled; device_error, a rank is gone or refuses.
  Status add(const AdapterFile& adapter, const std::stop_token& stop);
  // Ends the use of an adapter that was added.
  void remove(const Hash128& content) noexcept;

 private:
  RemoteRanks& ranks_;
  FairQueue& queue_;
  std::mutex adding_;  // held while an adapter is given: the ranks must not get two of one content at once
  std::mutex mutex_;   // of uses_; not held while anything is sent, because a request's end may have to remove an adapter
  std::map<Hash128, std::size_t, ByContent> uses_;
};

}  // namespace tessera::detail
