// Sends an engine's adapters to the ranks in other processes.
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
  // `queue`: the engine's queue for the use of its ranks.
  RemoteAdapters(RemoteRanks& ranks, FairQueue& queue) noexcept : ranks_(ranks), queue_(queue) {}

  // Begins one use of the adapter: sends it to all ranks, unless they already have an adapter of the same content. Errors: cancelled;
  // device_error, a rank has disconnected or refuses.
  Status add(const AdapterFile& adapter, const std::stop_token& stop);
  // Ends one use of an adapter that add() has sent.
  void remove(const Hash128& content) noexcept;

 private:
  RemoteRanks& ranks_;
  FairQueue& queue_;
  std::mutex adding_;  // held while an adapter is sent, because two adapters of the same content must not be sent at once
  std::mutex mutex_;   // guards uses_. Not held while an adapter is sent, so that remove() does not wait for the sending
  std::map<Hash128, std::size_t, ByContent> uses_;
};

}  // namespace tessera::detail
