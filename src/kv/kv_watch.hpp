// The events of a prefix index, kept until somebody takes them.
#pragma once

#include <memory>
#include <vector>

#include <tessera/extend/kv/kv_pools.hpp>
#include <tessera/kv/kv_event.hpp>

#include "kv/prefix/prefix_index.hpp"

namespace tessera::detail {

class KvWatch final : private PrefixIndex::Listener {
 public:
  // May throw bad_alloc.
  explicit KvWatch(const KvPools& pools);
  KvWatch(const KvWatch&) = delete;
  KvWatch& operator=(const KvWatch&) = delete;
  ~KvWatch() override;

  // What has happened since the last time, in order. Thread-safe. When it throws bad_alloc, the next call tells all.
  [[nodiscard]] std::vector<KvEvent> take();
  [[nodiscard]] bool has_events() const noexcept;  // noted, and not taken yet

 private:
  void stored(const PrefixNode& node) noexcept override;
  void removed(const PrefixNode& node) noexcept override;
  template <class Make>
  void note(Make&& make) noexcept;

  std::shared_ptr<KvPools::State> pools_;
  std::vector<KvEvent> events_;
  bool is_behind_ = true;  // events were lost, or never noted: the next call begins with the whole content
};

}  // namespace tessera::detail
