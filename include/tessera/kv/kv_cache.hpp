// The keys and values of one sequence, as an object. Two layouts, one address function (kv_view.hpp):
//   contiguous  address space for the whole capacity is reserved when the cache is made, and pages of it are committed as
//               the sequence grows
//   paged       pages come from the engine's pools (kv_pools.hpp), can be shared between sequences (fork, prefix reuse),
//               and are copied before a write that another holder must not see
// Each group of layers (kv_layout.hpp) has pages of its own. What makes or takes pages does so in every group or in none.
//
// Recurrent layers have a state instead. The cache holds the one behind the sequence's last token, and checkpoints: those at
// the borders of its newest pages. So a sequence is truncated to a checkpoint, and what is wanted beyond it is computed again.
//
// Writing has two steps, so that a failed or cancelled forward pass leaves nothing behind: reserve(n) makes room for
// positions below n, the pass writes them, and commit(n) makes them part of the sequence.
//
// An empty KvCache (docs/headers.md) has no tokens, no capacity and a layout without layers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tessera/core/dtype.hpp>
#include <tessera/core/memory.hpp>
#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/kv/kv_layout.hpp>
#include <tessera/kv/kv_pools.hpp>
#include <tessera/kv/kv_view.hpp>

namespace tessera {

enum class KvKind : std::int32_t {
  contiguous = 0,
  paged = 1,
  automatic = 2,  // an option's "choose for me"
};

// What becomes of pages that were reserved beyond what is committed.
enum class Reserved : std::int32_t {
  give_back = 0,
  keep = 1,  // what has been written there may be committed by and by
};

// What becomes of pages that a group's window has passed.
enum class PassedPages : std::int32_t {
  give_back = 0,  // once the window has passed them by more than a page; of an edited sequence nothing
  keep = 1,       // for edits, which may need them again
  give_back_edited = 2,  // as give_back, of an edited sequence too: see begin_removal()
};

// Checkpoints that a sequence keeps if nobody says how many: enough to go back by a page and more.
inline constexpr std::uint32_t kDefaultCheckpoints = 2;
inline constexpr std::uint32_t kAllCheckpoints = ~std::uint32_t{0};
// Of the states that an append leaves for other sequences to find, this many at most.
inline constexpr std::uint32_t kMostOffered = 8;

// States of recurrent layers that a sequence may hold, with `pages` full ones and no drafts: the live state and the checkpoints, and
// beside them what a step leaves: the next live state, the next checkpoints, and what is offered to others before those, if it
// offers any. A draft takes one more as long as it is one.
[[nodiscard]] constexpr std::uint64_t most_states(const KvLayout& layout, std::uint64_t pages, std::uint64_t checkpoints, bool offers) noexcept {
  const std::uint64_t own = std::min(pages, checkpoints + 1);
  const std::uint64_t between = pages - std::min(pages, 2 * checkpoints);  // pages of no checkpoint, before the step or behind it
  const std::uint64_t offered = offers ? std::min<std::uint64_t>(kMostOffered, (between + layout.state_pages - 1) / layout.state_pages) : 0;
  return std::min(own + std::min(pages, own + offered), pages + 1);  // one a page, and the live one that the step replaces
}

struct KvCacheOptions {
  std::uint64_t capacity = 0;  // tokens at most
  std::uint32_t checkpoints = kDefaultCheckpoints;  // of recurrent layers: at the borders of so many full pages, the newest
  PassedPages passed = PassedPages::give_back;
  // Paged: what two sequences must have in common to share a prefix (model, numerics, salt). Empty: no sharing.
  std::string prefix_identity = {};
  // Contiguous: kept alive as long as the cache, if its Memory is nobody else's. Paged: see KvPoolOptions.
  std::shared_ptr<Memory> memory_owner = {};
};

// What a cache holds, whoever computed it.
struct KvExtent {
  std::uint64_t length = 0;                // tokens of the sequence
  std::vector<std::uint64_t> first = {};   // [group]: the first position that is held; empty: 0 in all of them
  std::vector<std::uint64_t> states = {};  // of recurrent layers: KvCache::states()
  bool edited = false;                     // see KvCache::edit()
};

// Tokens that are being taken out: KvCache::begin_removal().
struct KvRemoval {
  std::uint64_t tokens = 0;              // how many
  std::vector<std::uint64_t> from = {};  // [group]: of it nothing before this position is to be moved
};

class KvCache {
 public:
  // Room for the capacity's tokens, none of it committed yet.
  [[nodiscard]] static Result<KvCache> contiguous(KvLayout layout, const KvCacheOptions& options, Memory& memory) noexcept;
  [[nodiscard]] static Result<KvCache> paged(KvLayout layout, const KvCacheOptions& options, const KvPools& pools) noexcept;
  KvCache() noexcept;  // an empty handle (docs/headers.md)
  KvCache(KvCache&&) noexcept;
  KvCache& operator=(KvCache&&) noexcept;
  ~KvCache();

  [[nodiscard]] KvKind kind() const noexcept;
  [[nodiscard]] std::uint64_t length() const noexcept;    // tokens of the sequence
  // The first position that all layers still hold: not 0 once a window has passed tokens. It is the largest of the
  // groups' own.
  [[nodiscard]] std::uint64_t first() const noexcept;
  // The first position that the group's layers still hold.
  [[nodiscard]] std::uint64_t first_of_group(std::size_t group) const noexcept;
  // That of a layer's group.
  [[nodiscard]] std::uint64_t first_of_layer(std::size_t layer) const noexcept;
  [[nodiscard]] std::uint64_t capacity() const noexcept;  // tokens at most
  [[nodiscard]] const KvLayout& layout() const noexcept;
  [[nodiscard]] std::uint32_t checkpoints() const noexcept;  // KvCacheOptions
  [[nodiscard]] DType dtype() const noexcept { return layout().dtype; }  // but for wide layers (KvLayout)
  [[nodiscard]] std::uint64_t bytes() const noexcept;     // held now, shared pages too
  [[nodiscard]] bool edited() const noexcept;             // see edit()
  [[nodiscard]] KvView view() const noexcept;             // of addresses in memory()
  // Where the pages are. If that is not addressable, kv/layer_on_host.hpp is the way to the records.
  [[nodiscard]] Memory& memory() const noexcept;

  // Makes positions [length, tokens) writable: memory for them, and a copy of its own where the last page is shared. On
  // failure the cache is as it was, or, if it was suspended and that succeeded, resumed. cache_full past the capacity
  // or the pools' budget; device_error: see Memory::copy().
  // Positions from `exact_from` on are drafts: any of them may be the last that is committed.
  [[nodiscard]] Status reserve(std::uint64_t tokens, std::uint64_t exact_from = ~std::uint64_t{0}) noexcept;
  // Of a fork of a cache that has room for the positions before `first`: pages of its own for [first, tokens), the first one a
  // copy if it begins before `first`. The pass that writes what is before `first` writes it to that copy too. On failure the
  // fork is of no use. unsupported: recurrent layers, or positions that neither of the two has.
  [[nodiscard]] Status reserve_branch(std::uint64_t first, std::uint64_t tokens) noexcept;
  // The sequence now has `tokens` tokens, at most those that were reserved; what reserve() took beyond them goes back,
  // unless it is kept, and so does what a group's window has passed. `sequence`: the tokens of all positions, if full
  // pages may be found by others; an embedding's (-1) ends what is offered.
  // Recurrent layers have a state behind the last position that was reserved, behind each draft, behind the last position
  // before the drafts, and at some borders of pages. If `tokens` ends nowhere there, length() becomes the last such place
  // before it, or stays what it was.
  void commit(std::uint64_t tokens, std::span<const Token> sequence = {}, Reserved beyond = Reserved::give_back) noexcept;
  // Drops the tokens from position `tokens` on; pages that become empty go back at once. A length at or beyond the
  // present one changes nothing. If the window of any group has passed keys that the next position needs, all tokens are
  // dropped, and length() is 0: they have to be computed again. Of recurrent layers what goes is everything behind the last
  // checkpoint at or before `tokens`, which length() is then.
  void truncate(std::uint64_t tokens) noexcept;
  void clear() noexcept { truncate(0); }

  // Of recurrent layers: behind how many tokens the cache holds a state, ascending; the last one is length(). None of an
  // empty cache, and none where no layer is recurrent.
  [[nodiscard]] std::vector<std::uint64_t> states() const;

  // Takes as many pages as the prefix index has for `tokens`, which continue the sequence; how many tokens that is.
  // Only at a page's border, and if everything before came from the index or went into it. What is taken is enough to go
  // on behind it: all pages of a group without a window, and those that a window still sees. (A sequence that holds
  // tokens already takes all pages of every group, so that it can go back to where it was.)
  [[nodiscard]] std::uint64_t adopt(std::span<const Token> tokens) noexcept;
  // Before tokens in [first, last) are changed in place: makes their pages writable, as reserve() does, and marks the
  // cache as edited: none of its pages are offered to others any more, and by default no window gives pages back. invalid_state if
  // a window already has; unsupported if layers are recurrent, whose state knows all tokens.
  [[nodiscard]] Status edit(std::uint64_t first, std::uint64_t last = ~std::uint64_t{0}) noexcept;
  // Before `tokens` tokens between `first` and `end` are taken out, and those that stay behind `first` move up: edit() of
  // where they move to. With PassedPages::give_back_edited a group whose window sees nothing before `end` any more, nor a page
  // before that, is to hold from now on what is behind `end` alone: only that is moved of it, whatever the window has passed.
  [[nodiscard]] Result<KvRemoval> begin_removal(std::uint64_t first, std::uint64_t end, std::uint64_t tokens) noexcept;
  // They have been moved: the sequence is that much shorter.
  void end_removal(const KvRemoval& removal) noexcept;
  // Makes an empty cache hold positions [first, length), of each group its own first, whose records the caller then
  // writes (kv/records.hpp, kv/layer_on_host.hpp): they come from a file or another cache. There is no memory for pages
  // before `first`. commit() with the tokens offers full pages to others, if nothing has been edited and
  // each first is at a page's border. On failure the
  // cache is as it was.
  [[nodiscard]] Status install(const KvExtent& extent) noexcept;

  // Paged, with a file (KvPoolOptions::file): moves the pages to it. Their memory is free as soon as they are written,
  // which goes on behind; a page that cannot be written stays in memory. What is shared stays there for the others.
  // Until resume() the cache has a length, but no keys and values: reserve() and edit() resume it by themselves, view()
  // and copies must not be asked for. cache_full: the file has no room.
  [[nodiscard]] Status suspend() noexcept;
  // Begins to read the pages, so that resume() need not wait long.
  [[nodiscard]] Status prefetch() noexcept;
  // All pages are back, with the same bits, or (no room, a read error) none, and the cache is suspended as before.
  [[nodiscard]] Status resume() noexcept;
  [[nodiscard]] bool suspended() const noexcept;

  // A copy that shares all pages with this one; the first write to a shared page, by either, copies that page alone. Of
  // a contiguous cache invalid_state: clone() it.
  [[nodiscard]] Result<KvCache> fork() const noexcept;
  // A copy with memory of its own, of the same kind, type and page size.
  [[nodiscard]] Result<KvCache> clone() const noexcept;
  // Writes this cache's tokens into `to`, which is empty and of the same model, in its kind, type, page size and Memory.
  // Of one type the records are the same bits; to another type they are decoded and encoded, which `to` is marked for
  // as edited. On error `to` is empty.
  [[nodiscard]] Status convert_to(KvCache& to) const noexcept;

  // XXH3-64 over the layer's records (kv/records.hpp) from first_of_layer() on: keys head by head, position by position,
  // then values; of a recurrent layer over its state. Independent of page size, layout and Memory; layers that share a
  // place have the same. `layer` must be below layout().layers.size(), and the cache not suspended, else 0; and so if it
  // cannot be read (LayerOnHost::read()).
  [[nodiscard]] std::uint64_t checksum(std::size_t layer) const noexcept;

 private:
  struct State;
  explicit KvCache(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
