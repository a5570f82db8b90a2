// The pages of a suspended cache: in the file, or being written or read.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kv/pages/page_reads.hpp"
#include "kv/pages/pools_state.hpp"

namespace tessera::detail {

using PageTable = std::vector<PageId>;  // one group's pages; kNoPage: given back behind the window

class SuspendedPages {
 public:
  SuspendedPages(KvPools::State& pools, const PooledLayout& layout) noexcept : pools_(pools), layout_(layout) {}
  SuspendedPages(const SuspendedPages&) = delete;
  SuspendedPages& operator=(const SuspendedPages&) = delete;
  ~SuspendedPages();

  // Takes over the references of all pages and begins to write them. Precondition: there are no pages here. After an error nothing has
  // changed.
  Status put(const std::vector<PageTable>& tables);
  // Begins to read all pages back. After an error nothing has changed.
  Status prefetch();
  // Undoes prefetch().
  void drop_incoming() noexcept;
  // Returns all pages, with a reference each, and keeps none. After an error all pages stay here.
  Result<std::vector<PageTable>> take();
  void shrink(std::size_t n) noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return pages_.empty() ? 0 : pages_.front().size(); }  // pages of a group
  [[nodiscard]] bool has(std::size_t group, std::uint64_t page) const noexcept {
    return page < pages_[group].size() && pages_[group][page] != nullptr;
  }
  [[nodiscard]] std::uint64_t bytes_in_memory() const noexcept;

 private:
  // A page. Guarded by the pools' mutex; shared with the job that writes the page.
  struct StoredPage {
    PoolPage page;  // with an id the page is in memory: not written yet, or it could not be written. Without an id it is only in the file
    std::shared_ptr<PageFile::Extent> extent;
    bool writing = false;
    bool abandoned = false;  // the cache has dropped the page: the job that writes it releases it
  };
  struct Incoming {
    std::vector<PageTable> tables;
    std::unique_ptr<PageReads> reads;
  };

  void submit(const std::shared_ptr<StoredPage>& page);
  static void arrived(KvPools::State& pools, StoredPage& page, int error) noexcept;
  void drop_from(std::size_t n) noexcept;  // with the mutex held
  void release(const std::vector<PageTable>& tables) noexcept;

  KvPools::State& pools_;
  const PooledLayout& layout_;
  std::vector<std::vector<std::shared_ptr<StoredPage>>> pages_;  // [group][page]; nullptr: given back behind the window
  std::unique_ptr<Incoming> incoming_;
};

}  // namespace tessera::detail
