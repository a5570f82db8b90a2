// KvStorage: the states of recurrent layers. A step writes its states to slots; the commit makes some of the slots pages of the sequence.
#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "kv/kv_storage.hpp"

namespace tessera::detail {
namespace {

// Decides for which pages a step keeps the state after the page's last token. kept(page) returns true for the newest pages (checkpoints, so
// that the sequence can be shortened) and for every every_-th page (so that other sequences can find states). `last` is the position after
// the step's last row that is not a draft.
class Kept {
 public:
  Kept(const KvLayout& layout, const StateRows& rows, std::uint64_t last) noexcept
      : full_(last / layout.page_tokens), newest_(full_ - std::min(full_, rows.checkpoints)), every_(rows.offers ? layout.state_pages : 0) {
    const std::uint64_t before = rows.length / layout.page_tokens;
    while (every_ != 0 && full_ / every_ - before / every_ > kMostOffered) every_ *= 2;
  }
  [[nodiscard]] bool operator()(std::uint64_t page) const noexcept {
    return page >= newest_ || (every_ != 0 && (page + 1) % every_ == 0);
  }

 private:
  std::uint64_t full_, newest_, every_;
};

}  // namespace

void KvStorage::give_back(StateSlot& slot) noexcept {
  if (slot.address == nullptr) return;
  if (spare_.address == nullptr && is_own(slot)) spare_ = slot;
  else give_back_slots({&slot, 1});
  slot = {};
}

void KvStorage::drop_targets() noexcept {
  if (!targets_) return;
  for (StateSlot& slot : page_slots_) give_back(slot);
  for (StateSlot& slot : draft_slots_) give_back(slot);
  page_slots_.clear();
  draft_slots_.clear();
  targets_.reset();
}

void KvStorage::drop_slots() noexcept {
  drop_targets();
  if (spare_.address != nullptr) give_back_slots({&spare_, 1});
  spare_ = {};
}

std::uint64_t KvStorage::slot_bytes() const noexcept {
  const auto has = [](const StateSlot& slot) { return slot.address != nullptr; };
  const auto n = std::ranges::count_if(page_slots_, has) + std::ranges::count_if(draft_slots_, has) + (has(spare_) ? 1 : 0);
  return static_cast<std::uint64_t>(n) * layout_.state_bytes();
}

Status KvStorage::reserve_states(const StateRows& rows) {
  if (state_group_ == groups()) return {};
  drop_targets();
  const std::uint64_t size = layout_.page_tokens, first_page = rows.length / size;
  const std::uint64_t last = std::min(rows.exact_from, rows.reserved);
  const Kept kept(layout_, rows, last);
  KvStateTargets targets{.length = rows.length, .first_page = first_page, .exact_from = last, .pages = {}, .drafts = {}};
  std::vector<StateSlot> pages(last > rows.length ? (last - 1) / size + 1 - first_page : 0), drafts(rows.reserved - last);
  targets.pages.resize(pages.size());
  targets.drafts.resize(drafts.size());
  std::vector<std::size_t> wanted;  // indices (relative to first_page) of the pages that need a slot
  wanted.reserve(pages.size());
  for (std::size_t i = 0; i < pages.size(); ++i) {
    if (i + 1 == pages.size() || kept(first_page + i)) wanted.push_back(i);
  }
  std::vector<StateSlot> slots(wanted.size() + drafts.size() - (spare_.address != nullptr ? 1 : 0));
  TESSERA_TRY_STATUS(take_slots(slots));
  if (spare_.address != nullptr) slots.push_back(std::exchange(spare_, {}));  // the spare slot is used too: one slot less was taken above
  auto next = slots.rbegin();
  for (const std::size_t i : wanted) targets.pages[i] = (pages[i] = *next++).address;
  for (std::size_t i = 0; i < drafts.size(); ++i) targets.drafts[i] = (drafts[i] = *next++).address;
  targets_ = std::move(targets);
  page_slots_ = std::move(pages);
  draft_slots_ = std::move(drafts);
  reserved_ = rows.reserved;
  return {};
}

std::uint64_t KvStorage::commit_states(std::uint64_t n, Reserved beyond) noexcept {
  if (!targets_) return n;
  const std::uint64_t size = layout_.page_tokens, before = targets_->length, exact_from = targets_->exact_from;
  n = std::min(n, reserved_);
  // The sequence can only go on from a length whose state was kept. So `n` is lowered to the largest length, at most `n`, whose state was
  // kept. slot_behind(tokens) returns the slot with the state after the first `tokens` tokens; nullptr: the state was not kept.
  const auto slot_behind = [&](std::uint64_t tokens) -> StateSlot* {
    if (tokens > exact_from) return &draft_slots_[tokens - 1 - exact_from];
    const std::uint64_t page = (tokens - 1) / size - targets_->first_page;
    if (page >= page_slots_.size() || (tokens != exact_from && tokens % size != 0)) return nullptr;
    return page_slots_[page].address != nullptr ? &page_slots_[page] : nullptr;
  };
  while (n > before && slot_behind(n) == nullptr) n = (n - 1) / size * size;
  if (n > before) {
    const std::uint64_t last_page = (n - 1) / size;
    for (std::uint64_t page = before / size; page <= last_page; ++page) {
      StateSlot* const slot = slot_behind(std::min((page + 1) * size, n));
      StateSlot old = state_page(page);
      set_state_page(page, slot != nullptr ? *slot : StateSlot{});
      if (slot != nullptr) *slot = {};
      give_back(old);
    }
  }
  n = std::max(n, before);
  if (beyond == Reserved::give_back || n >= reserved_) {
    drop_targets();
    return n;
  }
  for (StateSlot& slot : page_slots_) give_back(slot);
  page_slots_.clear();
  targets_->pages.clear();
  targets_->length = n;
  targets_->first_page = n / size;
  return n;
}

Status KvStorage::install_states(std::span<const std::uint64_t> tokens) {
  if (state_group_ == groups() || tokens.empty()) return {};
  std::vector<StateSlot> slots(tokens.size());
  TESSERA_TRY_STATUS(take_slots(slots));
  for (std::size_t i = 0; i < tokens.size(); ++i) set_state_page((tokens[i] - 1) / layout_.page_tokens, slots[i]);
  return {};
}

void KvStorage::drop_states(std::uint64_t first, std::uint64_t last) noexcept {
  for (std::uint64_t page = first; page < std::min<std::uint64_t>(last, size()); ++page) {
    StateSlot slot = state_page(page);
    if (slot.address == nullptr) continue;
    set_state_page(page, {});
    give_back_slots({&slot, 1});
  }
}

}  // namespace tessera::detail
