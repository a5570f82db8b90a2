// The pages of a rank in another process: memory of its own for the heads that it has. A page is made when a step first names it.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include <tessera/extend/core/memory.hpp>

#include "kv/page_addresses.hpp"
#include "ranks/model_division.hpp"

namespace tessera::detail {

class OwnPages final : public PageMemory {
 public:
  // `most_bytes`: the limit for all pages together, and for other memory that take() counts.
  OwnPages(std::shared_ptr<const ModelDivision> division, std::uint32_t rank, Memory& memory, std::uint64_t most_bytes)
      : division_(std::move(division)), rank_(rank), memory_(memory), most_bytes_(most_bytes) {}

  // Adds the next layout, in the order of the layouts' numbers. `first`: rank 0's layout. Error: internal, its layers are not this model's.
  Status add_layout(KvLayout first);
  [[nodiscard]] std::size_t layouts() const noexcept { return layouts_.size(); }
  // Returns rank 0's layout with this number. Precondition: the number is below layouts().
  [[nodiscard]] const KvLayout& first_layout(std::size_t number) const noexcept { return layouts_[number]->first; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  // Counts other memory within the same limit. Error: out_of_memory, the limit would be exceeded.
  Status take(std::uint64_t bytes);
  void give_back(std::uint64_t bytes) noexcept { bytes_ -= bytes; }
  // Returns the number of calls of copy() so far.
  [[nodiscard]] std::uint64_t copy_calls() const noexcept { return copy_calls_; }
  // Makes all later calls fail, because copies of a step were not made.
  void lose(const Error& why);

  // The bytes of a layer in each page, by this rank's own layout.
  struct ByteRange {
    std::uint64_t offset = 0, size = 0;  // size 0: the rank has none of the layer
  };
  [[nodiscard]] ByteRange part_of(std::size_t layout, std::uint32_t layer) const noexcept;
  // Makes the copies of pages that rank 0 has made (`copies`) on this rank too. Errors: internal, the number of a page is too high or its
  // size is unknown; out_of_memory.
  Status copy(std::span<const PageCopy> copies) override;
  Status find(const StepPages& pages, PageAddresses& out) override;

 private:
  static constexpr PageId kMostPages = 1u << 26;
  static constexpr std::uint64_t kSlabBytes = std::uint64_t{4} << 20;

  // The pages that share one numbering. In pools: the pages that have equal bytes at rank 0. In a contiguous cache: the pages of one group.
  struct Name {
    std::uint32_t cache = 0;
    std::uint64_t first_bytes = 0;  // bytes of rank 0's page; in a contiguous cache the group
    std::uint64_t own_bytes = 0;    // bytes of this rank's page
    auto operator<=>(const Name&) const = default;
  };
  struct Numbered {
    std::uint64_t slab_pages = 1;
    std::vector<Buffer> slabs;
  };
  struct Layout {
    KvLayout first, own;
  };

  Result<std::byte*> page(const Name& name, PageId id);
  Status copy_all(std::span<const PageCopy> copies);

  std::shared_ptr<const ModelDivision> division_;
  std::uint32_t rank_;
  Memory& memory_;
  std::vector<std::unique_ptr<Layout>> layouts_;  // views refer to them
  std::map<Name, Numbered> pages_;
  std::uint64_t most_bytes_, bytes_ = 0, copy_calls_ = 0;
  Status lost_ = {};  // the error of a failed copy: the pages no longer have the contents that rank 0 expects, so all calls fail
};

}  // namespace tessera::detail
