#include <tessera/kv/page_pool.hpp>

#include <algorithm>

#include "kv/pool.hpp"
#include "support/error.hpp"
#include "support/hasher.hpp"

namespace tessera {

namespace {

Hash128 xxh3(const Hash128& parent, std::span<const std::byte> bytes) noexcept {
  detail::Hasher128 hasher;
  hasher.add(std::as_bytes(std::span(&parent, 1)));
  hasher.add(bytes);
  return hasher.digest();
}

}  // namespace

std::uint64_t kv_slab_pages(const KvLayout& layout, const KvPoolOptions& options) noexcept {
  const std::uint64_t page = std::max<std::uint64_t>(1, layout.page_bytes);
  std::uint64_t most = options.max_slab_pages;
  if (options.budget != 0) most = std::min(most, options.budget / page / 16);
  return std::clamp<std::uint64_t>((kKvSlabBytes + page - 1) / page, 1, std::max<std::uint64_t>(1, most));
}

KvPools::KvPools(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}

Result<KvPools> KvPools::create(const KvPoolOptions& options) noexcept {
  return detail::guard([&]() -> Result<KvPools> {
    auto state = std::make_shared<State>();
    state->options = options;
    if (options.memory == nullptr) state->options.memory = &system_memory();
    if (options.hash == nullptr) state->options.hash = xxh3;
    if (options.budget != 0) state->options.keep = std::min(options.keep, options.budget);
    if (!options.file.empty()) {
      TESSERA_TRY(state->file, detail::PageFile::create(options.file, options.file_bytes, *state->options.memory));
    }
    return KvPools(std::move(state));
  });
}

KvFigures KvPools::figures() const noexcept {
  const std::lock_guard lock(state_->mutex);
  KvFigures figures = state_->figures;
  for (const auto& pool : state_->pools) {
    figures.used_bytes += pool->used() * pool->page_bytes();
    figures.cached_bytes += pool->cached() * pool->page_bytes();
    figures.free_bytes += pool->free() * pool->page_bytes();
  }
  if (state_->file != nullptr) figures.file_bytes = state_->file->used();
  return figures;
}

void KvPools::trim() const noexcept {
  std::unique_lock lock(state_->mutex);
  const auto drop_all = [&] {
    const std::uint64_t evictions = state_->figures.evictions;  // those for want of room: these are not
    for (const auto& pool : state_->pools) {
      while (pool->drop_oldest_copy(detail::Pool::Copies::any) || pool->evict_one()) {
      }
      pool->release_slabs(0);
    }
    state_->figures.evictions = evictions;
  };
  drop_all();  // no more is written behind then
  state_->written.wait(lock, [&] { return state_->writing == 0; });
  drop_all();
}

detail::Pool& KvPools::State::pool(const KvLayout& layout) {
  for (const auto& pool : pools) {
    if (pool->layout() == layout) return *pool;
  }
  pools.push_back(std::make_unique<detail::Pool>(*this, layout));
  return *pools.back();
}

std::uint64_t KvPools::State::occupied() const noexcept {
  std::uint64_t bytes = 0;
  for (const auto& pool : pools) bytes += (pool->used() + pool->cached()) * pool->page_bytes();
  return bytes;
}

void KvPools::State::settle() noexcept {
  for (const auto& pool : pools) {
    while (occupied() > options.keep && pool->cached() > 0) {
      if (pool->clean() == 0 && pool->write_behind(options.keep)) break;  // free when it has been written
      pool->evict_one();
    }
  }
  for (const auto& pool : pools) pool->release_slabs(options.keep);
}

bool KvPools::State::make_room(std::uint64_t bytes, const detail::Pool& asking) noexcept {
  const auto fits = [&](std::uint64_t limit) { return figures.held_bytes <= limit && bytes <= limit - figures.held_bytes; };
  const std::uint64_t target = options.keep > bytes ? options.keep - bytes : 0;
  for (const auto& pool : pools) {
    if (pool.get() == &asking) continue;
    do {
      if (fits(options.keep)) return true;
      pool->release_slabs(target);
    } while (pool->evict_one());
    pool->release_slabs(target);
  }
  return options.budget == 0 || fits(options.budget);
}

bool KvPools::State::reclaim(const detail::Pool& asking) noexcept {
  const std::uint64_t before = figures.held_bytes;
  for (const auto& pool : pools) {
    if (pool.get() == &asking) continue;
    while (pool->evict_one()) {
    }
    pool->release_slabs(0);
  }
  return figures.held_bytes < before;
}

}  // namespace tessera
