#include "ranks/processes/own_pages.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "core/guard.hpp"

namespace tessera::detail {

Status OwnPages::add_layout(KvLayout first) {
  TESSERA_TRY(KvLayout own, division_->own_layout_of(rank_, first));
  layouts_.push_back(std::make_unique<Layout>(Layout{std::move(first), std::move(own)}));
  return {};
}

OwnPages::ByteRange OwnPages::part_of(std::size_t number, std::uint32_t layer) const noexcept {
  const KvLayerLayout& own = layouts_[number]->own.layer(layer);
  if (division_->lacks(rank_, layer)) return {};
  if (own.shape.state_bytes != 0) return {.offset = own.state_offset, .size = own.shape.state_bytes};
  return {.offset = own.k_offset, .size = bytes_of_heads(own, own.shape.kv_heads)};
}

Status OwnPages::take(std::uint64_t bytes) {
  if (bytes > most_bytes_ - std::min(most_bytes_, bytes_)) {
    return make_error(ErrorCode::out_of_memory, "{} bytes beside {}; the rank's budget leaves {}", bytes, bytes_, most_bytes_);
  }
  bytes_ += bytes;
  return {};
}

Result<std::byte*> OwnPages::page(const Name& name, PageId id) {
  if (id >= kMostPages) return make_error(ErrorCode::internal, "a KV page of the number {}", id);
  Numbered& pages = pages_[name];
  if (pages.slabs.empty()) pages.slab_pages = std::max<std::uint64_t>(1, kSlabBytes / name.own_bytes);
  const std::uint64_t slab = id / pages.slab_pages;
  if (slab >= pages.slabs.size()) pages.slabs.resize(slab + 1);
  if (pages.slabs[slab].size() == 0) {
    const std::uint64_t bytes = pages.slab_pages * name.own_bytes;
    TESSERA_TRY_STATUS(take(bytes));
    auto slab_memory = Buffer::allocate(memory_, bytes, "KV pages");
    if (!slab_memory) give_back(bytes);
    TESSERA_TRY(pages.slabs[slab], std::move(slab_memory));
  }
  return pages.slabs[slab].data() + id % pages.slab_pages * name.own_bytes;
}

Status OwnPages::copy(std::span<const PageCopy> copies) {
  ++copy_calls_;
  if (!lost_) return lost_;
  const Status done = guard([&] { return copy_all(copies); });
  if (!done) lose(done.error());
  return lost_;
}

void OwnPages::lose(const Error& why) {
  lost_ = make_error(ErrorCode::device_error, "copies of KV pages were not made ({}): all ranks must be started again", why.message());
}

Status OwnPages::copy_all(std::span<const PageCopy> copies) {
  for (const PageCopy& one : copies) {
    // `one` names a page by its number and by the page's bytes at rank 0, but not by its group. At rank 0, several groups can have pages of
    // equal bytes, and so share one numbering. If their pages have unequal bytes on this rank, they are in several elements of pages_. Then
    // the page is copied in each element that has its number. Only one group really uses the page; nobody reads the copies in the other
    // elements.
    for (auto& [name, pages] : pages_) {
      if (name.cache != SequencePages::kPaged || name.first_bytes != one.page_bytes) continue;
      const std::uint64_t slab = one.from / pages.slab_pages;
      if (slab >= pages.slabs.size() || pages.slabs[slab].size() == 0) continue;  // not a page of this group
      TESSERA_TRY(std::byte* from, page(name, one.from));
      TESSERA_TRY(std::byte* to, page(name, one.to));
      std::memcpy(to, from, name.own_bytes);
    }
  }
  return {};
}

Status OwnPages::find(const StepPages& pages, PageAddresses& out) {
  out.begin(pages);
  for (const SequencePages& sequence : pages.sequences) {
    if (sequence.layout >= layouts_.size()) return make_error(ErrorCode::internal, "KV layout {} is unknown", sequence.layout);
    const Layout& layout = *layouts_[sequence.layout];
    const bool is_paged = sequence.cache == SequencePages::kPaged;
    Status failed = {};
    const bool all = out.add(pages, layout.own, [&](std::size_t group, PageId id) -> std::byte* {
      const std::uint64_t first = is_paged ? layout.first.groups[group].page_bytes : group;
      const auto at = guard([&] { return page({sequence.cache, first, layout.own.groups[group].page_bytes}, id); });
      if (at) return *at;
      failed = at.error();
      return nullptr;
    });
    if (!failed) return failed;
    if (!all) return make_error(ErrorCode::internal, "a sequence has a KV page that is not here");
  }
  return {};
}

}  // namespace tessera::detail
