// The source of a cache's pages: everything that contiguous and paged caches do differently. A storage counts in pages, KvCache in tokens.
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
  std::byte* address = nullptr;  // nullptr: no slot
  std::uint32_t id = ~std::uint32_t{0};  // the storage's own name of the slot
};

// The rows that a step is going to compute, and the states to keep of them.
struct StateRows {
  std::uint64_t length = 0;      // position of the first row
  std::uint64_t reserved = 0;    // position behind the last row
  std::uint64_t exact_from = 0;  // position of the first draft; `reserved` without drafts
  std::uint64_t checkpoints = 0; // number of newest full pages whose states are kept
  bool offers = false;           // states at pages that other sequences may find are kept too
};

class KvStorage {
 public:
  virtual ~KvStorage() = default;
  KvStorage(const KvStorage&) = delete;
  KvStorage& operator=(const KvStorage&) = delete;

  [[nodiscard]] virtual KvKind kind() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t bytes() const noexcept = 0;
  // Makes pages [first, last) of every group exist and be writable. Pages that a group has given back stay away. The recurrent layers'
  // group gets no pages here, but by reserve_states(). Precondition: pages below `first` exist. After an error nothing has changed.
  virtual Status make_writable(std::uint64_t first, std::uint64_t last) = 0;
  // Gives back the pages from `n` on, in every group.
  virtual void shrink(std::uint64_t n) noexcept = 0;
  // Gives back the group's pages below `n`, whose entries become nullptr.
  virtual void drop_front(std::size_t group, std::uint64_t n) noexcept = 0;
  // Takes pages again for those of [first[group], last) that each group has given back. Their content is undefined. Precondition: `last` is
  // within size(). After an error nothing has changed.
  virtual Status take_again(std::span<const std::uint64_t> first, std::uint64_t last) = 0;
  // Makes the storage as if it had had front[group] pages and dropped them. Precondition: there are no pages. May throw bad_alloc; then
  // nothing has changed.
  virtual void skip_front(std::span<const std::uint64_t> front) = 0;
  // Returns a storage that shares all pages. Error: invalid_state, this kind cannot.
  virtual Result<std::unique_ptr<KvStorage>> fork() const = 0;
  // Returns a storage of the same kind and layout, without pages.
  virtual Result<std::unique_ptr<KvStorage>> create_empty(std::uint64_t capacity) const = 0;

  // States of recurrent layers (state_pages.cpp); without such layers these functions do nothing. A step writes states to slots of its own,
  // which become pages when the step is committed.
  // Takes slots for the rows' states. Precondition: make_writable() was called for the rows. After an error nothing has changed.
  Status reserve_states(const StateRows& rows);
  // Makes pages of the states of the first `n` tokens, and returns how many tokens the sequence really has (KvCache::commit()). Other
  // slots go back. Exception: with Reserved::keep, slots of drafts beyond `n` stay.
  std::uint64_t commit_states(std::uint64_t n, Reserved beyond) noexcept;
  // Takes a page for each number of `tokens`, for the state behind that many tokens, which the caller writes. After an error nothing has
  // changed.
  Status install_states(std::span<const std::uint64_t> tokens);
  // Gives back the states of pages [first, last).
  void drop_states(std::uint64_t first, std::uint64_t last) noexcept;
  // Returns whether the state behind this page's last token is held, also while suspended.
  [[nodiscard]] virtual bool has_state(std::uint64_t page) const noexcept {
    const std::vector<std::byte*>& pages = pages_[state_group_];
    return page < pages.size() && pages[page] != nullptr;
  }
  [[nodiscard]] const KvStateTargets* targets() const noexcept { return targets_ ? &*targets_ : nullptr; }

  // Prefix sharing. A storage without it keeps these functions, which do nothing.
  // Appends pages that the prefix index has, and returns their number, the same for each group. A group may lack the first pages, which its
  // window has passed.
  virtual std::uint64_t adopt(const PrefixQuestion&) noexcept { return 0; }
  // Offers page `i` of every group to the prefix index, with its inputs. The pages before it must have been offered. Returns whether the
  // page after it can be offered too.
  virtual bool publish(std::string_view, std::uint64_t, const KvInputs&) noexcept { return false; }
  // Makes only the first `n` pages count as offered from now on.
  virtual void limit_published(std::uint64_t) noexcept {}

  // Suspension: see KvCache. A suspended storage has no pages.
  virtual Status suspend();
  virtual Status prefetch() { return {}; }
  virtual Status resume() { return {}; }
  [[nodiscard]] virtual bool suspended() const noexcept { return false; }

  // Returns the addresses of all pages: [group][page].
  [[nodiscard]] std::byte* const* const* tables() const noexcept { return tables_.data(); }
  // Returns the number of pages of a group, the same for all groups, pages that were given back included.
  [[nodiscard]] std::uint64_t size() const noexcept { return pages_.front().size(); }
  // Returns how many of its first pages the group has given back.
  [[nodiscard]] std::uint64_t front(std::size_t group) const noexcept {
    std::uint64_t n = 0;
    while (n < pages_[group].size() && pages_[group][n] == nullptr) ++n;
    return n;
  }
  [[nodiscard]] const KvLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] Memory& memory() const noexcept { return memory_; }
  [[nodiscard]] std::size_t groups() const noexcept { return pages_.size(); }

 protected:
  // A fork refers to the same layout object, so a pointer to a cache's layout stays valid if the cache is replaced by its fork.
  KvStorage(std::shared_ptr<const KvLayout> layout, Memory& memory)
      : shared_layout_(std::move(layout)),
        layout_(*shared_layout_),
        memory_(memory),
        state_group_(layout_.state_group()),
        pages_(layout_.groups.size()),
        tables_(layout_.groups.size()) {}

  // Takes all slots, or none.
  virtual Status take_slots(std::span<StateSlot> slots) = 0;
  virtual void give_back_slots(std::span<const StateSlot> slots) noexcept = 0;
  // Returns whether only this sequence has the slot.
  [[nodiscard]] virtual bool is_own(const StateSlot& slot) const noexcept = 0;
  // Returns a page of the recurrent layers' group; an empty slot: it was given back.
  [[nodiscard]] virtual StateSlot state_page(std::uint64_t page) const noexcept = 0;
  virtual void set_state_page(std::uint64_t page, const StateSlot& slot) noexcept = 0;

  // Gives back all slots that are not pages.
  void drop_slots() noexcept;
  void drop_targets() noexcept;
  [[nodiscard]] std::uint64_t slot_bytes() const noexcept;

  // Makes room for `n` pages in the table of each group, by doubling, because a sequence grows page by page.
  void reserve_pages(std::uint64_t n) {
    for (std::size_t group = 0; group < pages_.size(); ++group) {
      std::vector<std::byte*>& pages = pages_[group];
      if (n > pages.capacity()) pages.reserve(std::max<std::uint64_t>(n, 2 * pages.capacity()));
      tables_[group] = pages.data();  // set now: reserving the next group's table may throw
    }
  }
  // Call it after the lists of pages_ have been replaced.
  void update_tables() noexcept {
    for (std::size_t group = 0; group < pages_.size(); ++group) tables_[group] = pages_[group].data();
  }

  std::shared_ptr<const KvLayout> shared_layout_;
  const KvLayout& layout_;
  Memory& memory_;                             // has the pages
  std::size_t state_group_;                    // index of the recurrent layers' group
  std::vector<std::vector<std::byte*>> pages_;  // [group][page]

 private:
  void give_back(StateSlot& slot) noexcept;

  // Set while a step is reserved.
  std::optional<KvStateTargets> targets_;
  std::uint64_t reserved_ = 0;
  std::vector<StateSlot> page_slots_, draft_slots_;  // slots of targets_->pages and ->drafts
  StateSlot spare_;  // the slot of the last live state, for the next step
  std::vector<std::byte* const*> tables_;
};

[[nodiscard]] Result<std::unique_ptr<KvStorage>> make_contiguous_storage(KvLayout layout, std::uint64_t capacity,
                                                                         Memory& memory);
[[nodiscard]] Result<std::unique_ptr<KvStorage>> make_paged_storage(KvLayout layout, const KvPools& pools);

}  // namespace tessera::detail
