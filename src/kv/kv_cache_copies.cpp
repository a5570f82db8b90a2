// KvCache: fork(), clone() and conversions to another KV type or page size.
#include <array>
#include <vector>

#include <tessera/extend/kv/layer_on_host.hpp>

#include "core/empty.hpp"
#include "kv/kept_states.hpp"
#include "kv/kv_cache_state.hpp"

namespace tessera {

using detail::guard;

namespace {

Status check_present(const KvCache& cache) {
  if (!cache.suspended()) return {};
  return detail::suspended_error();
}

// Copies whole pages. Preconditions: both caches have the same layout, and `to` has its pages (install()). If the two are in different
// memories, the host can address at least one of them.
Status copy_pages(const KvCache& from, const KvCache& to) {
  const KvLayout& layout = from.layout();
  std::vector<Transfer> parts;
  // Reserved pages after the sequence's length are not copied, and `to` has no pages for them.
  const std::size_t last = layout.pages(from.length());
  parts.reserve(last * layout.groups.size());
  for (std::size_t group = 0; group < layout.groups.size(); ++group) {
    for (std::size_t page = from.first_of_group(group) / layout.page_tokens; page < last; ++page) {
      if (from.view().pages[group][page] == nullptr) continue;  // a recurrent layers' page without a checkpoint
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
  const KvLayerShape& shape = detail::whole_layout(from).layer(layer).shape;
  for (std::size_t head = 0; head < shape.kv_heads; ++head) {
    for (const kv::KeyOrValue part : shape.parts()) {
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
  std::vector<std::byte> state(detail::whole_layout(from).layer(layer).shape.state_bytes);
  for (const std::uint64_t tokens : to.states()) {
    TESSERA_TRY_STATUS(detail::read_state(from, layer, tokens, state));
    TESSERA_TRY_STATUS(detail::write_state(to, layer, tokens, state));
  }
  return {};
}

// Copies the caches layer by layer and token by token, as records, which do not depend on the page size.
Status copy_records(const KvCache& from, const KvCache& to) {
  for (std::size_t layer = 0; layer < from.layout().layers.size(); ++layer) {
    if (!from.layout().is_first_at_its_place(layer)) continue;
    TESSERA_TRY_STATUS(from.layout().group_of(layer).is_recurrent() ? copy_states(from, to, layer) : copy_layer(from, to, layer));
  }
  return {};
}

// Returns whether two layouts belong to the same model: they may differ in KV types and in page size, but in nothing else.
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

Result<KvCache> KvCache::fork() const noexcept {
  return guard([&]() -> Result<KvCache> {
    if (state_ == nullptr) return detail::empty_handle("KvCache");
    const State& s = *state_;
    TESSERA_TRY_STATUS(check_present(*this));
    TESSERA_TRY(auto storage, s.storage->fork());
    auto copy = std::make_unique<State>(std::move(storage), s.options);
    copy->elsewhere = s.elsewhere;
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
    if (state_ == nullptr) return detail::empty_handle("KvCache");
    const State& s = *state_;
    TESSERA_TRY(auto storage, s.storage->create_empty(s.options.capacity));
    auto copy = std::make_unique<State>(std::move(storage), s.options);
    copy->elsewhere = s.elsewhere;
    KvCache clone(std::move(copy));
    TESSERA_TRY_STATUS(convert_to(clone));
    // The clone must not offer its pages: the index has the original pages, so publish() would replace the clone's pages by the originals.
    if (s.length > 0) clone.state_->can_publish = false;
    return clone;
  });
}

Status KvCache::convert_to(KvCache& to) const noexcept {
  return guard([&]() -> Status {
    if (state_ == nullptr || to.state_ == nullptr) return detail::empty_handle("KvCache");
    const State& s = *state_;
    State& t = *to.state_;
    TESSERA_TRY_STATUS(check_present(*this));
    if (t.length > 0 || !same_model(detail::whole_layout(*this), detail::whole_layout(to))) {
      return make_error(ErrorCode::invalid_argument, "a KV cache is converted into an empty one of the same model");
    }
    TESSERA_TRY_STATUS(
        to.install({.length = s.length, .first = s.first, .states = states(), .edited = s.edited || (s.length > 0 && !has_same_types(layout(), to.layout()))}));
    const bool is_here = s.elsewhere.parts == nullptr && t.elsewhere.parts == nullptr;
    const bool direct = is_here && (&memory() == &to.memory() || memory().addressable() || to.memory().addressable());
    Status done = guard([&] {
      return direct && layout() == to.layout() ? copy_pages(*this, to) : copy_records(*this, to);
    });
    if (!done) t.reset();
    return done;
  });
}

}  // namespace tessera
