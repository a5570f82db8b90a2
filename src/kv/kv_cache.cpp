#include <tessera/kv/kv_cache.hpp>

#include <algorithm>
#include <array>
#include <cstring>

#include <tessera/kv/layer_on_host.hpp>

#include "kv/kv_storage.hpp"
#include "support/error.hpp"

namespace tessera {

using detail::guard;
using detail::KvStorage;
using detail::make_error;

struct KvCache::State {
  State(std::unique_ptr<KvStorage> from, KvCacheOptions how)
      : options(std::move(how)),
        storage(std::move(from)),
        windows(storage->groups(), 0),
        first(storage->groups(), 0),
        has_state(storage->layout().has_state()) {
    if (options.passed == PassedPages::keep) return;
    for (std::size_t group = 0; group < windows.size(); ++group) windows[group] = layout().groups[group].window;
  }

  [[nodiscard]] const KvLayout& layout() const noexcept { return storage->layout(); }
  [[nodiscard]] std::uint64_t page_tokens() const noexcept { return layout().page_tokens; }

  // Offers the full pages that have not been offered yet.
  void publish(std::span<const Token> sequence) noexcept {
    const std::uint64_t size = page_tokens();
    const std::uint64_t full = std::min<std::uint64_t>(length, sequence.size()) / size;
    while (published < full) {
      const auto tokens = sequence.subspan(published * size, size);
      if (std::ranges::any_of(tokens, [](Token token) { return token < 0; })) break;
      if (!storage->publish(options.prefix_identity, published, tokens)) break;
      ++published;
    }
    if (published < full) can_publish = false;  // what follows would have no parent
  }
  void limit_published(std::uint64_t pages) noexcept {
    if (pages >= published) return;
    published = pages;
    storage->limit_published(pages);
  }

  // The first position that the row at `position` and all later ones see in a group.
  [[nodiscard]] std::uint64_t first_visible(std::size_t group, std::uint64_t position) const noexcept {
    const std::uint64_t window = windows[group];
    return window != 0 && position >= window ? position - window + 1 : 0;
  }
  // Whether every group holds what the row at `position` and all later ones see.
  [[nodiscard]] bool can_go_on_from(std::uint64_t position) const noexcept {
    for (std::size_t group = 0; group < first.size(); ++group) {
      if (first_visible(group, position) < first[group]) return false;
    }
    return true;
  }

  // Whether every page that is held holds all its tokens. Of a cache that was filled from one with smaller pages, a
  // group's first page may lack its beginning: nobody else may have it.
  [[nodiscard]] bool holds_whole_pages() const noexcept {
    return std::ranges::all_of(first, [&](std::uint64_t position) { return position % page_tokens() == 0; });
  }

  // One page more than the window needs is kept, so that a short roll-back finds what it needs.
  void drop_behind_windows() noexcept {
    if (edited) return;
    for (std::size_t group = 0; group < first.size(); ++group) {
      const std::uint64_t pages = first_visible(group, length) / page_tokens();
      if (pages < 2) continue;
      storage->drop_front(group, pages - 1);
      first[group] = std::max(first[group], (pages - 1) * page_tokens());
    }
  }

  // All checkpoints but the newest; the live state stays.
  void drop_old_states() noexcept {
    const std::uint64_t full = length / page_tokens();
    if (!has_state || full <= options.checkpoints) return;
    const std::uint64_t first_kept = std::min(full - options.checkpoints, (length - 1) / page_tokens());
    storage->drop_states(first_state, first_kept);
    first_state = std::max(first_state, first_kept);
  }

  // The longest beginning of the sequence, of at most so many tokens, that it can go on from.
  [[nodiscard]] std::uint64_t last_beginning(std::uint64_t tokens) const noexcept {
    if (!has_state) return can_go_on_from(tokens) ? tokens : 0;
    const std::uint64_t size = page_tokens();
    std::uint64_t page = tokens / size;
    while (page > 0 && !(storage->has_state(page - 1) && can_go_on_from(page * size))) --page;
    return page * size;
  }

  // As a new cache is.
  void reset() noexcept {
    length = 0;
    first_state = 0;
    limit_published(0);
    storage->shrink(0);
    std::ranges::fill(first, 0);
    can_publish = true;
    edited = false;
  }

  KvCacheOptions options;  // before the storage: it may own its Memory
  std::unique_ptr<KvStorage> storage;
  std::vector<std::uint64_t> windows;  // [group]: what gives pages back; 0: nothing does
  std::vector<std::uint64_t> first;    // [group]: the first position that is held; 0 of recurrent layers
  bool has_state;                      // layers are recurrent
  std::uint64_t first_state = 0;       // pages before it have no checkpoint
  std::uint64_t length = 0;            // tokens
  std::uint64_t published = 0;         // pages from the beginning that the index knows, or knew
  bool can_publish = true;
  bool edited = false;
};

KvCache::KvCache(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
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

Status check_present(const KvCache& cache) {
  if (!cache.suspended()) return {};
  return detail::suspended_error();
}

// Whole pages, of one layout, into `to`, which has been installed; of two memories one is addressable at least.
Status copy_pages(const KvCache& from, const KvCache& to) {
  const KvLayout& layout = from.layout();
  std::vector<Transfer> parts;
  // Not the pages that are only reserved: `to` has none for them.
  const std::size_t last = layout.pages(from.length());
  parts.reserve(last * layout.groups.size());
  for (std::size_t group = 0; group < layout.groups.size(); ++group) {
    for (std::size_t page = from.first_of_group(group) / layout.page_tokens; page < last; ++page) {
      if (from.view().pages[group][page] == nullptr) continue;  // no checkpoint
      parts.push_back({.to = to.view().pages[group][page],
                       .from = from.view().pages[group][page],
                       .bytes = layout.groups[group].page_bytes});
    }
  }
  Memory &source = from.memory(), &target = to.memory();
  const bool done = &source == &target     ? source.copy(parts)
                    : source.addressable() ? target.write(parts)
                                           : source.read(parts);
  if (!done) return detail::device_error("copying a KV cache");
  return {};
}

Status copy_layer(const KvCache& from, const KvCache& to, std::size_t layer) {
  const bool same_type = from.layout().layer(layer).dtype == to.layout().layer(layer).dtype;
  const std::uint64_t first = from.first_of_layer(layer);
  alignas(64) std::array<std::byte, kMaxHeadDim * sizeof(float)> buffer;
  TESSERA_TRY(const auto source, kv::LayerOnHost::read(from, layer, first, from.length()));
  TESSERA_TRY(const auto target, kv::LayerOnHost::blank(to, layer, first, from.length()));
  const KvLayerShape& shape = from.layout().layer(layer).shape;
  for (std::size_t head = 0; head < shape.kv_heads; ++head) {
    for (const kv::Part part : shape.parts()) {
      const kv::HeadPart of = source.head(part, head), into = target.head(part, head);
      for (std::uint64_t position = first; position < from.length(); ++position) {
        if (same_type) {
          kv::read_records(source.view(), of, position, position + 1, buffer.data());
          kv::write_records(target.view(), into, position, position + 1, buffer.data());
        } else {
          auto* values = reinterpret_cast<float*>(buffer.data());
          kv::decode(source.view(), of, position, values);
          kv::encode(target.view(), into, position, values);
        }
      }
    }
  }
  return target.write_back();
}

Status copy_states(const KvCache& from, const KvCache& to, std::size_t layer) {
  if (!from.memory().addressable() || !to.memory().addressable()) {
    return make_error(ErrorCode::unsupported, "states of recurrent layers are converted in the host's memory alone");
  }
  for (const std::uint64_t tokens : to.states()) {
    std::memcpy(to.view().kept_state(layer, tokens), from.view().kept_state(layer, tokens),
                from.layout().layer(layer).shape.state_bytes);
  }
  return {};
}

// Record by record, layer by layer.
Status copy_records(const KvCache& from, const KvCache& to) {
  for (std::size_t layer = 0; layer < from.layout().layers.size(); ++layer) {
    if (!from.layout().is_first_at_its_place(layer)) continue;
    TESSERA_TRY_STATUS(from.layout().group_of(layer).is_recurrent() ? copy_states(from, to, layer) : copy_layer(from, to, layer));
  }
  return {};
}

// Whether layers of the two are the same in all but type and page size.
bool same_model(const KvLayout& a, const KvLayout& b) noexcept {
  if (a.layers != b.layers || a.groups.size() != b.groups.size()) return false;
  for (std::size_t group = 0; group < a.groups.size(); ++group) {
    const KvGroup &one = a.groups[group], &other = b.groups[group];
    if (one.window != other.window || one.kind != other.kind) return false;
    if (!std::ranges::equal(one.layers, other.layers, {}, &KvLayerLayout::shape, &KvLayerLayout::shape)) return false;
  }
  return true;
}

}  // namespace

Result<KvCache> KvCache::contiguous(KvLayout layout, const KvCacheOptions& options, Memory& memory) noexcept {
  return guard([&]() -> Result<KvCache> {
    TESSERA_TRY_STATUS(check(layout, options));
    TESSERA_TRY(auto storage, detail::make_contiguous_storage(std::move(layout), options.capacity, memory));
    return KvCache(std::make_unique<State>(std::move(storage), options));
  });
}

Result<KvCache> KvCache::paged(KvLayout layout, const KvCacheOptions& options, const KvPools& pools) noexcept {
  return guard([&]() -> Result<KvCache> {
    TESSERA_TRY_STATUS(check(layout, options));
    TESSERA_TRY(auto storage, detail::make_paged_storage(std::move(layout), pools));
    return KvCache(std::make_unique<State>(std::move(storage), options));
  });
}

KvKind KvCache::kind() const noexcept { return state_->storage->kind(); }
std::uint64_t KvCache::length() const noexcept { return state_->length; }
std::uint64_t KvCache::first() const noexcept { return std::ranges::max(state_->first); }
std::uint64_t KvCache::first_of_group(std::size_t group) const noexcept { return state_->first[group]; }
std::uint64_t KvCache::capacity() const noexcept { return state_->options.capacity; }
std::uint32_t KvCache::checkpoints() const noexcept { return state_->options.checkpoints; }
const KvLayout& KvCache::layout() const noexcept { return state_->layout(); }
std::uint64_t KvCache::bytes() const noexcept { return state_->storage->bytes(); }
bool KvCache::edited() const noexcept { return state_->edited; }
Memory& KvCache::memory() const noexcept { return state_->storage->memory(); }
KvView KvCache::view() const noexcept {
  return {.layout = &state_->layout(), .pages = state_->storage->tables(), .targets = state_->storage->targets()};
}

Status KvCache::reserve(std::uint64_t tokens, std::uint64_t exact_from) noexcept {
  if (state_ == nullptr) return detail::moved_from("KV cache");
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
  if (state_ == nullptr) return detail::moved_from("KV cache");
  State& s = *state_;
  if (s.has_state || first < s.length || tokens > s.options.capacity || first > s.storage->size() * s.page_tokens()) {
    return make_error(ErrorCode::unsupported, "a branch at position {} of {} tokens", first, s.length);
  }
  s.storage->shrink(s.layout().pages(first));
  return guard([&] { return s.storage->make_writable(first / s.page_tokens(), s.layout().pages(tokens)); });
}

void KvCache::commit(std::uint64_t tokens, std::span<const Token> sequence, Reserved beyond) noexcept {
  State& s = *state_;
  if (s.storage->suspended()) return;  // nothing was reserved
  // Never more than what there is memory for, whatever a caller says.
  s.length = s.storage->commit_states(std::min({tokens, s.options.capacity, s.storage->size() * s.page_tokens()}), beyond);
  if (beyond == Reserved::give_back) s.storage->shrink(s.layout().pages(s.length));
  if (!s.options.prefix_identity.empty() && s.can_publish) s.publish(sequence);
  s.drop_behind_windows();
  s.drop_old_states();
}

void KvCache::truncate(std::uint64_t tokens) noexcept {
  State& s = *state_;
  if (tokens >= s.length) return;
  if (!s.storage->suspended()) (void)s.storage->commit_states(s.length, Reserved::give_back);  // of a step that was not committed
  s.length = s.last_beginning(tokens);
  s.limit_published(s.length / s.page_tokens());
  s.storage->shrink(s.layout().pages(s.length));
  if (s.length == 0) s.reset();
}

std::uint64_t KvCache::adopt(std::span<const Token> tokens) noexcept {
  State& s = *state_;
  const std::uint64_t size = s.page_tokens();
  if (s.options.prefix_identity.empty() || s.edited || s.storage->suspended() || s.length != s.published * size) return 0;
  const std::uint64_t room = s.options.capacity - s.length;
  const std::uint64_t pages = s.storage->adopt({.identity = s.options.prefix_identity,
                                                .tokens = tokens.first(std::min<std::uint64_t>(tokens.size(), room)),
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

Status KvCache::edit(std::uint64_t first, std::uint64_t last) noexcept {
  if (state_ == nullptr) return detail::moved_from("KV cache");
  State& s = *state_;
  if (s.has_state) {
    return make_error(ErrorCode::unsupported,
                      "this model has recurrent layers, whose state knows all tokens: none of them can be changed or taken out. "
                      "Truncate, and append what is to stay");
  }
  for (std::size_t group = 0; group < s.first.size(); ++group) {
    if (s.first[group] == 0) continue;
    return make_error(ErrorCode::invalid_state,
                      "tokens below {} have left the model's window of {} and are no longer held: this sequence cannot be "
                      "edited",
                      s.first[group], s.layout().groups[group].window);
  }
  TESSERA_TRY_STATUS(resume());
  last = std::min(last, s.length);
  if (first < last) {
    TESSERA_TRY_STATUS(guard([&] { return s.storage->make_writable(first / s.page_tokens(), s.layout().pages(last)); }));
  }
  s.edited = true;
  s.can_publish = false;
  s.limit_published(first / s.page_tokens());
  return {};
}

std::vector<std::uint64_t> KvCache::states() const {
  std::vector<std::uint64_t> states;
  const State& s = *state_;
  if (!s.has_state || s.length == 0) return states;
  const std::uint64_t size = s.page_tokens(), pages = s.layout().pages(s.length);
  for (std::uint64_t page = s.first_state; page < pages; ++page) {
    if (s.storage->has_state(page)) states.push_back(std::min((page + 1) * size, s.length));
  }
  return states;
}

Status KvCache::suspend() noexcept {
  if (state_ == nullptr) return detail::moved_from("KV cache");
  return guard([&] { return state_->storage->suspend(); });
}

Status KvCache::prefetch() noexcept {
  if (state_ == nullptr) return detail::moved_from("KV cache");
  return guard([&] { return state_->storage->prefetch(); });
}

Status KvCache::resume() noexcept {
  if (state_ == nullptr) return detail::moved_from("KV cache");
  State& s = *state_;
  if (!s.storage->suspended()) return {};
  TESSERA_TRY_STATUS(guard([&] { return s.storage->resume(); }));
  // They are other pages now, which the index does not know: the next commit offers them again.
  s.published = 0;
  s.can_publish = !s.edited && s.holds_whole_pages();
  return {};
}

bool KvCache::suspended() const noexcept { return state_->storage->suspended(); }

Status KvCache::install(const KvExtent& extent) noexcept {
  if (state_ == nullptr) return detail::moved_from("KV cache");
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
    // Of other pages than ours some are behind no border here.
    std::vector<std::uint64_t> states = extent.states;
    const bool fits = s.has_state ? length == 0 || (!states.empty() && states.back() == length) : states.empty();
    if (!fits || !std::ranges::is_sorted(states) || (!states.empty() && states.front() == 0)) {
      return make_error(ErrorCode::invalid_argument, "a KV cache {} recurrent layers cannot take {} tokens with {} states",
                        s.has_state ? "with" : "without", length, states.size());
    }
    std::erase_if(states, [&](std::uint64_t tokens) { return tokens % s.page_tokens() != 0 && tokens != length; });
    states.erase(std::unique(states.begin(), states.end()), states.end());  // clang 14 cannot make a ranges::unique
    if (length > s.options.capacity) return reserve(length);  // which says so
    s.storage->shrink(0);
    std::vector<std::uint64_t> front = first;  // pages
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

Result<KvCache> KvCache::fork() const noexcept {
  return guard([&]() -> Result<KvCache> {
    if (state_ == nullptr) return detail::moved_from("KV cache");
    const State& s = *state_;
    TESSERA_TRY_STATUS(check_present(*this));
    TESSERA_TRY(auto storage, s.storage->fork());
    auto copy = std::make_unique<State>(std::move(storage), s.options);
    copy->length = s.length;
    copy->first = s.first;
    copy->first_state = s.first_state;
    copy->published = s.published;
    copy->can_publish = s.can_publish;
    copy->edited = s.edited;
    return KvCache(std::move(copy));
  });
}

Result<KvCache> KvCache::clone() const noexcept {
  return guard([&]() -> Result<KvCache> {
    if (state_ == nullptr) return detail::moved_from("KV cache");
    const State& s = *state_;
    TESSERA_TRY(auto storage, s.storage->create_empty(s.options.capacity));
    auto copy = std::make_unique<State>(std::move(storage), s.options);
    KvCache clone(std::move(copy));
    TESSERA_TRY_STATUS(convert_to(clone));
    if (s.length > 0) clone.state_->can_publish = false;  // its pages would be taken for the ones they were copied from
    return clone;
  });
}

Status KvCache::convert_to(KvCache& to) const noexcept {
  return guard([&]() -> Status {
    if (state_ == nullptr || to.state_ == nullptr) return detail::moved_from("KV cache");
    const State& s = *state_;
    State& t = *to.state_;
    TESSERA_TRY_STATUS(check_present(*this));
    if (t.length > 0 || !same_model(layout(), to.layout())) {
      return make_error(ErrorCode::invalid_argument, "a KV cache is converted into an empty one of the same model");
    }
    TESSERA_TRY_STATUS(
        to.install({.length = s.length, .first = s.first, .states = states(), .edited = s.edited || (s.length > 0 && !has_same_types(layout(), to.layout()))}));
    const bool direct = &memory() == &to.memory() || memory().addressable() || to.memory().addressable();
    Status done = guard([&] {
      return direct && layout() == to.layout() ? copy_pages(*this, to) : copy_records(*this, to);
    });
    if (!done) t.reset();
    return done;
  });
}

}  // namespace tessera
