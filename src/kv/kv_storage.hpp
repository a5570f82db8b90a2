// KvStorage holds the pages of one KvCache. The interface has one implementation for contiguous caches and one for paged caches, and hides
// their differences. KvStorage counts in pages: its arguments are page indices and page counts, where KvCache's arguments are positions and
// token counts. Exceptions: create_empty(), reserve_states(), commit_states() and install_states() count in tokens.
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
#include "kv/step_pages.hpp"

namespace tessera::detail {

// Memory for one state of each recurrent layer. When a step is committed, each slot whose state is kept becomes a page of
// the recurrent layers' group.
struct StateSlot {
  std::byte* address = nullptr;  // nullptr: no slot
  PageId id = kNoPage;           // the slot's number among the pages of its group
};

// Describes a step's rows, so that the storage can decide after which of these rows it keeps the state.
struct StateRows {
  std::uint64_t length = 0;      // position of the step's first row
  std::uint64_t reserved = 0;    // position after the step's last row
  std::uint64_t exact_from = 0;  // position of the first draft; equal to `reserved` if there are no drafts
  std::uint64_t checkpoints = 0; // how many of the newest full pages keep a checkpoint (the state after the page's last token)
  bool offers = false;           // true: states are also kept at some further pages, to be offered to other sequences
};

class KvStorage {
 public:
  virtual ~KvStorage() = default;
  KvStorage(const KvStorage&) = delete;
  KvStorage& operator=(const KvStorage&) = delete;

  [[nodiscard]] virtual KvKind kind() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t bytes() const noexcept = 0;
  // Makes the pages [first, last) of every group writable. A page that does not exist yet is taken. A page that other sequences share is
  // replaced by a copy. Exceptions: pages that a group has given back are not taken again, and the recurrent layers' group gets its pages
  // from reserve_states(). Precondition: all pages before `first` exist. After an error nothing has changed.
  virtual Status make_writable(std::uint64_t first, std::uint64_t last) = 0;
  // Gives back the pages with the index `n` and above, of every group.
  virtual void shrink(std::uint64_t n) noexcept = 0;
  // Gives back the group's first `n` pages. The entries of these pages in the table become nullptr.
  virtual void drop_front(std::size_t group, std::uint64_t n) noexcept = 0;
  // Replaces pages that drop_front() gave back by new pages: in each group, all missing pages of [first[group], last). The
  // content of the new pages is undefined. Precondition: `last` is at most size(). After an error nothing has changed.
  virtual Status take_again(std::span<const std::uint64_t> first, std::uint64_t last) = 0;
  // Adds front[group] empty entries (nullptr) to the page table of each group. They stand for pages that were given back before the cache
  // was saved or copied: when a new cache gets the contents, the indices of the later pages must stay the same. Precondition: there are no
  // pages. If it throws bad_alloc, nothing has changed.
  virtual void skip_front(std::span<const std::uint64_t> front) = 0;
  // Returns a storage that shares all pages of this one. Error: invalid_state, this kind of storage cannot share pages.
  virtual Result<std::unique_ptr<KvStorage>> fork() const = 0;
  // Returns a storage of the same kind and layout, without pages.
  virtual Result<std::unique_ptr<KvStorage>> create_empty(std::uint64_t capacity) const = 0;

  // The next functions are for the states of recurrent layers (state_pages.cpp). If the model has no recurrent layers, they do nothing. A
  // step writes its states to slots. When the step is committed, the slots whose states are kept become pages, and the rest is given back.

  // Takes slots for the states of the step's rows. Precondition: make_writable() was called for the rows. After an error nothing has
  // changed.
  Status reserve_states(const StateRows& rows);
  // Ends a step, of which the tokens before position `n` are kept. Slots whose states are kept become pages; all other slots of the step
  // are given back. Exception: if `beyond` is Reserved::keep, the slots of drafts from position `n` on are kept. Returns the sequence's new
  // length: `n`, or the largest smaller length whose state was kept (KvCache::commit()).
  std::uint64_t commit_states(std::uint64_t n, Reserved beyond) noexcept;
  // Takes a page of the recurrent layers' group for each number t in `tokens`. The caller then writes the state after the first t tokens to
  // this page. After an error nothing has changed.
  Status install_states(std::span<const std::uint64_t> tokens);
  // Gives back the pages [first, last) of the recurrent layers' group, and with them the states that they hold.
  void drop_states(std::uint64_t first, std::uint64_t last) noexcept;
  // Returns whether the state after this page's last token is kept. If the storage is suspended, the state may be in the file.
  [[nodiscard]] virtual bool has_state(std::uint64_t page) const noexcept {
    const std::vector<std::byte*>& pages = pages_[state_group_];
    return page < pages.size() && pages[page] != nullptr;
  }
  [[nodiscard]] const KvStateTargets* targets() const noexcept { return targets_ ? &*targets_ : nullptr; }

  // The next three functions are for the prefix index. A storage that does not share pages inherits them, and they do nothing.

  // Looks up the sequence's next inputs (PrefixQuestion) in the prefix index, and appends the pages that the index has for them to every
  // group. Returns how many pages each group got; 0 if none was found. In a group with a window, the first of these pages may be missing
  // (nullptr), because the window has passed them.
  virtual std::uint64_t adopt(const PrefixQuestion&) noexcept { return 0; }
  // publish(identity, i, page): offers page `i` of every group to the prefix index. `identity` names everything that decides the bits of
  // keys and values beside the inputs: model, numerics, KV types, salt. `page` has the inputs (tokens and embeddings) of page i.
  // Precondition: the pages before `i` were offered. Returns false if the page was not offered; then later pages cannot be offered either.
  virtual bool publish(std::string_view, std::uint64_t, const KvInputs&) noexcept { return false; }
  // limit_published(n): from now on only the sequence's first `n` pages count as offered, because later ones were truncated.
  virtual void limit_published(std::uint64_t) noexcept {}

  // See the functions of KvCache with these names. A suspended storage has no pages in memory.
  virtual Status suspend();
  virtual Status prefetch() { return {}; }
  virtual Status resume() { return {}; }
  [[nodiscard]] virtual bool suspended() const noexcept { return false; }

  // Adds the sequence to the description `to`: the numbers of its pages, and of the slots that are reserved for the present step. `pools`:
  // the engine's pools, which number layouts and contiguous caches. May throw bad_alloc; then `to` is incomplete.
  void describe(KvPools::State& pools, StepPages& to);

  // Returns the table of page addresses: [group][page].
  [[nodiscard]] std::byte* const* const* tables() const noexcept { return tables_.data(); }
  // Returns how many entries the page table of a group has, including the entries of pages that were given back. The number is the same for
  // all groups.
  [[nodiscard]] std::uint64_t size() const noexcept { return pages_.front().size(); }
  // Returns how many pages at its beginning the group has given back.
  [[nodiscard]] std::uint64_t front(std::size_t group) const noexcept {
    std::uint64_t n = 0;
    while (n < pages_[group].size() && pages_[group][n] == nullptr) ++n;
    return n;
  }
  [[nodiscard]] const KvLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] Memory& memory() const noexcept { return memory_; }
  [[nodiscard]] std::size_t groups() const noexcept { return pages_.size(); }

 protected:
  // The layout object is shared with the forks of this storage. So a pointer to a cache's layout stays valid if the cache is replaced by
  // its fork.
  KvStorage(std::shared_ptr<const KvLayout> layout, Memory& memory)
      : shared_layout_(std::move(layout)),
        layout_(*shared_layout_),
        memory_(memory),
        state_group_(layout_.state_group()),
        pages_(layout_.groups.size()),
        tables_(layout_.groups.size()) {}

  // The number of a cache's layout, and the number of the cache (SequencePages).
  struct Numbers {
    std::uint32_t layout = 0;
    std::uint32_t cache = SequencePages::kPaged;
  };
  virtual Numbers numbers(KvPools::State& pools) = 0;
  // Appends the numbers of a group's pages  [size()].
  virtual void append_ids(std::size_t group, std::vector<PageId>& to) const = 0;

  // Takes memory for all of `slots`. After an error it has taken none.
  virtual Status take_slots(std::span<StateSlot> slots) = 0;
  virtual void give_back_slots(std::span<const StateSlot> slots) noexcept = 0;
  // Returns true if no other sequence shares the slot.
  [[nodiscard]] virtual bool is_own(const StateSlot& slot) const noexcept = 0;
  // Returns the slot of this page of the recurrent layers' group. If the page was given back, the slot has no address.
  [[nodiscard]] virtual StateSlot state_page(std::uint64_t page) const noexcept = 0;
  virtual void set_state_page(std::uint64_t page, const StateSlot& slot) noexcept = 0;

  // Gives back all slots that have not become pages.
  void drop_slots() noexcept;
  void drop_targets() noexcept;
  [[nodiscard]] std::uint64_t slot_bytes() const noexcept;

  // Reserves memory for `n` entries in the page table of each group. The memory at least doubles, so that a sequence that grows page by
  // page seldom moves its tables.
  void reserve_pages(std::uint64_t n) {
    for (std::size_t group = 0; group < pages_.size(); ++group) {
      std::vector<std::byte*>& pages = pages_[group];
      if (n > pages.capacity()) pages.reserve(std::max<std::uint64_t>(n, 2 * pages.capacity()));
      tables_[group] = pages.data();  // set at once, because reserving the next group's table may throw
    }
  }
  // Updates tables_ after lists of pages_ were replaced.
  void update_tables() noexcept {
    for (std::size_t group = 0; group < pages_.size(); ++group) tables_[group] = pages_[group].data();
  }

  std::shared_ptr<const KvLayout> shared_layout_;
  const KvLayout& layout_;
  Memory& memory_;                             // the pages lie in this memory
  std::size_t state_group_;                    // index of the recurrent layers' group; equal to groups() if there is no such group
  std::vector<std::vector<std::byte*>> pages_;  // [group][page]: address

 private:
  void give_back(StateSlot& slot) noexcept;

  // The addresses to which the step writes its states. Has a value from reserve_states() to commit_states(); after commit_states() too, if
  // it kept the slots of drafts (Reserved::keep).
  std::optional<KvStateTargets> targets_;
  std::uint64_t reserved_ = 0;
  std::vector<StateSlot> page_slots_, draft_slots_;  // the slots to which targets_->pages and targets_->drafts point
  StateSlot spare_;  // a slot that is no longer needed, kept for the next step's live state
  std::vector<std::byte* const*> tables_;
};

[[nodiscard]] Result<std::unique_ptr<KvStorage>> make_contiguous_storage(KvLayout layout, std::uint64_t capacity,
                                                                         Memory& memory);
[[nodiscard]] Result<std::unique_ptr<KvStorage>> make_paged_storage(KvLayout layout, const KvPools& pools);

}  // namespace tessera::detail
