// Where a cache's pages come from: the part that contiguous and paged caches do differently. Sizes are in pages;
// KvCache knows tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <tessera/kv/kv_cache.hpp>

namespace tessera::detail {

class KvStorage {
 public:
  virtual ~KvStorage() = default;
  KvStorage(const KvStorage&) = delete;
  KvStorage& operator=(const KvStorage&) = delete;

  [[nodiscard]] virtual KvKind kind() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t bytes() const noexcept = 0;
  // Makes pages [first, last) exist and be writable; those below `first` exist. Changes nothing on error.
  virtual Status make_writable(std::uint64_t first, std::uint64_t last) = 0;
  // Gives back the pages from `n` on.
  virtual void shrink(std::uint64_t n) noexcept = 0;
  // Gives back the pages below `n`: they are nullptr then.
  virtual void drop_front(std::uint64_t n) noexcept = 0;
  // Of a storage without pages: as if it had had `n` and dropped them. Changes nothing when it throws.
  virtual void skip_front(std::uint64_t n) = 0;
  // The same pages once more. Error: this kind cannot.
  virtual Result<std::unique_ptr<KvStorage>> fork() const = 0;
  // Another one of this kind, without pages.
  virtual Result<std::unique_ptr<KvStorage>> create_empty(std::uint64_t capacity) const = 0;

  // Prefix sharing; kinds that have none do nothing. Appends pages that the index has for `tokens`; how many.
  virtual std::uint64_t adopt(std::string_view, std::span<const Token>) noexcept { return 0; }
  // Offers page `i`; whether the pages after it can be offered too.
  virtual bool publish(std::string_view, std::uint64_t, std::span<const Token>) noexcept { return false; }

  // Tiers; see KvCache. pages() is empty while suspended.
  virtual Status suspend();
  virtual Status prefetch() { return {}; }
  virtual Status resume() { return {}; }
  [[nodiscard]] virtual bool suspended() const noexcept { return false; }

  [[nodiscard]] std::span<std::byte* const> pages() const noexcept { return pages_; }
  [[nodiscard]] const KvLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] Memory& memory() const noexcept { return memory_; }

 protected:
  KvStorage(KvLayout layout, Memory& memory) noexcept : layout_(std::move(layout)), memory_(memory) {}

  KvLayout layout_;
  Memory& memory_;  // where the pages are
  std::vector<std::byte*> pages_;
};

[[nodiscard]] Result<std::unique_ptr<KvStorage>> make_contiguous_storage(KvLayout layout, std::uint64_t capacity,
                                                                         Memory& memory);
[[nodiscard]] Result<std::unique_ptr<KvStorage>> make_paged_storage(KvLayout layout, const KvPools& pools);

}  // namespace tessera::detail
