#include "engine/ranks/remote_parts.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "core/guard.hpp"

namespace tessera::detail {

namespace {

// Returns the layer whose division among ranks also holds for `layer`: the first layer with the same keys and values.
std::uint32_t deciding(const KvCache& cache, std::size_t layer) noexcept {
  const KvLayout& layout = cache.layout();
  return static_cast<std::uint32_t>(layout.first_layer_at(layout.layers[layer]));
}

}  // namespace

// The place of a rank's heads among the blocks of all heads, [k | v][head], of a layer in a page.
struct RemoteParts::Place {
  std::uint64_t k_at = 0, k_bytes = 0;  // offset in the blocks of all heads, and size, both in bytes
  std::uint64_t v_at = 0, v_bytes = 0;

  [[nodiscard]] std::uint64_t size() const noexcept { return k_bytes + v_bytes; }
  // Copies the rank's bytes of a page, [k | v][head], to their place in the page of all heads.
  void put(const std::byte* from, std::byte* page) const noexcept {
    if (k_bytes != 0) std::memcpy(page + k_at, from, k_bytes);
    if (v_bytes != 0) std::memcpy(page + v_at, from + k_bytes, v_bytes);
  }
  void take(const std::byte* page, std::byte* to) const noexcept {
    if (k_bytes != 0) std::memcpy(to, page + k_at, k_bytes);
    if (v_bytes != 0) std::memcpy(to + k_bytes, page + v_at, v_bytes);
  }
};

RemoteParts::Place RemoteParts::place_of(const KvCache& cache, std::size_t layer, std::uint32_t rank) const {
  const KvLayerLayout& whole = whole_layout(cache).layer(layer);
  const std::uint64_t all = whole.shape.kv_heads, v_stride = whole.shape.values == kv::Values::in_keys ? 0 : whole.v_stride;
  const auto [first, size] = division_->heads_of(rank, deciding(cache, layer), all);
  return {.k_at = first * whole.k_stride, .k_bytes = size * whole.k_stride, .v_at = all * whole.k_stride + first * v_stride, .v_bytes = size * v_stride};
}

LayerPages RemoteParts::describe(const KvCache& cache, std::size_t layer, std::uint64_t first_page, std::uint64_t end_page) const {
  LayerPages part;
  describe_pages(cache, ranks_.pools(), part.pages);
  // During a generation the session may have reserved slots for the states of its next step. These slots are not pages of the sequence, so
  // they are removed from the description.
  SequencePages& one = part.pages.sequences.front();
  one.writes_states = false;
  one.slots = {};
  one.size = std::size_t{one.groups} * one.pages;
  part.pages.ids.resize(one.first + one.size);
  part.layer = deciding(cache, layer);
  part.first_page = first_page;
  part.end_page = end_page;
  return part;
}

Status RemoteParts::for_runs(const KvCache& cache, std::size_t layer, std::uint64_t first_page, std::span<std::byte* const> pages, const EachRun& each) {
  const KvLayerLayout& whole = whole_layout(cache).layer(layer);
  const std::size_t most = std::max<std::uint64_t>(1, kMessageBytes / std::max<std::uint64_t>(1, bytes_of_heads(whole, whole.shape.kv_heads)));
  for (std::size_t at = 0; at < pages.size(); at += most) {
    const auto run = pages.subspan(at, std::min(most, pages.size() - at));
    const Turn turn(queue_, {});
    LayerPages part = describe(cache, layer, first_page + at, first_page + at + run.size());
    TESSERA_TRY_STATUS(each(part, run));
  }
  return {};
}

Status RemoteParts::read_layer(const KvCache& cache, std::size_t layer, std::uint64_t first_page, std::span<std::byte* const> pages) {
  const KvLayerView own = cache.view().layer(layer);
  const std::uint64_t own_at = cache.layout().layer(layer).k_offset;
  std::vector<std::vector<std::byte>> replies;
  return for_runs(cache, layer, first_page, pages, [&](LayerPages& part, std::span<std::byte* const> run) -> Status {
    TESSERA_TRY_STATUS(ranks_.read(part, replies));
    for (std::uint32_t rank = 0; rank < division_->ranks(); ++rank) {
      const Place place = place_of(cache, layer, rank);
      if (rank != 0 && replies[rank].size() != run.size() * place.size()) {
        return make_error(ErrorCode::device_error, "rank {} gives {} bytes of layer {}, and has {}", rank, replies[rank].size(), layer, run.size() * place.size());
      }
      for (std::size_t i = 0; i < run.size() && place.size() != 0; ++i) {
        place.put(rank == 0 ? own.pages[part.first_page + i] + own_at : replies[rank].data() + i * place.size(), run[i]);
      }
    }
    return {};
  });
}

Status RemoteParts::write_layer(const KvCache& cache, std::size_t layer, std::uint64_t first_page, std::span<std::byte* const> pages) {
  const KvLayerView own = cache.view().layer(layer);
  const std::uint64_t own_at = cache.layout().layer(layer).k_offset;
  std::vector<std::vector<std::byte>> bytes(division_->ranks());
  return for_runs(cache, layer, first_page, pages, [&](LayerPages& part, std::span<std::byte* const> run) -> Status {
    for (std::uint32_t rank = 0; rank < division_->ranks(); ++rank) {
      const Place place = place_of(cache, layer, rank);
      if (rank != 0) bytes[rank].resize(run.size() * place.size());
      for (std::size_t i = 0; i < run.size() && place.size() != 0; ++i) {
        place.take(run[i], rank == 0 ? own.pages[part.first_page + i] + own_at : bytes[rank].data() + i * place.size());
      }
    }
    return ranks_.write(part, bytes);
  });
}

Status RemoteParts::read_state(const KvCache& cache, std::size_t layer, std::uint64_t page, std::uint64_t at, std::span<std::byte> out) {
  if (!division_->lacks(0, deciding(cache, layer))) {
    const KvLayout& layout = cache.layout();
    std::memcpy(out.data(), cache.view().pages[layout.layers[layer].group][page] + layout.layer(layer).state_offset + at, out.size());
    return {};
  }
  const Turn turn(queue_, {});
  LayerPages part = describe(cache, layer, page, page + 1);
  part.at = at;
  part.bytes = out.size();
  std::vector<std::vector<std::byte>> replies;
  TESSERA_TRY_STATUS(ranks_.read(part, replies));
  for (std::uint32_t rank = 1; rank < replies.size(); ++rank) {
    if (replies[rank].size() != out.size()) continue;
    std::ranges::copy(replies[rank], out.begin());
    return {};
  }
  return make_error(ErrorCode::device_error, "no rank gives the state of layer {}", layer);
}

Status RemoteParts::write_state(const KvCache& cache, std::size_t layer, std::uint64_t page, std::uint64_t at, std::span<const std::byte> bytes) {
  if (!division_->lacks(0, deciding(cache, layer))) {
    const KvLayout& layout = cache.layout();
    std::memcpy(cache.view().pages[layout.layers[layer].group][page] + layout.layer(layer).state_offset + at, bytes.data(), bytes.size());
    return {};
  }
  const Turn turn(queue_, {});
  LayerPages part = describe(cache, layer, page, page + 1);
  part.at = at;
  part.bytes = bytes.size();
  std::vector<std::vector<std::byte>> all(division_->ranks());
  for (std::uint32_t rank = 1; rank < all.size(); ++rank) {
    if (!division_->lacks(rank, deciding(cache, layer))) all[rank].assign(bytes.begin(), bytes.end());
  }
  return ranks_.write(part, all);
}

}  // namespace tessera::detail
