// Pages from a pool, shared between sequences and copied before they are written to.
#include <algorithm>

#include "kv/kv_storage.hpp"
#include "kv/page_reads.hpp"
#include "kv/pool.hpp"
#include "kv/suspended_pages.hpp"
#include "support/error.hpp"

namespace tessera::detail {
namespace {

class PagedStorage final : public KvStorage {
 public:
  PagedStorage(KvLayout layout, std::shared_ptr<KvPools::State> pools, Pool& pool) noexcept
      : KvStorage(std::move(layout), *pools->options.memory), pools_(std::move(pools)), pool_(pool) {}
  ~PagedStorage() override {
    suspended_.reset();
    const std::lock_guard lock(pools_->mutex);
    pool_.release(ids_);
  }

  [[nodiscard]] KvKind kind() const noexcept override { return KvKind::paged; }
  [[nodiscard]] std::uint64_t bytes() const noexcept override {
    if (suspended_ != nullptr) return suspended_->bytes_in_memory();
    return static_cast<std::uint64_t>(std::ranges::count_if(ids_, [](PageId id) { return id != kNoPage; })) *
           layout_.page_bytes;
  }

  Status make_writable(std::uint64_t first, std::uint64_t last) override {
    const std::uint64_t present = ids_.size();
    if (last <= present && all_private(first, last)) return {};
    make_room(ids_, last);
    make_room(pages_, last);
    std::vector<std::uint64_t> shared;  // indices of pages to copy
    shared.reserve(std::min(last, present) - std::min({first, last, present}));
    const std::uint64_t grown = last > present ? last - present : 0;
    std::vector<PageId> fresh(shared.capacity() + grown);
    std::vector<Transfer> copies;
    copies.reserve(shared.capacity());
    {
      std::unique_lock lock(pools_->mutex);
      for (std::uint64_t i = first; i < std::min(last, present); ++i) {
        if (!pool_.is_private(ids_[i])) shared.push_back(i);
      }
      fresh.resize(shared.size() + grown);
      // What only the index shares with us is copied for its sake as long as there is room to keep both. Else it is
      // taken from the index, once the rest is there.
      const auto with_others = [&](std::uint64_t i) { return pool_.references(ids_[i]) > 1; };
      const auto copied = static_cast<std::size_t>(std::ranges::count_if(shared, with_others));
      bool take = copied < shared.size() && !pool_.within_keep(fresh.size());
      if (!take) {
        const Status status = pool_.acquire(fresh, lock);
        if (!status && copied == shared.size()) return status;
        take = !status;
      }
      if (take) {
        fresh.resize(copied + grown);
        TESSERA_TRY_STATUS(pool_.acquire(fresh, lock));
        std::erase_if(shared, [&](std::uint64_t i) { return pool_.make_private(ids_[i]); });
        // While acquire() waited, others may have found some of the pages, or let go of them.
        const std::size_t have = fresh.size(), needed = shared.size() + grown;
        if (needed < have) pool_.release(std::span(fresh).subspan(needed));
        fresh.resize(needed);
        if (needed > have) {
          if (Status status = guard([&] { return pool_.acquire(std::span(fresh).subspan(have), lock); }); !status) {
            pool_.release(std::span(fresh).first(have));
            return status;
          }
        }
      }
      for (std::size_t i = 0; i < shared.size(); ++i) {
        copies.push_back({.to = pool_.address(fresh[i]), .from = pages_[shared[i]], .bytes = layout_.page_bytes});
      }
      if (shared.empty()) {
        add_pages(fresh);
        return {};
      }
    }
    // Outside the lock: we hold the old pages until the copies are made.
    const bool done = memory_.copy(copies);
    const std::lock_guard lock(pools_->mutex);
    if (!done) {
      pool_.release(fresh);
      return device_error("copying pages of a KV cache");
    }
    pools_->figures.copies += shared.size();
    for (std::size_t i = 0; i < shared.size(); ++i) {
      pool_.release({&ids_[shared[i]], 1});
      set(shared[i], fresh[i]);
    }
    add_pages(std::span(fresh).subspan(shared.size()));
    return {};
  }

  void shrink(std::uint64_t n) noexcept override {
    if (suspended_ != nullptr) {
      suspended_->shrink(n);
      return;
    }
    if (n >= ids_.size()) return;
    const std::lock_guard lock(pools_->mutex);
    pool_.release(std::span(ids_).subspan(n));
    ids_.resize(n);
    pages_.resize(n);
  }

  void drop_front(std::uint64_t n) noexcept override {
    n = std::min<std::uint64_t>(n, ids_.size());
    std::uint64_t first = n;
    while (first > 0 && ids_[first - 1] != kNoPage) --first;
    if (first == n) return;
    const std::lock_guard lock(pools_->mutex);
    pool_.release(std::span(ids_).subspan(first, n - first));
    std::fill(ids_.begin() + static_cast<std::ptrdiff_t>(first), ids_.begin() + static_cast<std::ptrdiff_t>(n), kNoPage);
    std::fill(pages_.begin() + static_cast<std::ptrdiff_t>(first), pages_.begin() + static_cast<std::ptrdiff_t>(n), nullptr);
  }

  void skip_front(std::uint64_t n) override {
    ids_.reserve(n);
    pages_.assign(n, nullptr);
    ids_.assign(n, kNoPage);
  }

  Result<std::unique_ptr<KvStorage>> fork() const override {
    auto copy = std::make_unique<PagedStorage>(layout_, pools_, pool_);
    copy->ids_.reserve(ids_.size());
    copy->pages_ = pages_;
    const std::lock_guard lock(pools_->mutex);
    pool_.share(ids_);
    copy->ids_ = ids_;
    return std::unique_ptr<KvStorage>(std::move(copy));
  }

  Result<std::unique_ptr<KvStorage>> create_empty(std::uint64_t) const override {
    return std::unique_ptr<KvStorage>(std::make_unique<PagedStorage>(layout_, pools_, pool_));
  }

  std::uint64_t adopt(std::string_view identity, std::span<const Token> tokens) noexcept override {
    const std::size_t page_tokens = layout_.page_tokens;
    const std::size_t before = ids_.size();
    if (before > 0 && ids_.back() == kNoPage) return 0;  // the window has passed what these tokens follow
    try {
      ids_.reserve(before + tokens.size() / page_tokens);
      pages_.reserve(ids_.capacity());
      PageReads reads(pools_->file.get());
      const std::vector<std::size_t> read = find_all(identity, tokens, reads);
      if (!read.empty()) {
        reads.wait();
        keep_read(read, reads.errors());
      }
    } catch (const std::bad_alloc&) {  // what has been found so far is kept
    }
    const std::lock_guard lock(pools_->mutex);
    const std::uint64_t found = ids_.size() - before;
    KvFigures& figures = pools_->figures;
    if (found > 0) {
      ++figures.hits;
      figures.tokens_saved += found * page_tokens;
    } else if (tokens.size() >= page_tokens) {
      ++figures.misses;
    }
    return found;
  }

  bool publish(std::string_view identity, std::uint64_t i, std::span<const Token> tokens) noexcept override {
    const std::lock_guard lock(pools_->mutex);
    const PageId parent = i == 0 ? kNoPage : ids_[i - 1];
    if (ids_[i] == kNoPage || (i > 0 && parent == kNoPage)) return false;  // the window has passed it unoffered
    const PageId id = pool_.publish(identity, parent, tokens, ids_[i]);
    if (id == kNoPage) return false;
    set(i, id);
    return true;
  }

  Status suspend() override {
    if (pools_->file == nullptr) {
      return make_error(ErrorCode::invalid_state, "there is no file to suspend to: give the engine one (kv_file)");
    }
    if (suspended_ != nullptr) {
      suspended_->drop_incoming();
      return {};
    }
    auto suspended = std::make_unique<SuspendedPages>(*pools_, pool_);
    TESSERA_TRY_STATUS(suspended->put(ids_));
    suspended_ = std::move(suspended);
    ids_.clear();
    pages_.clear();
    return {};
  }
  Status prefetch() override { return suspended_ != nullptr ? suspended_->prefetch() : Status(); }
  Status resume() override {
    if (suspended_ == nullptr) return {};
    std::vector<std::byte*> pages;
    TESSERA_TRY(std::vector<PageId> ids, suspended_->take(pages));
    ids_ = std::move(ids);
    pages_ = std::move(pages);
    suspended_.reset();
    return {};
  }
  [[nodiscard]] bool suspended() const noexcept override { return suspended_ != nullptr; }

 private:
  // Whether pages [first, last) may be written to as they are: so it is in most decode steps.
  [[nodiscard]] bool all_private(std::uint64_t first, std::uint64_t last) const noexcept {
    const std::lock_guard lock(pools_->mutex);
    return std::all_of(ids_.begin() + static_cast<std::ptrdiff_t>(first), ids_.begin() + static_cast<std::ptrdiff_t>(last),
                       [&](PageId id) { return pool_.is_private(id); });
  }

  // By doubling: a sequence grows page by page.
  template <class T>
  static void make_room(std::vector<T>& list, std::uint64_t n) {
    if (n > list.capacity()) list.reserve(std::max<std::uint64_t>(n, 2 * list.capacity()));
  }

  // Appends what the index has. Pages that are in the file alone are being read then; which of ours they are.
  std::vector<std::size_t> find_all(std::string_view identity, std::span<const Token> tokens, PageReads& reads) {
    const std::size_t page_tokens = layout_.page_tokens;
    std::vector<std::size_t> read;
    if (pools_->file != nullptr) read.reserve(tokens.size() / page_tokens);
    std::unique_lock lock(pools_->mutex);
    for (std::size_t at = 0; at + page_tokens <= tokens.size(); at += page_tokens) {
      const PageId parent = ids_.empty() ? kNoPage : ids_.back();
      const Pool::Found found = pool_.find(identity, parent, tokens.subspan(at, page_tokens), lock);
      if (found.id == kNoPage) break;
      if (found.read_from != nullptr) {
        try {
          reads.add(pool_.address(found.id), layout_.page_bytes, found.read_from);
        } catch (const std::bad_alloc&) {
          pool_.finish_read(found.id, false);
          pool_.release({&found.id, 1});
          break;
        }
        read.push_back(ids_.size());
      }
      ids_.push_back(found.id);
      pages_.push_back(pool_.address(found.id));
    }
    return read;
  }

  // Pages from the first one on that could not be read go again.
  void keep_read(std::span<const std::size_t> read, std::span<const int> errors) noexcept {
    const std::lock_guard lock(pools_->mutex);
    std::size_t good = ids_.size();
    for (std::size_t i = 0; i < read.size(); ++i) {
      pool_.finish_read(ids_[read[i]], errors[i] == 0);
      if (errors[i] != 0) good = std::min(good, read[i]);
    }
    pool_.release(std::span(ids_).subspan(good));
    ids_.resize(good);
    pages_.resize(good);
  }

  // There is room for them.
  void add_pages(std::span<const PageId> ids) noexcept {
    for (const PageId id : ids) {
      ids_.push_back(id);
      pages_.push_back(pool_.address(id));
    }
  }

  void set(std::uint64_t i, PageId id) noexcept {
    ids_[i] = id;
    pages_[i] = pool_.address(id);
  }

  std::shared_ptr<KvPools::State> pools_;
  Pool& pool_;
  std::vector<PageId> ids_;
  std::unique_ptr<SuspendedPages> suspended_;  // then ids_ is empty
};

}  // namespace

Result<std::unique_ptr<KvStorage>> make_paged_storage(KvLayout layout, const KvPools& pools) {
  const std::shared_ptr<KvPools::State>& state = pools.state();
  const std::lock_guard lock(state->mutex);
  Pool& pool = state->pool(layout);
  return std::unique_ptr<KvStorage>(std::make_unique<PagedStorage>(std::move(layout), state, pool));
}

}  // namespace tessera::detail
