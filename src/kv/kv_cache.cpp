#include <tessera/kv/kv_cache.hpp>

#include <algorithm>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "core/hasher.hpp"
#include "kv/kv_cache_state.hpp"

namespace tessera {

using detail::empty_value;
using detail::guard;

KvCache::KvCache(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
KvCache::KvCache() noexcept = default;
KvCache::KvCache(KvCache&&) noexcept = default;
KvCache& KvCache::operator=(KvCache&&) noexcept = default;
KvCache::~KvCache() = default;

namespace {

Status check(const KvLayout& layout, const KvCacheOptions& options) {
  if (options.capacity == 0 || layout.page_tokens == 0 || (layout.page_bytes() == 0 && !layout.has_state())) {
    return make_error(ErrorCode::invalid_argument, "a KV cache needs a capacity and a layout above zero");
  }
  return {};
}

}  // namespace

void detail::set_elsewhere(KvCache& cache, Elsewhere elsewhere) noexcept { *elsewhere_pointer(cache) = std::move(elsewhere); }

const detail::Elsewhere& detail::elsewhere_of(const KvCache& cache) noexcept {
  const Elsewhere* elsewhere = elsewhere_pointer(cache);
  return elsewhere != nullptr ? *elsewhere : empty_value<Elsewhere>();
}

Result<KvCache> KvCache::contiguous(KvLayout layout, const KvCacheOptions& options, Memory& memory) noexcept {
  return guard([&]() -> Result<KvCache> {
    TESSERA_TRY_STATUS(check(layout, options));
    TESSERA_TRY(auto storage, detail::make_contiguous_storage(std::move(layout), options.capacity, memory));
    return KvCache(std::make_unique<State>(std::move(storage), options));
  });
}

Result<KvCache> KvCache::paged(KvLayout layout, const KvCacheOptions& options, const KvPools& pools) noexcept {
  return guard([&]() -> Result<KvCache> {
    if (pools.state() == nullptr) return detail::empty_handle("KvPools");
    TESSERA_TRY_STATUS(check(layout, options));
    TESSERA_TRY(auto storage, detail::make_paged_storage(std::move(layout), pools));
    return KvCache(std::make_unique<State>(std::move(storage), options));
  });
}

Hash128 content_hash(std::span<const float> embedding) noexcept {
  detail::Hasher128 hasher;
  const std::uint64_t width = embedding.size();
  hasher.add(std::as_bytes(std::span(&width, 1)));
  hasher.add(std::as_bytes(embedding));
  return hasher.digest();
}

KvKind KvCache::kind() const noexcept { return state_ == nullptr ? KvKind::contiguous : state_->storage->kind(); }
std::uint64_t KvCache::length() const noexcept { return state_ == nullptr ? 0 : state_->length; }
std::uint64_t KvCache::first() const noexcept { return state_ == nullptr ? 0 : std::ranges::max(state_->first); }
std::uint64_t KvCache::first_of_group(std::size_t group) const noexcept {
  return state_ == nullptr || group >= state_->first.size() ? 0 : state_->first[group];
}
std::uint64_t KvCache::first_of_layer(std::size_t layer) const noexcept {
  return layer >= layout().layers.size() ? 0 : first_of_group(layout().layers[layer].group);
}
std::uint64_t KvCache::capacity() const noexcept { return state_ == nullptr ? 0 : state_->options.capacity; }
std::uint32_t KvCache::checkpoints() const noexcept { return state_ == nullptr ? 0 : state_->options.checkpoints; }
const KvLayout& KvCache::layout() const noexcept { return state_ == nullptr ? empty_value<KvLayout>() : state_->layout(); }
std::uint64_t KvCache::bytes() const noexcept { return state_ == nullptr ? 0 : state_->storage->bytes(); }
bool KvCache::edited() const noexcept { return state_ != nullptr && state_->edited; }
Memory& KvCache::memory() const noexcept { return state_ == nullptr ? system_memory() : state_->storage->memory(); }
KvView KvCache::view() const noexcept {
  if (state_ == nullptr) return {.layout = &empty_value<KvLayout>()};
  return {.layout = &state_->layout(), .pages = state_->storage->tables(), .targets = state_->storage->targets()};
}

Status KvCache::reserve(std::uint64_t tokens, std::uint64_t exact_from) noexcept {
  if (state_ == nullptr) return detail::empty_handle("KvCache");
  State& s = *state_;
  if (tokens > s.options.capacity) {
    return make_error(ErrorCode::cache_full,
                      "the KV cache holds {} of at most {} tokens and has no room for {} more; truncate it, or make the "
                      "session with a larger context",
                      s.length, s.options.capacity, tokens - s.length);
  }
  if (tokens <= s.length) return {};
  TESSERA_TRY_STATUS(resume());
  const std::uint64_t pages = s.storage->size();
  TESSERA_TRY_STATUS(guard([&] { return s.storage->make_writable(s.length / s.page_tokens(), s.layout().pages(tokens)); }));
  if (!s.has_state) return {};
  Status status = guard([&] {
    return s.storage->reserve_states({.length = s.length,
                                      .reserved = tokens,
                                      .exact_from = std::clamp(exact_from, s.length, tokens),
                                      .checkpoints = s.options.checkpoints,
                                      .offers = !s.options.prefix_identity.empty() && s.can_publish});
  });
  if (!status) s.storage->shrink(pages);
  return status;
}

Status KvCache::reserve_branch(std::uint64_t first, std::uint64_t tokens) noexcept {
  if (state_ == nullptr) return detail::empty_handle("KvCache");
  State& s = *state_;
  if (s.has_state || first < s.length || tokens > s.options.capacity || first > s.storage->size() * s.page_tokens()) {
    return make_error(ErrorCode::unsupported, "a branch at position {} of {} tokens", first, s.length);
  }
  s.storage->shrink(s.layout().pages(first));
  return guard([&] { return s.storage->make_writable(first / s.page_tokens(), s.layout().pages(tokens)); });
}

void KvCache::commit(std::uint64_t tokens, const KvInputs& sequence, Reserved beyond) noexcept {
  if (state_ == nullptr) return;
  State& s = *state_;
  if (s.storage->suspended()) return;  // a suspended cache has no reserved pages, so there is nothing to commit
  // The caller may pass any number, so `tokens` is limited to the tokens for which there are pages.
  s.length = s.storage->commit_states(std::min({tokens, s.options.capacity, s.storage->size() * s.page_tokens()}), beyond);
  if (beyond == Reserved::give_back) s.storage->shrink(s.layout().pages(s.length));
  if (!s.options.prefix_identity.empty() && s.can_publish) s.publish(sequence);
  s.drop_behind_windows();
  s.drop_old_states();
}

void KvCache::truncate(std::uint64_t tokens) noexcept {
  if (state_ == nullptr) return;
  State& s = *state_;
  if (tokens >= s.length) return;
  // Gives back the slots of a step that was not committed.
  if (!s.storage->suspended()) (void)s.storage->commit_states(s.length, Reserved::give_back);
  s.length = s.last_beginning(tokens);
  s.limit_published(s.length / s.page_tokens());
  s.storage->shrink(s.layout().pages(s.length));
  if (s.length == 0) s.reset();
}

std::uint64_t KvCache::adopt(const KvInputs& inputs) noexcept {
  if (state_ == nullptr) return 0;
  State& s = *state_;
  const std::uint64_t size = s.page_tokens();
  if (s.options.prefix_identity.empty() || s.edited || s.storage->suspended() || s.length != s.published * size) return 0;
  const std::uint64_t room = s.options.capacity - s.length;
  const std::uint64_t pages = s.storage->adopt({.identity = s.options.prefix_identity,
                                                .inputs = inputs.first(std::min<std::uint64_t>(inputs.size(), room)),
                                                .windows = s.windows});
  if (pages > 0 && s.length == 0) {
    for (std::size_t group = 0; group < s.first.size(); ++group) {
      s.first[group] = s.layout().groups[group].is_recurrent() ? 0 : s.storage->front(group) * size;
    }
  }
  s.published += pages;
  s.length += pages * size;
  s.can_publish = s.can_publish || pages > 0;
  return pages * size;
}

std::vector<std::uint64_t> KvCache::states() const {
  std::vector<std::uint64_t> states;
  if (state_ == nullptr) return states;
  const State& s = *state_;
  if (!s.has_state || s.length == 0) return states;
  const std::uint64_t size = s.page_tokens(), pages = s.layout().pages(s.length);
  for (std::uint64_t page = s.first_state; page < pages; ++page) {
    if (s.storage->has_state(page)) states.push_back(std::min((page + 1) * size, s.length));
  }
  return states;
}

Status KvCache::suspend() noexcept {
  if (state_ == nullptr) return detail::empty_handle("KvCache");
  return guard([&] { return state_->storage->suspend(); });
}

Status KvCache::prefetch() noexcept {
  if (state_ == nullptr) return detail::empty_handle("KvCache");
  return guard([&] { return state_->storage->prefetch(); });
}

Status KvCache::resume() noexcept {
  if (state_ == nullptr) return detail::empty_handle("KvCache");
  State& s = *state_;
  if (!s.storage->suspended()) return {};
  TESSERA_TRY_STATUS(guard([&] { return s.storage->resume(); }));
  // The pages that resume() has read are new pages, which the prefix index does not know. The next commit offers these pages.
  s.published = 0;
  s.can_publish = !s.edited && s.holds_whole_pages();
  return {};
}

bool KvCache::suspended() const noexcept { return state_ != nullptr && state_->storage->suspended(); }

Status KvCache::install(const KvExtent& extent) noexcept {
  if (state_ == nullptr) return detail::empty_handle("KvCache");
  TESSERA_TRY_STATUS(resume());
  State& s = *state_;
  const std::uint64_t length = extent.length;
  return guard([&]() -> Status {
    std::vector<std::uint64_t> first = extent.first;
    if (first.empty()) first.resize(s.first.size(), 0);
    if (s.length > 0 || first.size() != s.first.size()) {
      return make_error(ErrorCode::invalid_argument, "a KV cache of {} tokens and {} groups cannot take {} groups of another",
                        s.length, s.first.size(), first.size());
    }
    for (std::size_t group = 0; group < first.size(); ++group) {
      if (first[group] <= length && first[group] <= s.first_visible(group, length)) continue;
      return make_error(ErrorCode::invalid_argument,
                        "positions {} to {} cannot be put into a KV cache that has a window of {}", first[group], length,
                        s.windows[group]);
    }
    // A state can be kept only at the end of a page or of the sequence. If the saved cache had another page size, some of its states lie
    // at other positions. These states are dropped below.
    std::vector<std::uint64_t> states = extent.states;
    const bool fits = s.has_state ? length == 0 || (!states.empty() && states.back() == length) : states.empty();
    if (!fits || !std::ranges::is_sorted(states) || (!states.empty() && states.front() == 0)) {
      return make_error(ErrorCode::invalid_argument, "a KV cache {} recurrent layers cannot take {} tokens with {} states",
                        s.has_state ? "with" : "without", length, states.size());
    }
    std::erase_if(states, [&](std::uint64_t tokens) { return tokens % s.page_tokens() != 0 && tokens != length; });
    states.erase(std::unique(states.begin(), states.end()), states.end());  // not std::ranges::unique, which clang 14 does not compile
    if (length > s.options.capacity) return reserve(length);  // reserve() returns the error that says so
    s.storage->shrink(0);
    std::vector<std::uint64_t> front = first;  // [group]: how many pages lie before the first position that the cache holds
    for (std::uint64_t& n : front) n /= s.page_tokens();
    Status status = guard([&]() -> Status {
      s.storage->skip_front(front);
      TESSERA_TRY_STATUS(s.storage->make_writable(std::ranges::min(front), s.layout().pages(length)));
      return s.storage->install_states(states);
    });
    if (!status) {
      s.storage->shrink(0);
      return status;
    }
    s.length = length;
    s.first = std::move(first);
    s.edited = extent.edited;
    s.can_publish = !extent.edited && s.holds_whole_pages();
    return {};
  });
}

}  // namespace tessera
