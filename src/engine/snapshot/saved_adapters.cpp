#include "engine/snapshot/saved_adapters.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "core/printable.hpp"

namespace tessera::detail::snapshot {

Result<SequenceAdapters> read_adapters(SectionReader& in, const LoadedAdapters& loaded) {
  TESSERA_TRY(const std::vector<std::byte> payload, in.whole_up_to(SectionType::adapters, in.remaining()));
  // The names follow the last record. A record is the last one if exactly the bytes of the names remain after it.
  std::vector<SavedAdapter> saved;
  std::uint64_t at = 0, names = 0;
  const auto wrong = [&] { return in.corrupt("{} adapters, with names of {} bytes, in {} bytes", saved.size(), names, payload.size()); };
  while (at + names < payload.size()) {
    if (payload.size() - at < sizeof(SavedAdapter)) return wrong();
    std::memcpy(&saved.emplace_back(), payload.data() + at, sizeof(SavedAdapter));
    at += sizeof(SavedAdapter);
    const std::uint64_t left = payload.size() - at;
    if (names > left || saved.back().name_bytes > left - names) return wrong();
    names += saved.back().name_bytes;
  }
  if (saved.empty() || at + names != payload.size()) return wrong();
  std::vector<SequenceAdapters::One> list;
  std::size_t name = static_cast<std::size_t>(at);
  for (const SavedAdapter& one : saved) {
    const std::string_view called(reinterpret_cast<const char*>(payload.data() + name), static_cast<std::size_t>(one.name_bytes));
    name += called.size();
    const float scale = std::bit_cast<float>(one.scale);
    if (one.waits > 1 || !std::isfinite(scale) || scale == 0.0f) return in.corrupt("an adapter with a scale of {}", scale);
    Adapter adapter = loaded.find(one.content);
    if (adapter.state() == nullptr) {
      return in.error(ErrorCode::not_found,
                      "the session uses adapter \"{}\" ({:016x}{:016x}), which the engine has not loaded: load it by Engine::adapter(), and keep "
                      "it while you restore the session",
                      printable(called), one.content.high, one.content.low);
    }
    list.push_back({.adapter = std::move(adapter), .scale = scale, .from = one.from, .waits = one.waits == 1});
  }
  return SequenceAdapters(std::move(list));
}

}  // namespace tessera::detail::snapshot
