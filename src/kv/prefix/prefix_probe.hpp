// Finds out, for plans, how much of a new sequence the prefix index already has. The probe takes no pages.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tessera/extend/kv/kv_layout.hpp>
#include <tessera/extend/kv/kv_pools.hpp>

#include "kv/prefix/prefix_index.hpp"

namespace tessera::detail {

struct KnownPrefix {
  std::uint64_t tokens = 0;        // tokens at the sequence's beginning whose pages the index has
  std::uint64_t bytes_in_use = 0;  // bytes of these pages that sequences hold now: taking them needs no additional memory
};

class PrefixProbe {
 public:
  // Makes a probe for sequences of one layout and identity (KvCacheOptions::prefix_identity). May throw bad_alloc.
  PrefixProbe(const KvPools& pools, const KvLayout& layout, std::string identity);

  // Returns what the index has for `inputs`. bytes_in_use leaves out the first `from` pages. Thread-safe; may throw bad_alloc.
  [[nodiscard]] KnownPrefix operator()(const KvInputs& inputs, std::uint64_t from = 0) const;
  [[nodiscard]] std::uint64_t page_tokens() const noexcept { return pooled_->layout.page_tokens; }
  [[nodiscard]] const std::string& identity() const noexcept { return identity_; }
  [[nodiscard]] const KvLayout& layout() const noexcept { return pooled_->layout; }

 private:
  std::shared_ptr<KvPools::State> pools_;
  const PooledLayout* pooled_;
  std::string identity_;
  std::vector<std::uint64_t> windows_;  // [group]
};

}  // namespace tessera::detail
