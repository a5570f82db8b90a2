#include <tessera/extend/kv/layer_on_host.hpp>

#include <algorithm>
#include <utility>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "kv/other_parts.hpp"

namespace tessera::kv {

using tessera::detail::guard;

namespace {

// Returns the layout of pages that have only the given layer of `all`. With it, one layer can be copied to the host: the blocks of a layer
// are contiguous in every page, so copying one range of bytes makes a page of this layout.
KvLayout layout_of(const KvLayout& all, const KvLayerLayout& layer) {
  KvLayerLayout alone = layer;
  alone.k_offset = 0;
  alone.v_offset = layer.v_offset - layer.k_offset;
  KvGroup group;
  group.layers.push_back(alone);
  group.page_bytes = layer.shape.kv_heads * (layer.k_stride + (layer.shape.values == Values::in_keys ? 0 : layer.v_stride));
  KvLayout layout{.dtype = layer.dtype, .page_tokens = all.page_tokens, .groups = {}, .layers = {KvPlace{}}};
  layout.groups.push_back(std::move(group));
  return layout;
}

}  // namespace

LayerOnHost& LayerOnHost::operator=(LayerOnHost&& other) noexcept {
  if (this == &other) return *this;
  cache_ = std::exchange(other.cache_, nullptr);
  layer_ = other.layer_;
  layout_ = std::exchange(other.layout_, {});
  buffer_ = std::move(other.buffer_);
  pages_ = std::exchange(other.pages_, {});
  table_ = std::exchange(other.table_, nullptr);
  first_page_ = other.first_page_;
  return *this;
}

Result<LayerOnHost> LayerOnHost::make(const KvCache& cache, std::size_t layer, std::uint64_t first, std::uint64_t last,
                                      Memory& host) {
  if (cache.layout().layers.empty()) return tessera::detail::empty_handle("KvCache");
  if (layer >= cache.layout().layers.size()) {
    return tessera::detail::make_error(ErrorCode::invalid_argument, "layer {} of a KV cache of {}", layer, cache.layout().layers.size());
  }
  LayerOnHost made(cache, layer);
  if (cache.memory().addressable() && tessera::detail::elsewhere_of(cache).parts == nullptr) return made;
  const KvLayout& whole = tessera::detail::whole_layout(cache);
  made.layout_ = layout_of(whole, whole.layer(layer));
  const std::uint64_t bytes = made.layout_.page_bytes();
  made.first_page_ = first / made.layout_.page_tokens;
  made.pages_.resize(std::max<std::uint64_t>(made.layout_.pages(last), made.first_page_));
  const std::uint64_t n = made.pages_.size() - made.first_page_;
  TESSERA_TRY(made.buffer_, Buffer::allocate(host, n * bytes, "a layer of a KV cache"));
  for (std::uint64_t i = 0; i < n; ++i) made.pages_[made.first_page_ + i] = made.buffer_.data() + i * bytes;
  made.table_ = made.pages_.data();
  return made;
}

Result<LayerOnHost> LayerOnHost::blank(const KvCache& cache, std::size_t layer, std::uint64_t first, std::uint64_t last,
                                       Memory& host) noexcept {
  return guard([&] { return make(cache, layer, first, last, host); });
}

Result<LayerOnHost> LayerOnHost::read(const KvCache& cache, std::size_t layer, std::uint64_t first, std::uint64_t last,
                                      Memory& host) noexcept {
  return guard([&]() -> Result<LayerOnHost> {
    TESSERA_TRY(LayerOnHost made, make(cache, layer, first, last, host));
    if (made.in_place()) return made;
    if (const auto& parts = tessera::detail::elsewhere_of(cache).parts; parts != nullptr) {
      TESSERA_TRY_STATUS(parts->read_layer(cache, layer, made.first_page_, std::span(made.pages_).subspan(made.first_page_)));
      return made;
    }
    std::vector<Transfer> parts;
    parts.reserve(made.pages_.size() - made.first_page_);
    const std::uint64_t offset = cache.layout().layer(layer).k_offset, bytes = made.layout_.page_bytes();
    const KvLayerView from = cache.view().layer(layer);
    for (std::size_t page = made.first_page_; page < made.pages_.size(); ++page) {
      parts.push_back({.to = made.pages_[page], .from = from.pages[page] + offset, .bytes = bytes});
    }
    if (!cache.memory().read(parts)) return tessera::detail::device_error("reading a KV cache");
    return made;
  });
}

KvView LayerOnHost::view() const noexcept {
  if (cache_ == nullptr) return {.layout = &layout_};
  return in_place() ? cache_->view() : KvView{.layout = &layout_, .pages = &table_};
}

Status LayerOnHost::write_back() const noexcept {
  return guard([&]() -> Status {
    if (cache_ == nullptr) return tessera::detail::empty_handle("LayerOnHost");
    if (in_place()) return {};
    if (const auto& others = tessera::detail::elsewhere_of(*cache_).parts; others != nullptr) {
      return others->write_layer(*cache_, layer_, first_page_, std::span(pages_).subspan(first_page_));
    }
    std::vector<Transfer> parts;
    parts.reserve(pages_.size() - first_page_);
    const std::uint64_t offset = cache_->layout().layer(layer_).k_offset, bytes = layout_.page_bytes();
    const KvLayerView to = cache_->view().layer(layer_);
    for (std::size_t page = first_page_; page < pages_.size(); ++page) {
      parts.push_back({.to = to.pages[page] + offset, .from = pages_[page], .bytes = bytes});
    }
    if (!cache_->memory().write(parts)) return tessera::detail::device_error("writing a KV cache");
    return {};
  });
}

}  // namespace tessera::kv
