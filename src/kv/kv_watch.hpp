// Collects the events of a prefix index (pages stored, pages removed) until a caller takes them.
#pragma once

#include <memory>
#include <vector>

#include <tessera/extend/kv/kv_event.hpp>
#include <tessera/extend/kv/kv_pools.hpp>

#include "kv/prefix/prefix_index.hpp"

namespace tessera::detail {

class KvWatch final : private PrefixIndex::Listener {
 public:
  // Begins to watch the prefix index of the pools. May throw bad_alloc.
  explicit KvWatch(const KvPools& pools);
  KvWatch(const KvWatch&) = delete;
  KvWatch& operator=(const KvWatch&) = delete;
  ~KvWatch() override;

  // Returns the events since the last call, in order. Exception: at the first call, and if events were lost (there were too many, or no
  // memory for them), returns the event `cleared`, then one event for each node that the index has now. Thread-safe. May throw bad_alloc:
  // then the next call returns the whole content.
  [[nodiscard]] std::vector<KvEvent> take();
  // Returns whether events are stored that take() has not returned yet. Returns false also if events were lost, although the next take()
  // then returns the whole content.
  [[nodiscard]] bool has_events() const noexcept;

 private:
  void stored(const PrefixNode& node) noexcept override;
  void removed(const PrefixNode& node) noexcept override;
  template <class Make>
  void note(Make&& make) noexcept;

  std::shared_ptr<KvPools::State> pools_;
  std::vector<KvEvent> events_;
  bool is_behind_ = true;  // true: events were lost or not collected yet, so the next take() returns the whole content
};

}  // namespace tessera::detail
