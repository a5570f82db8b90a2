// A paged cache's pages while it is suspended: in the file, or on their way there or back.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kv/page_reads.hpp"
#include "kv/pool.hpp"

namespace tessera::detail {

class SuspendedPages {
 public:
  SuspendedPages(KvPools::State& pools, Pool& pool) noexcept : pools_(pools), pool_(pool) {}
  SuspendedPages(const SuspendedPages&) = delete;
  SuspendedPages& operator=(const SuspendedPages&) = delete;
  ~SuspendedPages();

  // Takes over the references of all pages, kNoPage among them, and begins to write; only while there are none here. On
  // error nothing has happened.
  Status put(const std::vector<PageId>& ids);
  // Begins to bring them back.
  Status prefetch();
  // Undoes prefetch().
  void drop_incoming() noexcept;
  // All of them, with a reference each, and their addresses; none is here any more. Or none.
  Result<std::vector<PageId>> take(std::vector<std::byte*>& addresses);
  void shrink(std::size_t n) noexcept;
  [[nodiscard]] std::uint64_t bytes_in_memory() const noexcept;

 private:
  // Guarded by the pools' mutex; shared with the job that writes it.
  struct StoredPage {
    PageId id = kNoPage;  // in memory: not written yet, or it could not be
    std::shared_ptr<PageFile::Extent> extent;
    bool writing = false;
    bool abandoned = false;  // nobody wants it any more: whoever writes it releases it
  };
  struct Incoming {
    std::vector<PageId> ids;
    std::unique_ptr<PageReads> reads;
  };

  void submit(const std::shared_ptr<StoredPage>& page);
  static void arrived(KvPools::State& pools, Pool& pool, StoredPage& page, int error) noexcept;
  void drop_from(std::size_t n) noexcept;  // with the mutex held

  KvPools::State& pools_;
  Pool& pool_;
  std::vector<std::shared_ptr<StoredPage>> pages_;  // nullptr: given back behind the window
  std::unique_ptr<Incoming> incoming_;
};

}  // namespace tessera::detail
