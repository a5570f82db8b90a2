// PagedStorage: slots for the states of recurrent layers are pages of their group's pool.
#include "core/error.hpp"
#include "kv/pages/paged_storage.hpp"

namespace tessera::detail {

Status PagedStorage::take_slots(std::span<StateSlot> slots) {
  std::vector<PoolPage> pages(slots.size(), PoolPage{.pool = &pool(state_group_)});
  std::unique_lock lock(pools_->mutex);
  TESSERA_TRY_STATUS(pools_->acquire(pages, lock));
  for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = {.address = pages[i].pool->address(pages[i].id), .id = pages[i].id};
  return {};
}

void PagedStorage::give_back_slots(std::span<const StateSlot> slots) noexcept {
  const std::lock_guard lock(pools_->mutex);
  for (const StateSlot& slot : slots) pool(state_group_).release({&slot.id, 1});
}

bool PagedStorage::is_own(const StateSlot& slot) const noexcept {
  const std::lock_guard lock(pools_->mutex);
  return pool(state_group_).is_private(slot.id);
}

StateSlot PagedStorage::state_page(std::uint64_t page) const noexcept {
  return {.address = pages_[state_group_][page], .id = ids_[state_group_][page]};
}

void PagedStorage::set_state_page(std::uint64_t page, const StateSlot& slot) noexcept {
  pages_[state_group_][page] = slot.address;
  ids_[state_group_][page] = slot.id;
}

}  // namespace tessera::detail
