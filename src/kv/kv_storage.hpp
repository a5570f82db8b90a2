// Where a cache's pages come from: the part that contiguous and paged caches do differently. Sizes are in pages;
// KvCache knows tokens.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <tessera/kv/kv_cache.hpp>

#include "kv/prefix/prefix_search.hpp"

namespace tessera::detail {

// Memory for the states of all recurrent layers: one page of their group.
struct StateSlot {
  std::byte* address = nullptr;  // nullptr: none
  std::uint32_t id = ~std::uint32_t{0};  // the storage's own name for it
};

// The rows that a step is going to compute, for which states are to be kept.
struct StateRows {
  std::uint64_t length = 0;      // the first one's position
  std::uint64_t reserved = 0;    // the last one's, and 1
  std::uint64_t exact_from = 0;  // the first draft's; `reserved` if there are none
  std::uint64_t checkpoints = 0; // behind so many full pages, the newest
  bool offers = false;           // also behind pages that others may find
};

class KvStorage {
 public:
  virtual ~KvStorage() = default;
  KvStorage(const KvStorage&) = delete;
  KvStorage& operator=(const KvStorage&) = delete;

  [[nodiscard]] virtual KvKind kind() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t bytes() const noexcept = 0;
  // Makes pages [first, last) of every group exist and be writable; those below `first` exist. What a group has given
  // back stays so. Of recurrent layers there is none: their pages come from reserve_states(). Changes nothing on error.
  virtual Status make_writable(std::uint64_t first, std::uint64_t last) = 0;
  // Gives back the pages from `n` on, of every group.
  virtual void shrink(std::uint64_t n) noexcept = 0;
  // Gives back the group's pages below `n`: they are nullptr then.
  virtual void drop_front(std::size_t group, std::uint64_t n) noexcept = 0;
  // Pages [first[group], last) of each group exist again, with anything in them, where they have been given back. They are
  // within size(). Changes nothing on error.
  virtual Status take_again(std::span<const std::uint64_t> first, std::uint64_t last) = 0;
  // Of a storage without pages: as if it had had front[group] and dropped them. Changes nothing when it throws.
  virtual void skip_front(std::span<const std::uint64_t> front) = 0;
  // The same pages once more. Error: this kind cannot.
  virtual Result<std::unique_ptr<KvStorage>> fork() const = 0;
  // Another one of this kind, without pages.
  virtual Result<std::unique_ptr<KvStorage>> create_empty(std::uint64_t capacity) const = 0;

  // States of recurrent layers (state_pages.cpp); where there are none, nothing happens. A step leaves them in slots of
  // their own, which become pages when it is committed.
  // Slots for such rows; make_writable() has been called for them. Changes nothing on error.
  Status reserve_states(const StateRows& rows);
  // The sequence has `n` tokens: their state becomes a page, and those kept before it. How many tokens it really is: see
  // KvCache::commit(). What is not needed goes back; kept are drafts beyond `n`, if they are to be.
  std::uint64_t commit_states(std::uint64_t n, Reserved beyond) noexcept;
  // Slots for pages that the caller writes: those that end behind so many tokens each. Changes nothing on error.
  Status install_states(std::span<const std::uint64_t> tokens);
  // Gives back those of the pages [first, last) that are there.
  void drop_states(std::uint64_t first, std::uint64_t last) noexcept;
  // Whether the state behind this page's last token is held; also while suspended.
  [[nodiscard]] virtual bool has_state(std::uint64_t page) const noexcept {
    const std::vector<std::byte*>& pages = pages_[state_group_];
    return page < pages.size() && pages[page] != nullptr;
  }
  [[nodiscard]] const KvStateTargets* targets() const noexcept { return targets_ ? &*targets_ : nullptr; }

  // Prefix sharing; kinds that have none do nothing. Appends pages that the index has; how many of each group. Of these
  // a group may lack the first ones, which its window has passed.
  virtual std::uint64_t adopt(const PrefixQuestion&) noexcept { return 0; }
  // Offers page `i` of every group, the one after those that have been offered; whether the next can be offered too.
  virtual bool publish(std::string_view, std::uint64_t, std::span<const Token>) noexcept { return false; }
  // Only the first `n` pages count as offered from now on.
  virtual void limit_published(std::uint64_t) noexcept {}

  // Tiers; see KvCache. There are no pages while suspended.
  virtual Status suspend();
  virtual Status prefetch() { return {}; }
  virtual Status resume() { return {}; }
  [[nodiscard]] virtual bool suspended() const noexcept { return false; }

  // [group][page]
  [[nodiscard]] std::byte* const* const* tables() const noexcept { return tables_.data(); }
  // Pages of every group, those given back too.
  [[nodiscard]] std::uint64_t size() const noexcept { return pages_.front().size(); }
  // Of these, the ones that the group has given back.
  [[nodiscard]] std::uint64_t front(std::size_t group) const noexcept {
    std::uint64_t n = 0;
    while (n < pages_[group].size() && pages_[group][n] == nullptr) ++n;
    return n;
  }
  [[nodiscard]] const KvLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] Memory& memory() const noexcept { return memory_; }
  [[nodiscard]] std::size_t groups() const noexcept { return pages_.size(); }

 protected:
  // A fork has the same layout, not a copy: whoever holds a cache's may exchange the cache for a fork of it.
  KvStorage(std::shared_ptr<const KvLayout> layout, Memory& memory)
      : shared_layout_(std::move(layout)),
        layout_(*shared_layout_),
        memory_(memory),
        state_group_(layout_.state_group()),
        pages_(layout_.groups.size()),
        tables_(layout_.groups.size()) {}

  // Where slots come from: all that are asked for, or none.
  virtual Status take_slots(std::span<StateSlot> slots) = 0;
  virtual void give_back_slots(std::span<const StateSlot> slots) noexcept = 0;
  // Nobody but this sequence has it.
  [[nodiscard]] virtual bool is_own(const StateSlot& slot) const noexcept = 0;
  // A page of the recurrent layers' group; an empty slot: given back.
  [[nodiscard]] virtual StateSlot state_page(std::uint64_t page) const noexcept = 0;
  virtual void set_state_page(std::uint64_t page, const StateSlot& slot) noexcept = 0;

  // Gives all slots back that are not pages.
  void drop_slots() noexcept;
  void drop_targets() noexcept;
  [[nodiscard]] std::uint64_t slot_bytes() const noexcept;

  // Room for `n` pages in the table of each group. By doubling: a sequence grows page by page.
  void reserve_pages(std::uint64_t n) {
    for (std::size_t group = 0; group < pages_.size(); ++group) {
      std::vector<std::byte*>& pages = pages_[group];
      if (n > pages.capacity()) pages.reserve(std::max<std::uint64_t>(n, 2 * pages.capacity()));
      tables_[group] = pages.data();  // at once: the next group's table may find no memory
    }
  }
  // After the lists of pages_ have been replaced.
  void update_tables() noexcept {
    for (std::size_t group = 0; group < pages_.size(); ++group) tables_[group] = pages_[group].data();
  }

  std::shared_ptr<const KvLayout> shared_layout_;
  const KvLayout& layout_;
  Memory& memory_;                             // where the pages are
  std::size_t state_group_;                    // of the layout
  std::vector<std::vector<std::byte*>> pages_;  // [group][page]

 private:
  void give_back(StateSlot& slot) noexcept;

  // While a step is reserved.
  std::optional<KvStateTargets> targets_;
  std::uint64_t reserved_ = 0;
  std::vector<StateSlot> page_slots_, draft_slots_;  // as targets_->pages, ->drafts
  StateSlot spare_;  // the last live state's, for the next step
  std::vector<std::byte* const*> tables_;
};

[[nodiscard]] Result<std::unique_ptr<KvStorage>> make_contiguous_storage(KvLayout layout, std::uint64_t capacity,
                                                                         Memory& memory);
[[nodiscard]] Result<std::unique_ptr<KvStorage>> make_paged_storage(KvLayout layout, const KvPools& pools);

}  // namespace tessera::detail
