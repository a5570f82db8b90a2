// The storage of paged caches: pages from pools, which sequences share, and which are copied before they are written to.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "kv/kv_storage.hpp"
#include "kv/pages/pools_state.hpp"
#include "kv/pages/suspended_pages.hpp"

namespace tessera::detail {

class PagedStorage final : public KvStorage {
 public:
  PagedStorage(std::shared_ptr<KvPools::State> pools, const PooledLayout& pooled)
      : KvStorage(std::shared_ptr<const KvLayout>(pools, &pooled.layout), *pools->options.memory),
        pools_(std::move(pools)),
        pooled_(pooled),
        ids_(pooled.pools.size()),
        replaced_(pooled.pools.size(), kNoPage) {}
  ~PagedStorage() override;

  [[nodiscard]] KvKind kind() const noexcept override { return KvKind::paged; }
  [[nodiscard]] std::uint64_t bytes() const noexcept override;
  Status make_writable(std::uint64_t first, std::uint64_t last) override;
  void shrink(std::uint64_t n) noexcept override;
  void drop_front(std::size_t group, std::uint64_t n) noexcept override;
  Status take_again(std::span<const std::uint64_t> first, std::uint64_t last) override;
  void skip_front(std::span<const std::uint64_t> front) override;
  Result<std::unique_ptr<KvStorage>> fork() const override;
  Result<std::unique_ptr<KvStorage>> create_empty(std::uint64_t capacity) const override;

  // paged_prefixes.cpp
  std::uint64_t adopt(const PrefixQuestion& question) noexcept override;
  bool publish(std::string_view identity, std::uint64_t i, const KvInputs& page) noexcept override;
  void limit_published(std::uint64_t n) noexcept override;

  Status suspend() override;
  Status prefetch() override { return suspended_ != nullptr ? suspended_->prefetch() : Status(); }
  Status resume() override;
  [[nodiscard]] bool suspended() const noexcept override { return suspended_ != nullptr; }
  [[nodiscard]] bool has_state(std::uint64_t page) const noexcept override {
    return suspended_ != nullptr ? suspended_->has(state_group_, page) : KvStorage::has_state(page);
  }

 protected:
  Numbers numbers(KvPools::State&) override { return {.layout = pooled_.number}; }
  void append_ids(std::size_t group, std::vector<PageId>& to) const override {
    to.insert(to.end(), ids_[group].begin(), ids_[group].end());
  }

  // paged_states.cpp
  Status take_slots(std::span<StateSlot> slots) override;
  void give_back_slots(std::span<const StateSlot> slots) noexcept override;
  [[nodiscard]] bool is_own(const StateSlot& slot) const noexcept override;
  [[nodiscard]] StateSlot state_page(std::uint64_t page) const noexcept override;
  void set_state_page(std::uint64_t page, const StateSlot& slot) noexcept override;

 private:
  // A page of this sequence.
  struct Place {
    std::size_t group = 0;
    std::uint64_t page = 0;
  };
  using Found = FoundPages;

  [[nodiscard]] PagePool& pool(std::size_t group) const noexcept { return *pooled_.pools[group]; }
  [[nodiscard]] PageId id_at(const Place& at) const noexcept { return ids_[at.group][at.page]; }
  [[nodiscard]] bool all_private(std::uint64_t first, std::uint64_t last) const noexcept;
  // Makes pages writable without copies where possible. `shared`: pages of this sequence that other sequences or the index share. A page
  // that only the index shares is taken out of the index and removed from `shared`, so that the sequence may write to it. Acquires the
  // pages that are still needed (for copies of the other shared pages, and new pages), as `fresh`.
  Status take_from_index(std::vector<Place>& shared, std::vector<PoolPage>& fresh, std::unique_lock<std::mutex>& lock);
  // Returns the pages to acquire, with pools but without ids yet: first one for the copy of each page of `shared`, then the new pages with
  // indices below `last`.
  [[nodiscard]] std::vector<PoolPage> pages_for(const std::vector<Place>& shared, std::uint64_t last) const;
  void append(std::span<const PoolPage> fresh, std::uint64_t last) noexcept;  // precondition: reserve_tables(last)
  void reserve_tables(std::uint64_t n);
  void set(const Place& at, PageId id) noexcept;

  // Returns the node of the last page that was offered or found; nullptr: none, or the index has lost the node.
  [[nodiscard]] PrefixNode* published_tail() const noexcept;
  [[nodiscard]] Found look_up(const PrefixQuestion& question, Stored stored) const;
  // Takes the found pages, which are all in memory. Returns their number.
  std::uint64_t take_present(const Found& found) noexcept;
  // Takes the found pages, some of which are read from the file. Returns their number; 0 if a page cannot be read.
  std::uint64_t take_stored(const Found& found, const PrefixQuestion& question, std::unique_lock<std::mutex>& lock);
  std::uint64_t adopt_published(const PrefixQuestion& question, std::unique_lock<std::mutex>& lock);
  void count_as_published(const Found& found) noexcept;

  std::shared_ptr<KvPools::State> pools_;
  const PooledLayout& pooled_;
  std::vector<PageTable> ids_;  // [group][page]
  PageTable replaced_;          // [group], working list of publish()
  // The index's node of the last page that was offered or found. Empty: no page was, or the index has lost the node.
  std::weak_ptr<PrefixNode> tail_;
  std::uint64_t published_ = 0;  // how many of the sequence's first pages were offered or found; tail_ is the node of the last of them
  std::unique_ptr<SuspendedPages> suspended_;  // set while suspended; then ids_ and pages_ are empty
};

}  // namespace tessera::detail
