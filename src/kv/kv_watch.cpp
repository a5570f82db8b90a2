#include "kv/kv_watch.hpp"

#include <new>
#include <utility>

#include "kv/pages/pools_state.hpp"

namespace tessera::detail {
namespace {

// The most events that are kept. If there are more, they are all dropped, and take() returns the whole content of the index instead.
constexpr std::size_t kMostKept = std::size_t{1} << 16;

KvEvent stored_event(const PrefixNode& node) {
  return {.kind = KvEvent::Kind::stored, .page = node.hash, .before = node.parent->hash, .tokens = node.tokens, .contents = node.contents};
}

}  // namespace

KvWatch::KvWatch(const KvPools& pools) : pools_(pools.state()) {
  const std::lock_guard lock(pools_->mutex);
  pools_->index.add_listener(*this);
}

KvWatch::~KvWatch() {
  const std::lock_guard lock(pools_->mutex);
  pools_->index.remove_listener(*this);
}

template <class Make>
void KvWatch::note(Make&& make) noexcept {
  if (is_behind_) return;
  try {
    if (events_.size() < kMostKept) {
      events_.push_back(make());
      return;
    }
  } catch (const std::bad_alloc&) {  // the event is lost, so take() will return the whole content of the index
  }
  is_behind_ = true;
  events_ = {};
}

void KvWatch::stored(const PrefixNode& node) noexcept {
  note([&] { return stored_event(node); });
}

void KvWatch::removed(const PrefixNode& node) noexcept {
  note([&] { return KvEvent{.kind = KvEvent::Kind::removed, .page = node.hash}; });
}

bool KvWatch::has_events() const noexcept {
  const std::lock_guard lock(pools_->mutex);
  return !events_.empty();
}

std::vector<KvEvent> KvWatch::take() {
  const std::lock_guard lock(pools_->mutex);
  if (is_behind_) {
    std::vector<KvEvent> all{{.kind = KvEvent::Kind::cleared}};
    pools_->index.for_each([&](const PrefixNode& node) { all.push_back(stored_event(node)); });
    is_behind_ = false;
    return all;
  }
  return std::exchange(events_, {});
}

}  // namespace tessera::detail
