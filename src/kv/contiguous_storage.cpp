// Pages at consecutive addresses: address space for all of them, committed as they are needed.
#include <algorithm>

#include "kv/kv_storage.hpp"
#include "support/checked.hpp"
#include "support/error.hpp"

namespace tessera::detail {
namespace {

class ContiguousStorage final : public KvStorage {
 public:
  ContiguousStorage(KvLayout layout, Memory& memory, std::byte* base, std::uint64_t reserved) noexcept
      : KvStorage(std::move(layout), memory), base_(base), reserved_(reserved) {}
  ~ContiguousStorage() override {
    decommit(dropped_, committed_);
    memory_.unreserve(base_, reserved_);
  }

  [[nodiscard]] KvKind kind() const noexcept override { return KvKind::contiguous; }
  [[nodiscard]] std::uint64_t bytes() const noexcept override { return committed_ - dropped_; }

  Status make_writable(std::uint64_t, std::uint64_t last) override {
    pages_.reserve(last);
    const std::uint64_t need = granules(last);
    if (need > committed_) {
      if (!memory_.commit(base_, committed_, need - committed_)) {
        return make_error(ErrorCode::out_of_memory, "no memory for {} more bytes of KV cache ({} are in use)",
                          need - committed_, bytes());
      }
      committed_ = need;
    }
    while (pages_.size() < last) pages_.push_back(base_ + pages_.size() * layout_.page_bytes);
    return {};
  }

  void shrink(std::uint64_t n) noexcept override {
    if (n >= pages_.size()) return;
    pages_.resize(n);
    const std::uint64_t keep = std::max(granules(n), dropped_);
    decommit(keep, committed_);
    committed_ = std::min(committed_, keep);
    if (n == 0) committed_ = dropped_ = 0;
  }

  // Whole granules alone: what is left of the last one stays until the next page goes.
  void drop_front(std::uint64_t n) noexcept override {
    const std::uint64_t end = std::min(whole_granules(n), committed_);
    if (end > dropped_) {
      decommit(dropped_, end);
      dropped_ = end;
    }
    std::fill_n(pages_.begin(), std::min<std::uint64_t>(n, pages_.size()), nullptr);
  }

  void skip_front(std::uint64_t n) override {
    pages_.assign(n, nullptr);
    dropped_ = committed_ = whole_granules(n);
  }

  Result<std::unique_ptr<KvStorage>> fork() const override {
    return make_error(ErrorCode::invalid_state,
                      "a contiguous KV cache cannot be forked: clone() it, which copies, or use a paged one");
  }
  Result<std::unique_ptr<KvStorage>> create_empty(std::uint64_t capacity) const override {
    return make_contiguous_storage(layout_, capacity, memory_);
  }

 private:
  // Bytes of whole granules that the first `n` pages need.
  [[nodiscard]] std::uint64_t granules(std::uint64_t n) const noexcept {
    const std::uint64_t unit = memory_.granularity();
    return std::min((n * layout_.page_bytes + unit - 1) / unit * unit, reserved_);
  }
  // Bytes of the granules that the first `n` pages fill.
  [[nodiscard]] std::uint64_t whole_granules(std::uint64_t n) const noexcept {
    return n * layout_.page_bytes / memory_.granularity() * memory_.granularity();
  }
  void decommit(std::uint64_t first, std::uint64_t last) noexcept {
    if (last > first) memory_.decommit(base_, first, last - first);
  }

  std::byte* base_;
  std::uint64_t reserved_;
  std::uint64_t committed_ = 0;  // [dropped_, committed_) is memory
  std::uint64_t dropped_ = 0;
};

}  // namespace

Status KvStorage::suspend() {
  return make_error(ErrorCode::invalid_state, "a contiguous KV cache cannot be suspended: convert() it to a paged one");
}

Result<std::unique_ptr<KvStorage>> make_contiguous_storage(KvLayout layout, std::uint64_t capacity, Memory& memory) {
  const auto bytes = checked_multiply(layout.pages(capacity), layout.page_bytes);
  const auto reserved = bytes ? checked_align(*bytes, memory.granularity()) : std::nullopt;
  if (!reserved) {
    return make_error(ErrorCode::invalid_argument, "a KV cache of {} tokens is too large to address", capacity);
  }
  auto* base = static_cast<std::byte*>(memory.reserve(*reserved));
  if (base == nullptr) {
    return make_error(ErrorCode::out_of_memory, "no room for a KV cache of {} tokens ({} bytes); use a smaller context",
                      capacity, *reserved);
  }
  try {
    return std::unique_ptr<KvStorage>(std::make_unique<ContiguousStorage>(std::move(layout), memory, base, *reserved));
  } catch (...) {
    memory.unreserve(base, *reserved);
    throw;
  }
}

}  // namespace tessera::detail
