#include <tessera/kv/kv_cache.hpp>

#include <algorithm>
#include <cstring>

#include "support/checked.hpp"
#include "support/error.hpp"

namespace tessera {

using detail::checked_add;
using detail::checked_align;
using detail::checked_multiply;
using detail::guard;
using detail::make_error;

namespace {

constexpr std::uint64_t kBlockAlignment = 64;

std::optional<std::uint64_t> block_bytes(std::uint64_t head_dim, std::uint64_t page_tokens, std::uint64_t element_bytes) {
  const auto elements = checked_multiply(head_dim, page_tokens);
  const auto bytes = elements ? checked_multiply(*elements, element_bytes) : std::nullopt;
  return bytes ? checked_align(*bytes, kBlockAlignment) : std::nullopt;
}

}  // namespace

Result<KvLayout> make_kv_layout(std::span<const KvLayerShape> layers, DType dtype, std::uint32_t page_tokens) noexcept {
  return guard([&]() -> Result<KvLayout> {
    if (dtype != DType::f32 && dtype != DType::f16) {
      return make_error(ErrorCode::unsupported, "a KV cache of type {} is not available; choose f32 or f16",
                        to_string(dtype));
    }
    if (page_tokens == 0 || page_tokens % 32 != 0) {
      return make_error(ErrorCode::invalid_argument, "a KV page holds a multiple of 32 tokens, not {}", page_tokens);
    }
    KvLayout layout{.dtype = dtype, .page_tokens = page_tokens, .page_bytes = 0, .layers = {}};
    layout.layers.reserve(layers.size());
    const std::uint64_t element_bytes = dtype == DType::f32 ? 4 : 2;
    for (const KvLayerShape& shape : layers) {
      const auto k = block_bytes(shape.key_dim, page_tokens, element_bytes);
      const auto v = block_bytes(shape.value_dim, page_tokens, element_bytes);
      const auto both = k && v ? checked_add(*k, *v) : std::nullopt;
      const auto heads = both ? checked_multiply(*both, shape.kv_heads) : std::nullopt;
      const auto end = heads ? checked_add(layout.page_bytes, *heads) : std::nullopt;
      if (!end) return make_error(ErrorCode::invalid_argument, "a KV page of this model is too large to address");
      layout.layers.push_back({.shape = shape,
                               .k_offset = layout.page_bytes,
                               .v_offset = layout.page_bytes + shape.kv_heads * *k,
                               .k_stride = *k,
                               .v_stride = *v});
      layout.page_bytes = *end;
    }
    return layout;
  });
}

struct KvCache::State {
  State(Memory& from, KvLayout of) noexcept : memory(&from), layout(std::move(of)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (base == nullptr) return;
    if (committed > 0) memory->decommit(base, 0, committed);
    memory->unreserve(base, reserved);
  }

  // Committed memory covers [0, committed) of the address space: whole granules, so a little past the last page.
  [[nodiscard]] std::uint64_t granules(std::uint64_t tokens) const noexcept {
    const std::uint64_t n_pages = (tokens + layout.page_tokens - 1) / layout.page_tokens;
    const std::uint64_t unit = memory->granularity();
    return std::min((n_pages * layout.page_bytes + unit - 1) / unit * unit, reserved);
  }

  // Addresses of the pages below `tokens`: as many as are used, since a capacity may be a file's empty claim.
  void add_pages(std::uint64_t tokens) {
    const std::uint64_t n_pages = (tokens + layout.page_tokens - 1) / layout.page_tokens;
    while (pages.size() < n_pages) pages.push_back(base + pages.size() * layout.page_bytes);
  }

  void shrink(std::uint64_t tokens) noexcept {
    const std::uint64_t keep = granules(tokens);
    if (keep < committed) memory->decommit(base, keep, committed - keep);
    committed = std::min(committed, keep);
  }

  Memory* memory;
  KvLayout layout;
  std::byte* base = nullptr;
  std::uint64_t reserved = 0;   // bytes of address space
  std::uint64_t committed = 0;  // bytes
  std::uint64_t capacity = 0;   // tokens
  std::uint64_t length = 0;     // tokens
  std::vector<std::byte*> pages;
};

KvCache::KvCache(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
KvCache::KvCache(KvCache&&) noexcept = default;
KvCache& KvCache::operator=(KvCache&&) noexcept = default;
KvCache::~KvCache() = default;

Result<KvCache> KvCache::create(KvLayout layout, std::uint64_t capacity, Memory& memory) noexcept {
  return guard([&]() -> Result<KvCache> {
    if (capacity == 0 || layout.page_tokens == 0 || layout.page_bytes == 0 || memory.granularity() == 0) {
      return make_error(ErrorCode::invalid_argument, "a KV cache needs a capacity, a layout and a granularity above zero");
    }
    auto state = std::make_unique<State>(memory, std::move(layout));
    const std::uint64_t n_pages = (capacity - 1) / state->layout.page_tokens + 1;
    const auto bytes = checked_multiply(n_pages, state->layout.page_bytes);
    const auto reserved = bytes ? checked_align(*bytes, memory.granularity()) : std::nullopt;
    if (!reserved) {
      return make_error(ErrorCode::invalid_argument, "a KV cache of {} tokens is too large to address", capacity);
    }
    state->base = static_cast<std::byte*>(memory.reserve(*reserved));
    if (state->base == nullptr) {
      return make_error(ErrorCode::out_of_memory, "no room for a KV cache of {} tokens ({} bytes); use a smaller context",
                        capacity, *reserved);
    }
    state->reserved = *reserved;
    state->capacity = capacity;
    return KvCache(std::move(state));
  });
}

std::uint64_t KvCache::length() const noexcept { return state_->length; }
std::uint64_t KvCache::capacity() const noexcept { return state_->capacity; }
const KvLayout& KvCache::layout() const noexcept { return state_->layout; }
std::uint64_t KvCache::bytes() const noexcept { return state_->committed; }
KvView KvCache::view() const noexcept { return {.layout = &state_->layout, .pages = state_->pages.data()}; }

Status KvCache::reserve(std::uint64_t tokens) noexcept {
  State& s = *state_;
  if (tokens > s.capacity) {
    return make_error(ErrorCode::cache_full,
                      "the KV cache holds {} of at most {} tokens and has no room for {} more; truncate it, or make the "
                      "session with a larger context",
                      s.length, s.capacity, tokens - s.length);
  }
  const std::uint64_t need = s.granules(tokens);
  TESSERA_TRY_STATUS(guard([&]() -> Status {
    s.add_pages(tokens);
    return {};
  }));
  if (need <= s.committed) return {};
  if (!s.memory->commit(s.base, s.committed, need - s.committed)) {
    return make_error(ErrorCode::out_of_memory, "no memory for {} more bytes of KV cache ({} are in use)",
                      need - s.committed, s.committed);
  }
  s.committed = need;
  return {};
}

void KvCache::commit(std::uint64_t tokens) noexcept {
  State& s = *state_;
  // Never more than what there is memory for, whatever a caller says.
  const std::uint64_t backed = std::min<std::uint64_t>(s.committed / s.layout.page_bytes, s.pages.size()) * s.layout.page_tokens;
  s.length = std::min({tokens, s.capacity, backed});
  s.shrink(s.length);
}

void KvCache::truncate(std::uint64_t tokens) noexcept {
  if (tokens < state_->length) commit(tokens);
}

Result<KvCache> KvCache::clone() const noexcept {
  return guard([&]() -> Result<KvCache> {
    TESSERA_TRY(KvCache copy, create(state_->layout, state_->capacity, *state_->memory));
    TESSERA_TRY_STATUS(copy.reserve(state_->length));
    copy.commit(state_->length);
    if (state_->length > 0) std::memcpy(copy.state_->base, state_->base, copy.state_->committed);
    return copy;
  });
}

}  // namespace tessera
