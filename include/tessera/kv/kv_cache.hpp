// The keys and values of one sequence, as an object. Contiguous: address space for the whole context is reserved when
// the cache is made, and pages of it are committed as the sequence grows.
//
// Writing has two steps, so that a failed or cancelled forward pass leaves nothing behind: reserve(n) makes room for
// positions below n, the pass writes them, and commit(n) makes them part of the sequence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <tessera/core/dtype.hpp>
#include <tessera/core/memory.hpp>
#include <tessera/core/result.hpp>
#include <tessera/kv/kv_view.hpp>

namespace tessera {

inline constexpr std::uint32_t kDefaultPageTokens = 32;

// The layout of one page. Errors: a dtype that the cache cannot hold.
[[nodiscard]] Result<KvLayout> make_kv_layout(std::span<const KvLayerShape> layers, DType dtype,
                                              std::uint32_t page_tokens = kDefaultPageTokens) noexcept;

class KvCache {
 public:
  // Room for `capacity` tokens, none of it committed yet.
  [[nodiscard]] static Result<KvCache> create(KvLayout layout, std::uint64_t capacity, Memory& memory) noexcept;
  KvCache(KvCache&&) noexcept;
  KvCache& operator=(KvCache&&) noexcept;
  ~KvCache();

  [[nodiscard]] std::uint64_t length() const noexcept;    // tokens held
  [[nodiscard]] std::uint64_t capacity() const noexcept;  // tokens at most
  [[nodiscard]] const KvLayout& layout() const noexcept;
  [[nodiscard]] DType dtype() const noexcept { return layout().dtype; }
  [[nodiscard]] std::uint64_t bytes() const noexcept;     // committed now
  [[nodiscard]] KvView view() const noexcept;

  // Commits memory for positions below `tokens`; on failure the cache is as it was. cache_full past the capacity.
  [[nodiscard]] Status reserve(std::uint64_t tokens) noexcept;
  // The sequence now has `tokens` tokens, at most those that were reserved; what reserve() took beyond them goes back.
  void commit(std::uint64_t tokens) noexcept;
  // Drops the tokens from position `tokens` on; pages that become empty go back at once. A length at or beyond the
  // present one changes nothing.
  void truncate(std::uint64_t tokens) noexcept;
  void clear() noexcept { truncate(0); }
  // A copy with memory of its own.
  [[nodiscard]] Result<KvCache> clone() const noexcept;

  // XXH3-64 over the layer's keys, then values, as stored: head by head, position by position. Independent of page size
  // and layout. `layer` must be below layout().layers.size(), else 0.
  [[nodiscard]] std::uint64_t checksum(std::size_t layer) const noexcept;

 private:
  struct State;
  explicit KvCache(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
