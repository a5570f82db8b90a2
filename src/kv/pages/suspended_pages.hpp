// The pages of a suspended cache. A page is in the file, or is being written to the file or read from it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kv/pages/page_reads.hpp"
#include "kv/pages/pools_state.hpp"

namespace tessera::detail {

// The numbers of one group's pages, in the order of the sequence. kNoPage: the page was given back, because the window has passed it; in the
// recurrent layers' group: no state is kept there.
using PageTable = std::vector<PageId>;

class SuspendedPages {
 public:
  SuspendedPages(KvPools::State& pools, const PooledLayout& layout) noexcept : pools_(pools), layout_(layout) {}
  SuspendedPages(const SuspendedPages&) = delete;
  SuspendedPages& operator=(const SuspendedPages&) = delete;
  ~SuspendedPages();

  // Takes over all pages of a sequence, with their references, and begins to write them to the file. Precondition: no pages are here yet.
  // After an error nothing has changed.
  Status put(const std::vector<PageTable>& tables);
  // Begins to read all pages back into memory, before take() needs them. After an error nothing has changed.
  Status prefetch();
  // Undoes prefetch(): frees the memory of pages that were read back.
  void drop_incoming() noexcept;
  // Reads back the pages that are not in memory, and hands all pages over to the caller, each with one reference. After an error all
  // pages stay here.
  Result<std::vector<PageTable>> take();
  void shrink(std::size_t n) noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return pages_.empty() ? 0 : pages_.front().size(); }  // pages of a group
  [[nodiscard]] bool has(std::size_t group, std::uint64_t page) const noexcept {
    return page < pages_[group].size() && pages_[group][page] != nullptr;
  }
  [[nodiscard]] std::uint64_t bytes_in_memory() const noexcept;

 private:
  // A page of the sequence. The object is shared with the job that writes the page to the file, and guarded by the pools' mutex.
  struct StoredPage {
    PoolPage page;  // its id is set while the page is in memory: it is not written yet, or could not be. kNoPage: only in the file
    std::shared_ptr<PageFile::Extent> extent;
    bool writing = false;
    bool abandoned = false;  // true: the cache no longer needs the page, so the job that writes it must release it
  };
  struct Incoming {
    std::vector<PageTable> tables;
    std::unique_ptr<PageReads> reads;
  };

  void submit(const std::shared_ptr<StoredPage>& page);
  static void arrived(KvPools::State& pools, StoredPage& page, int error) noexcept;
  void drop_from(std::size_t n) noexcept;  // call it with the mutex held
  void release(const std::vector<PageTable>& tables) noexcept;

  KvPools::State& pools_;
  const PooledLayout& layout_;
  std::vector<std::vector<std::shared_ptr<StoredPage>>> pages_;  // [group][page]; nullptr: kNoPage in the table (PageTable)
  std::unique_ptr<Incoming> incoming_;
};

}  // namespace tessera::detail
