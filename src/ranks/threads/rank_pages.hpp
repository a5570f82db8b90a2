// The pages of a rank that is a thread of the engine's process: the engine's own pages, in which each rank reads and writes its own heads.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "kv/page_addresses.hpp"
#include "ranks/model_division.hpp"

namespace tessera::detail {

class RankPages final : public PageMemory {
 public:
  RankPages(KvPools pools, std::shared_ptr<const ModelDivision> division, std::uint32_t rank)
      : pages_(std::move(pools)), division_(std::move(division)), rank_(rank) {}

  Status copy(std::span<const PageCopy>) override { return {}; }  // nothing to do: the caches copy whole pages
  Status find(const StepPages& pages, PageAddresses& out) override {
    TESSERA_TRY_STATUS(pages_.find(pages, out));
    out.replace_layouts([&](const KvLayout& whole) { return &own(whole); });
    return {};
  }

 private:
  struct Known {
    KvLayout whole, own;
  };
  // The list stays short: an engine has one layout for each pair of KV types that its sessions ask for.
  const KvLayout& own(const KvLayout& whole) {
    for (const auto& known : known_) {
      if (known->whole == whole) return known->own;
    }
    return known_.emplace_back(std::make_unique<Known>(Known{whole, division_->layout_of(rank_, whole)}))->own;
  }

  CacheMemory pages_;
  std::shared_ptr<const ModelDivision> division_;
  std::uint32_t rank_;
  std::vector<std::unique_ptr<Known>> known_;
};

}  // namespace tessera::detail
