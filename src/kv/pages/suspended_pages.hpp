// A paged cache's pages while it is suspended: in the file, or on their way there or back.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kv/pages/page_reads.hpp"
#include "kv/pages/pools_state.hpp"

namespace tessera::detail {

using PageTable = std::vector<PageId>;  // of one group; kNoPage: given back behind its window

class SuspendedPages {
 public:
  SuspendedPages(KvPools::State& pools, const PooledLayout& layout) noexcept : pools_(pools), layout_(layout) {}
  SuspendedPages(const SuspendedPages&) = delete;
  SuspendedPages& operator=(const SuspendedPages&) = delete;
  ~SuspendedPages();

  // Takes over the references of all pages and begins to write; only while there are none here. On error nothing has
  // happened.
  Status put(const std::vector<PageTable>& tables);
  // Begins to bring them back, of all groups or of none.
  Status prefetch();
  // Undoes prefetch().
  void drop_incoming() noexcept;
  // All of them, with a reference each; none is here any more. Or none.
  Result<std::vector<PageTable>> take();
  void shrink(std::size_t n) noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return pages_.empty() ? 0 : pages_.front().size(); }  // of a group
  [[nodiscard]] bool has(std::size_t group, std::uint64_t page) const noexcept {
    return page < pages_[group].size() && pages_[group][page] != nullptr;
  }
  [[nodiscard]] std::uint64_t bytes_in_memory() const noexcept;

 private:
  // Guarded by the pools' mutex; shared with the job that writes it.
  struct StoredPage {
    PoolPage page;  // in memory: not written yet, or it could not be. Without an id: in the file alone
    std::shared_ptr<PageFile::Extent> extent;
    bool writing = false;
    bool abandoned = false;  // nobody wants it any more: whoever writes it releases it
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
