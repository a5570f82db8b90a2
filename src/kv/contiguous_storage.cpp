// The storage of contiguous caches. Each group reserves address space for the pages of a full sequence, and commits memory to pages as
// they are needed.
#include <algorithm>

#include "core/checked.hpp"
#include "core/error.hpp"
#include "kv/kv_storage.hpp"
#include "kv/pages/pools_state.hpp"

namespace tessera::detail {
namespace {

// The reserved address space of one group, as an array of pages. Memory is committed and decommitted in granules, the units of Memory.
class PageRange {
 public:
  PageRange() noexcept = default;
  PageRange(Memory& memory, std::uint64_t page_bytes, std::byte* base, std::uint64_t reserved) noexcept
      : memory_(&memory), page_bytes_(page_bytes), base_(base), reserved_(reserved) {}
  PageRange(PageRange&& other) noexcept { swap(other); }
  PageRange& operator=(PageRange&& other) noexcept {
    swap(other);
    return *this;
  }
  ~PageRange() {
    if (base_ == nullptr) return;
    decommit(dropped_, committed_);
    memory_->unreserve(base_, reserved_);
  }

  [[nodiscard]] std::byte* address(std::uint64_t page) const noexcept { return base_ + page * page_bytes_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return committed_ - dropped_; }

  // Returns how many more bytes must be committed so that the first `n` pages have memory.
  [[nodiscard]] std::uint64_t missing(std::uint64_t n) const noexcept {
    if (base_ == nullptr) return 0;
    const std::uint64_t need = granules(n);
    return need > committed_ ? need - committed_ : 0;
  }
  // Commits memory for the first `n` pages. Returns false if Memory has none.
  [[nodiscard]] bool commit(std::uint64_t n) noexcept {
    before_ = committed_;
    const std::uint64_t bytes = missing(n);
    if (bytes == 0) return true;
    if (!memory_->commit(base_, committed_, bytes)) return false;
    committed_ += bytes;
    return true;
  }
  // Undoes the last commit().
  void undo() noexcept {
    decommit(before_, committed_);
    committed_ = before_;
  }
  void shrink(std::uint64_t n) noexcept {
    if (base_ == nullptr) return;
    const std::uint64_t keep = std::max(granules(n), dropped_);
    decommit(keep, committed_);
    committed_ = std::min(committed_, keep);
    if (n == 0) committed_ = dropped_ = 0;
  }
  // Decommits the first `n` pages. A granule that also has a part of page `n` keeps its memory until that page is dropped too.
  void drop_front(std::uint64_t n) noexcept {
    if (base_ == nullptr) return;
    const std::uint64_t end = std::min(whole_granules(n), committed_);
    if (end <= dropped_) return;
    decommit(dropped_, end);
    dropped_ = end;
  }
  // Commits memory again for the dropped pages from index `n` on. Returns false if Memory has none.
  [[nodiscard]] bool take_again(std::uint64_t n) noexcept {
    const std::uint64_t begin = whole_granules(n);
    if (base_ == nullptr || begin >= dropped_) return true;
    if (!memory_->commit(base_, begin, dropped_ - begin)) return false;
    dropped_ = begin;
    return true;
  }
  void skip_front(std::uint64_t n) noexcept {
    if (base_ != nullptr) dropped_ = committed_ = whole_granules(n);
  }

 private:
  void swap(PageRange& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(page_bytes_, other.page_bytes_);
    std::swap(base_, other.base_);
    std::swap(reserved_, other.reserved_);
    std::swap(committed_, other.committed_);
    std::swap(dropped_, other.dropped_);
    std::swap(before_, other.before_);
  }
  // Returns the size of the first `n` pages, rounded up to granules.
  [[nodiscard]] std::uint64_t granules(std::uint64_t n) const noexcept {
    const std::uint64_t unit = memory_->granularity();
    return std::min((n * page_bytes_ + unit - 1) / unit * unit, reserved_);
  }
  // Returns the size of the first `n` pages, rounded down to granules.
  [[nodiscard]] std::uint64_t whole_granules(std::uint64_t n) const noexcept {
    return n * page_bytes_ / memory_->granularity() * memory_->granularity();
  }
  void decommit(std::uint64_t first, std::uint64_t last) noexcept {
    if (last > first) memory_->decommit(base_, first, last - first);
  }

  Memory* memory_ = nullptr;
  std::uint64_t page_bytes_ = 0;
  std::byte* base_ = nullptr;
  std::uint64_t reserved_ = 0;
  std::uint64_t committed_ = 0;  // bytes [dropped_, committed_) of the address space have memory
  std::uint64_t dropped_ = 0;
  std::uint64_t before_ = 0;     // committed_ before the last commit(), for undo()
};

class ContiguousStorage final : public KvStorage {
 public:
  ContiguousStorage(KvLayout layout, Memory& memory, std::vector<PageRange> ranges)
      : KvStorage(std::make_shared<const KvLayout>(std::move(layout)), memory), ranges_(std::move(ranges)) {}
  ~ContiguousStorage() override {
    drop_slots();
    if (state_group_ < groups()) drop_states(0, size());
    if (entered_ == nullptr) return;
    const std::lock_guard lock(entered_->mutex);
    entered_->leave(numbers_.cache);
  }

  [[nodiscard]] KvKind kind() const noexcept override { return KvKind::contiguous; }
  [[nodiscard]] std::uint64_t bytes() const noexcept override {
    std::uint64_t all = 0;
    for (const PageRange& range : ranges_) all += range.bytes();
    return all + states_ * state_slot_bytes();
  }

  Status make_writable(std::uint64_t, std::uint64_t last) override {
    reserve_pages(last);
    if (state_group_ < groups()) state_ids_.reserve(pages_[state_group_].capacity());
    if (!commit(last)) {
      std::uint64_t missing = 0;
      for (const PageRange& range : ranges_) missing += range.missing(last);
      return make_error(ErrorCode::out_of_memory, "no memory for {} more bytes of KV cache ({} are in use)", missing, bytes());
    }
    for (std::size_t group = 0; group < groups(); ++group) {
      auto& pages = pages_[group];
      while (pages.size() < last) pages.push_back(group != state_group_ ? ranges_[group].address(pages.size()) : nullptr);
    }
    resize_state_ids();
    return {};
  }

  void shrink(std::uint64_t n) noexcept override {
    if (n == 0) drop_slots();
    for (std::size_t group = 0; group < groups(); ++group) {
      if (n >= pages_[group].size()) continue;
      if (group == state_group_) drop_states(n, pages_[group].size());
      pages_[group].resize(n);
      ranges_[group].shrink(n);
    }
    resize_state_ids();
  }

  void drop_front(std::size_t group, std::uint64_t n) noexcept override {
    ranges_[group].drop_front(n);
    auto& pages = pages_[group];
    std::fill_n(pages.begin(), std::min<std::uint64_t>(n, pages.size()), nullptr);
  }

  Status take_again(std::span<const std::uint64_t> first, std::uint64_t last) override {
    for (std::size_t group = 0; group < groups(); ++group) {
      if (first[group] >= last || ranges_[group].take_again(first[group])) continue;
      for (std::size_t before = 0; before < group; ++before) ranges_[before].drop_front(front(before));
      return make_error(ErrorCode::out_of_memory, "no memory for pages of a KV cache that a window had passed ({} bytes are in use)", bytes());
    }
    for (std::size_t group = 0; group < groups(); ++group) {
      for (std::uint64_t page = first[group]; page < last; ++page) pages_[group][page] = ranges_[group].address(page);
    }
    return {};
  }

  void skip_front(std::span<const std::uint64_t> front) override {
    reserve_pages(std::ranges::max(front));
    if (state_group_ < groups()) state_ids_.reserve(pages_[state_group_].capacity());
    for (std::size_t group = 0; group < groups(); ++group) {
      pages_[group].assign(front[group], nullptr);
      ranges_[group].skip_front(front[group]);
    }
    resize_state_ids();
  }

  Result<std::unique_ptr<KvStorage>> fork() const override {
    return make_error(ErrorCode::invalid_state,
                      "a contiguous KV cache cannot be forked: clone() it, which copies, or use a paged one");
  }
  Result<std::unique_ptr<KvStorage>> create_empty(std::uint64_t capacity) const override {
    return make_contiguous_storage(layout_, capacity, memory_);
  }

 protected:
  // Each state gets separate memory instead of an address in a PageRange, because only a few pages of a sequence have a state.
  Status take_slots(std::span<StateSlot> slots) override {
    const std::uint64_t bytes = state_slot_bytes();
    slot_is_used_.reserve(slot_is_used_.size() + slots.size());
    for (std::size_t i = 0; i < slots.size(); ++i) {
      auto* const base = static_cast<std::byte*>(memory_.reserve(bytes));
      if (base != nullptr && memory_.commit(base, 0, bytes)) {
        slots[i] = {.address = base, .id = take_slot_id()};
        ++states_;
        continue;
      }
      if (base != nullptr) memory_.unreserve(base, bytes);
      give_back_slots(slots.first(i));
      return make_error(ErrorCode::out_of_memory, "no memory for {} more states of {} bytes", slots.size(), bytes);
    }
    return {};
  }
  void give_back_slots(std::span<const StateSlot> slots) noexcept override {
    const std::uint64_t bytes = state_slot_bytes();
    for (const StateSlot& slot : slots) {
      memory_.decommit(slot.address, 0, bytes);
      memory_.unreserve(slot.address, bytes);
      slot_is_used_[slot.id] = false;
    }
    states_ -= slots.size();
  }
  [[nodiscard]] bool is_own(const StateSlot&) const noexcept override { return true; }
  [[nodiscard]] StateSlot state_page(std::uint64_t page) const noexcept override {
    return {.address = pages_[state_group_][page], .id = state_ids_[page]};
  }
  void set_state_page(std::uint64_t page, const StateSlot& slot) noexcept override {
    pages_[state_group_][page] = slot.address;
    state_ids_[page] = slot.id;
  }

  // Returns the number of this cache and the number of its layout, by which descriptions of steps (StepPages) refer to them. The first call
  // gets both numbers from `pools`; later calls return the same numbers. (Pages and states have numbers within the cache. Page i of a group
  // has the number i. When memory is taken for a state, the state gets the lowest number that no other state has.)
  Numbers numbers(KvPools::State& pools) override {
    if (entered_ != nullptr) return numbers_;
    std::shared_ptr<KvPools::State> entered = pools.shared_from_this();
    const std::lock_guard lock(entered->mutex);
    numbers_.layout = pools.pooled(layout_).number;
    numbers_.cache = pools.enter(*this);
    entered_ = std::move(entered);
    return numbers_;
  }
  void append_ids(std::size_t group, std::vector<PageId>& to) const override {
    if (group == state_group_) {
      to.insert(to.end(), state_ids_.begin(), state_ids_.end());
      return;
    }
    for (PageId page = 0; page < size(); ++page) to.push_back(pages_[group][page] != nullptr ? page : kNoPage);
  }

 private:
  [[nodiscard]] std::uint64_t state_slot_bytes() const noexcept {
    const std::uint64_t unit = memory_.granularity();
    return (layout_.state_bytes() + unit - 1) / unit * unit;
  }

  // Commits memory for the first `n` pages of every group. If Memory has too little, returns false and changes nothing.
  [[nodiscard]] bool commit(std::uint64_t n) noexcept {
    for (std::size_t group = 0; group < ranges_.size(); ++group) {
      if (ranges_[group].commit(n)) continue;
      for (std::size_t i = 0; i < group; ++i) ranges_[i].undo();
      return false;
    }
    return true;
  }

  void resize_state_ids() noexcept {
    if (state_group_ < groups()) state_ids_.resize(pages_[state_group_].size(), kNoPage);  // allocates nothing: memory is reserved
  }
  // Returns the lowest number that no state has, and marks it as used. Precondition: slot_is_used_ has room for one more element.
  [[nodiscard]] PageId take_slot_id() noexcept {
    const auto unused = std::ranges::find(slot_is_used_, false);
    const auto id = static_cast<PageId>(unused - slot_is_used_.begin());
    if (unused == slot_is_used_.end()) slot_is_used_.push_back(true);
    else *unused = true;
    return id;
  }

  std::vector<PageRange> ranges_;  // [group]; empty for the recurrent layers' group
  std::vector<PageId> state_ids_;   // [page]: number of the state after the page's last token
  std::vector<bool> slot_is_used_;  // [number of a state]
  std::shared_ptr<KvPools::State> entered_;  // the pools that numbered this cache, at its first description
  Numbers numbers_;
  std::uint64_t states_ = 0;       // number of states that have memory
};

}  // namespace

Status KvStorage::suspend() {
  return make_error(ErrorCode::invalid_state, "a contiguous KV cache cannot be suspended: convert() it to a paged one");
}

Result<std::unique_ptr<KvStorage>> make_contiguous_storage(KvLayout layout, std::uint64_t capacity, Memory& memory) {
  std::vector<PageRange> ranges;
  ranges.reserve(layout.groups.size());
  for (const KvGroup& group : layout.groups) {
    if (group.is_recurrent()) {
      ranges.emplace_back();
      continue;
    }
    const auto bytes = checked_multiply(layout.pages(capacity), group.page_bytes);
    const auto reserved = bytes ? checked_align(*bytes, memory.granularity()) : std::nullopt;
    if (!reserved) {
      return make_error(ErrorCode::invalid_argument, "a KV cache of {} tokens is too large to address", capacity);
    }
    auto* base = static_cast<std::byte*>(memory.reserve(*reserved));
    if (base == nullptr) {
      return make_error(ErrorCode::out_of_memory, "no room for a KV cache of {} tokens ({} bytes); use a smaller context",
                        capacity, *reserved);
    }
    ranges.emplace_back(memory, group.page_bytes, base, *reserved);
  }
  return std::unique_ptr<KvStorage>(std::make_unique<ContiguousStorage>(std::move(layout), memory, std::move(ranges)));
}

}  // namespace tessera::detail
