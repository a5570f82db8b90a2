// Where a cache's pages come from: the part that contiguous and paged caches do differently. Sizes are in pages;
// KvCache knows tokens.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <tessera/kv/kv_cache.hpp>

#include "kv/prefix_search.hpp"

namespace tessera::detail {

class KvStorage {
 public:
  virtual ~KvStorage() = default;
  KvStorage(const KvStorage&) = delete;
  KvStorage& operator=(const KvStorage&) = delete;

  [[nodiscard]] virtual KvKind kind() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t bytes() const noexcept = 0;
  // Makes pages [first, last) of every group exist and be writable; those below `first` exist. What a group has given
  // back stays so. Changes nothing on error.
  virtual Status make_writable(std::uint64_t first, std::uint64_t last) = 0;
  // Gives back the pages from `n` on, of every group.
  virtual void shrink(std::uint64_t n) noexcept = 0;
  // Gives back the group's pages below `n`: they are nullptr then.
  virtual void drop_front(std::size_t group, std::uint64_t n) noexcept = 0;
  // Of a storage without pages: as if it had had front[group] and dropped them. Changes nothing when it throws.
  virtual void skip_front(std::span<const std::uint64_t> front) = 0;
  // The same pages once more. Error: this kind cannot.
  virtual Result<std::unique_ptr<KvStorage>> fork() const = 0;
  // Another one of this kind, without pages.
  virtual Result<std::unique_ptr<KvStorage>> create_empty(std::uint64_t capacity) const = 0;

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
  KvStorage(KvLayout layout, Memory& memory)
      : layout_(std::move(layout)), memory_(memory), pages_(layout_.groups.size()), tables_(layout_.groups.size()) {}

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

  KvLayout layout_;
  Memory& memory_;                             // where the pages are
  std::vector<std::vector<std::byte*>> pages_;  // [group][page]

 private:
  std::vector<std::byte* const*> tables_;
};

[[nodiscard]] Result<std::unique_ptr<KvStorage>> make_contiguous_storage(KvLayout layout, std::uint64_t capacity,
                                                                         Memory& memory);
[[nodiscard]] Result<std::unique_ptr<KvStorage>> make_paged_storage(KvLayout layout, const KvPools& pools);

}  // namespace tessera::detail
