// Copies the states of recurrent layers between a cache's memory, which may be a device's or another process's, and the host's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <tessera/kv/kv_cache.hpp>

#include "core/error.hpp"
#include "kv/other_parts.hpp"

namespace tessera::detail {

// Reads bytes [at, at + out.size()) of the layer's state after the first `tokens` tokens. Precondition: `tokens` is one of
// KvCache::states(). Errors: device_error.
inline Status read_state(const KvCache& cache, std::size_t layer, std::uint64_t tokens, std::span<std::byte> out, std::uint64_t at = 0) noexcept {
  if (const Elsewhere& elsewhere = elsewhere_of(cache); elsewhere.parts != nullptr) {
    return guard([&] { return elsewhere.parts->read_state(cache, layer, (tokens - 1) / cache.layout().page_tokens, at, out); });
  }
  const std::byte* from = cache.view().kept_state(layer, tokens) + at;
  if (cache.memory().addressable()) {
    std::memcpy(out.data(), from, out.size());
    return {};
  }
  const Transfer part{.to = out.data(), .from = from, .bytes = out.size()};
  return cache.memory().read({&part, 1}) ? Status() : device_error("reading a recurrent layer's state");
}

// Writes bytes [at, at + bytes.size()) of the state that read_state() would read. Precondition and errors: as for
// read_state().
inline Status write_state(const KvCache& cache, std::size_t layer, std::uint64_t tokens, std::span<const std::byte> bytes,
                          std::uint64_t at = 0) noexcept {
  if (const Elsewhere& elsewhere = elsewhere_of(cache); elsewhere.parts != nullptr) {
    return guard([&] { return elsewhere.parts->write_state(cache, layer, (tokens - 1) / cache.layout().page_tokens, at, bytes); });
  }
  std::byte* to = cache.view().kept_state(layer, tokens) + at;
  if (cache.memory().addressable()) {
    std::memcpy(to, bytes.data(), bytes.size());
    return {};
  }
  const Transfer part{.to = to, .from = bytes.data(), .bytes = bytes.size()};
  return cache.memory().write({&part, 1}) ? Status() : device_error("writing a recurrent layer's state");
}

}  // namespace tessera::detail
