#include "engine/adapters/sequence_adapters.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.hpp"
#include "core/hasher.hpp"

namespace tessera::detail {

namespace {

Hash128 key_of(const SequenceAdapters::One& one) noexcept {
  Hasher128 hasher;
  const Hash128 content = one.adapter.content();
  hasher.add(std::as_bytes(std::span(&content, 1)));
  hasher.add(std::as_bytes(std::span(&one.scale, 1)));
  return hasher.digest();
}

}  // namespace

SequenceAdapters::SequenceAdapters(std::vector<One> list) : list_(std::move(list)) {
  keys_.reserve(list_.size());
  set_keys();
}

SequenceAdapters::SequenceAdapters(const SequenceAdapters& other) : list_(other.list_), is_settled_(other.is_settled_) {
  keys_.reserve(list_.size());
  keys_.assign(other.keys_.begin(), other.keys_.end());
}

std::optional<std::uint64_t> last_invocation(const Adapter& adapter, std::span<const Token> tokens) noexcept {
  const std::span<const Token> invocation = adapter.invocation();
  const auto found = std::find_end(tokens.begin(), tokens.end(), invocation.begin(), invocation.end());
  return found == tokens.end() ? std::nullopt : std::optional(static_cast<std::uint64_t>(found - tokens.begin()));
}

Result<SequenceAdapters> SequenceAdapters::make(std::span<const AdapterUse> uses) {
  std::vector<One> list;
  for (const AdapterUse& use : uses) {
    if (use.adapter.state() == nullptr) return make_error(ErrorCode::invalid_argument, "an empty adapter: load one by Engine::adapter()");
    if (!std::isfinite(use.scale)) return make_error(ErrorCode::invalid_argument, "adapter \"{}\" with a scale of {}", use.adapter.name(), use.scale);
    if (use.scale == 0.0f) continue;
    const bool waits = !use.from && !use.adapter.invocation().empty();
    list.push_back({.adapter = use.adapter, .scale = use.scale, .from = waits ? kNotInvoked : use.from.value_or(0), .waits = waits});
  }
  return SequenceAdapters(std::move(list));
}

std::vector<AdapterUse> SequenceAdapters::uses() const {
  std::vector<AdapterUse> uses;
  for (const One& one : list_) {
    uses.push_back({.adapter = one.adapter, .scale = one.scale,
                    .from = one.from == kNotInvoked ? std::nullopt : std::optional<std::uint64_t>(one.from)});
  }
  return uses;
}

void SequenceAdapters::set_keys() noexcept {
  // Insertion sort, because the list is short, and because std::stable_sort may allocate memory.
  for (std::size_t i = 1; i < list_.size(); ++i) {
    for (std::size_t j = i; j > 0 && list_[j].from < list_[j - 1].from; --j) std::swap(list_[j], list_[j - 1]);
  }
  keys_.clear();
  for (const One& one : list_) {
    if (one.from != kNotInvoked) keys_.push_back({.from = one.from, .content = key_of(one)});
  }
}

std::uint32_t SequenceAdapters::active_at(std::uint64_t position) const noexcept {
  std::uint32_t n = 0;
  while (n < list_.size() && list_[n].from <= position && list_[n].from != kNotInvoked) ++n;
  return n;
}

std::uint64_t SequenceAdapters::first_difference(const SequenceAdapters& other) const noexcept {
  const auto [mine, theirs] = std::ranges::mismatch(keys_, other.keys_);
  return std::min(mine != keys_.end() ? mine->from : UINT64_MAX, theirs != other.keys_.end() ? theirs->from : UINT64_MAX);
}

bool SequenceAdapters::wait_for_invocation() const noexcept {
  return !is_settled_ && std::ranges::any_of(list_, [](const One& one) { return one.from == kNotInvoked; });
}

void SequenceAdapters::invoke(std::span<const Token> tokens, std::uint64_t position) noexcept {
  if (is_settled_) return;
  for (One& one : list_) {
    if (one.from != kNotInvoked) continue;
    if (const auto at = last_invocation(one.adapter, tokens)) one.from = position + *at;
  }
  set_keys();
}

SequenceAdapters SequenceAdapters::placed_in(std::span<const Token> tokens) const {
  SequenceAdapters placed = *this;
  for (One& one : placed.list_) {
    if (one.waits) one.from = kNotInvoked;
  }
  placed.invoke(tokens, 0);
  placed.set_keys();
  return placed;
}

std::uint64_t SequenceAdapters::first_cut(std::uint64_t tokens) const noexcept {
  std::uint64_t first = UINT64_MAX;
  for (const One& one : list_) {
    if (is_cut(one, tokens)) first = std::min(first, one.from);
  }
  return first;
}

bool SequenceAdapters::is_cut(const One& one, std::uint64_t tokens) const noexcept {
  if (is_settled_ || !one.waits || one.from == kNotInvoked) return false;
  return one.from >= tokens || one.adapter.invocation().size() > tokens - one.from;
}

void SequenceAdapters::truncate(std::uint64_t tokens) noexcept {
  for (One& one : list_) {
    if (is_cut(one, tokens)) one.from = kNotInvoked;
  }
  set_keys();
}

void SequenceAdapters::erase(std::uint64_t first, std::uint64_t last) noexcept {
  for (One& one : list_) {
    if (one.from == kNotInvoked || one.from <= first) continue;
    one.from = one.from < last ? first : one.from - (last - first);
  }
  set_keys();
}

}  // namespace tessera::detail
