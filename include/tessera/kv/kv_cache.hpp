// The keys and values of one sequence. There are two kinds of caches:
//   contiguous  address space for the whole capacity is reserved when the cache is made, and memory for its pages is taken as the
//               sequence grows
//   paged       pages come from the engine's pools (kv_pools.hpp). Several sequences can share a page (fork, prefix reuse). Before
//               one of them writes to a shared page, the page is copied, so that the other sequences do not see the write
// Code reads and writes both kinds through the same address functions (kv_view.hpp). Each group of layers (kv_layout.hpp) has its own
// pages. A function that allocates or frees pages does so in every group or in none.
//
// Recurrent layers have a state instead of keys and values. The cache holds the state after the sequence's last token, and checkpoints:
// states after the last tokens of its newest full pages. A state cannot be computed backwards, so a sequence with recurrent layers can be
// truncated only to a checkpoint; the tokens after the checkpoint that were to stay are computed again.
//
// A forward pass writes between two calls, so that a pass that fails or is cancelled does not change the sequence: reserve(n) makes room
// for the positions below n, the pass writes their keys and values, and commit(n) makes the positions part of the sequence.
//
//   auto cache = KvCache::paged(layout, {.capacity = 4096}, pools);
//   if (cache && cache->reserve(16)) { /* a pass writes positions 0 to 15 through cache->view() */ cache->commit(16); }
//   auto other = cache->fork();       // shares all pages until one of the two writes
//   cache->truncate(8);               // other still has 16 tokens
//
// An empty KvCache (docs/headers.md) has no tokens, no capacity and a layout without layers.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/extend/core/hash.hpp>
#include <tessera/extend/core/memory.hpp>
#include <tessera/extend/kv/kv_layout.hpp>
#include <tessera/extend/kv/kv_pools.hpp>
#include <tessera/extend/kv/kv_view.hpp>

namespace tessera {

enum class KvKind : std::int32_t {
  contiguous = 0,
  paged = 1,
  automatic = 2,  // as an option: the library chooses
};

// Says what commit() does with pages that reserve() took for positions beyond the committed tokens.
enum class Reserved : std::int32_t {
  give_back = 0,
  keep = 1,  // the positions written there may be committed later
};

// Says what happens to a page when the sliding window of its group has passed it: when no later token sees a token of the page.
enum class PassedPages : std::int32_t {
  give_back = 0,  // a page is freed once the window begins more than a page after it. Exception: an edited sequence keeps its pages
  keep = 1,       // pages stay, because an edit may need them again
  give_back_edited = 2,  // as give_back, but pages of edited sequences are freed too: see begin_removal()
};

// The number of checkpoints that a sequence keeps by default: enough to go back by more than a page.
inline constexpr std::uint32_t kDefaultCheckpoints = 2;
inline constexpr std::uint32_t kAllCheckpoints = ~std::uint32_t{0};
// The largest number of recurrent layers' states that one append offers to other sequences, through the prefix index.
inline constexpr std::uint32_t kMostOffered = 8;

struct KvCacheOptions {
  std::uint64_t capacity = 0;  // tokens at most
  std::uint32_t checkpoints = kDefaultCheckpoints;  // states of recurrent layers kept at the borders of the newest full pages
  PassedPages passed = PassedPages::give_back;
  // Paged caches: a text made of everything that decides the contents of pages, besides the tokens: model, numerics, salt. Two sequences
  // can share a prefix only if their texts are equal. Empty: the sequence shares nothing.
  std::string prefix_identity = {};
  // Contiguous caches: the owner of the Memory, which the cache keeps alive. For paged caches KvPoolOptions states the owner.
  std::shared_ptr<Memory> memory_owner = {};
};

// Returns the content of an embedding: a hash by which equal embeddings are recognised, as equal tokens are by their numbers. It is the
// XXH3-128 of the embedding's width and bits, so embeddings that differ in one bit have different hashes. The hash is not cryptographic:
// see docs/explanation/kv-cache.md, "Sharing".
[[nodiscard]] Hash128 content_hash(std::span<const float> embedding) noexcept;

// An adapter in use, as far as it matters for keys and values.
struct KvAdapter {
  std::uint64_t from = 0;  // the first position that it changes
  Hash128 content;         // hash of the adapter and of the scale with which it is used

  bool operator==(const KvAdapter&) const noexcept = default;
};

// The inputs of a cache at consecutive positions: tokens, and the contents of embeddings. The prefix index compares them to find equal
// beginnings. Example: two tokens, two embeddings and a token are {.tokens = 5, 6, -1, -1, 7} and two contents.
struct KvInputs {
  std::span<const Token> tokens = {};      // -1 for an embedding
  std::span<const Hash128> contents = {};  // content_hash() of each embedding, in order. The last contents may be missing
  std::span<const KvAdapter> adapters = {};  // all adapters of the sequence, by their first positions
  std::uint64_t position = 0;                // position of the first input in the sequence; matters only if there are adapters

  KvInputs() noexcept = default;
  template <class Tokens>
    requires std::convertible_to<const Tokens&, std::span<const Token>>
  KvInputs(const Tokens& of, std::span<const Hash128> with = {}, std::span<const KvAdapter> by = {}, std::uint64_t at = 0) noexcept
      : tokens(of), contents(with), adapters(by), position(at) {}

  [[nodiscard]] std::size_t size() const noexcept { return tokens.size(); }
  // Returns the first `n` inputs. Precondition: n <= size(). Cost: linear in `n` if there are contents, otherwise constant.
  [[nodiscard]] KvInputs first(std::size_t n) const noexcept {
    return {tokens.first(n), contents.first(std::min(contents.size(), contents.empty() ? 0 : embeddings_in(tokens.first(n)))), adapters,
            position};
  }
  // Returns the inputs that follow `beginning`, which must be a result of this object's first().
  [[nodiscard]] KvInputs behind(const KvInputs& beginning) const noexcept {
    return {tokens.subspan(beginning.tokens.size()), contents.subspan(beginning.contents.size()), adapters,
            position + beginning.tokens.size()};
  }
  // Returns the adapters whose first position (KvAdapter::from) is one of these inputs' positions. The prefix index stores the page of
  // these inputs under a key that contains these adapters. Adapters that begin earlier are left out, because the key of an earlier page has
  // them.
  [[nodiscard]] std::span<const KvAdapter> beginning_adapters() const noexcept {
    std::size_t first = 0, last = 0;
    while (first < adapters.size() && adapters[first].from < position) ++first;
    for (last = first; last < adapters.size() && adapters[last].from < position + size();) ++last;
    return adapters.subspan(first, last - first);
  }
  [[nodiscard]] KvInputs subspan(std::size_t from, std::size_t n) const noexcept { return behind(first(from)).first(n); }
  // Returns whether `contents` has the content of every embedding.
  [[nodiscard]] bool are_known() const noexcept { return contents.size() == embeddings_in(tokens); }

 private:
  [[nodiscard]] static std::size_t embeddings_in(std::span<const Token> tokens) noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(tokens, [](Token token) { return token < 0; }));
  }
};

// The positions and states that a cache holds. install() needs them to build an equal cache.
struct KvExtent {
  std::uint64_t length = 0;                // tokens of the sequence
  std::vector<std::uint64_t> first = {};   // [group]: the first position that the group holds; empty: 0 in all groups
  std::vector<std::uint64_t> states = {};  // KvCache::states(); empty without recurrent layers
  bool edited = false;                     // see KvCache::edit()
};

// A removal of tokens that KvCache::begin_removal() has prepared, and end_removal() will end.
struct KvRemoval {
  std::uint64_t tokens = 0;              // number of tokens to remove
  std::vector<std::uint64_t> from = {};  // [group]: the caller moves no record of the group before this position
};

class KvCache {
 public:
  // Make an empty cache. contiguous() reserves address space for the whole capacity, but takes no memory for it yet.
  [[nodiscard]] static Result<KvCache> contiguous(KvLayout layout, const KvCacheOptions& options, Memory& memory) noexcept;
  [[nodiscard]] static Result<KvCache> paged(KvLayout layout, const KvCacheOptions& options, const KvPools& pools) noexcept;
  KvCache() noexcept;  // an empty handle (docs/headers.md)
  KvCache(KvCache&&) noexcept;
  KvCache& operator=(KvCache&&) noexcept;
  ~KvCache();

  [[nodiscard]] KvKind kind() const noexcept;
  [[nodiscard]] std::uint64_t length() const noexcept;    // tokens of the sequence
  // Returns the first position whose keys and values all layers still hold: the largest first_of_group(). 0 until a group frees pages that
  // its sliding window has passed.
  [[nodiscard]] std::uint64_t first() const noexcept;
  // Returns the first position whose keys and values the group's layers still hold.
  [[nodiscard]] std::uint64_t first_of_group(std::size_t group) const noexcept;
  // Returns first_of_group() of the layer's group.
  [[nodiscard]] std::uint64_t first_of_layer(std::size_t layer) const noexcept;
  [[nodiscard]] std::uint64_t capacity() const noexcept;  // tokens at most
  [[nodiscard]] const KvLayout& layout() const noexcept;
  [[nodiscard]] std::uint32_t checkpoints() const noexcept;  // KvCacheOptions
  [[nodiscard]] DType dtype() const noexcept { return layout().dtype; }  // KV type of all layers except the wide layers (wide_layers.hpp)
  [[nodiscard]] std::uint64_t bytes() const noexcept;     // bytes that the cache holds now, shared pages included
  [[nodiscard]] bool edited() const noexcept;             // see edit()
  [[nodiscard]] KvView view() const noexcept;             // its addresses lie in memory()
  // Returns the memory that holds the pages. If the processor cannot address this memory (a GPU's), read the keys and values through
  // extend/kv/layer_on_host.hpp.
  [[nodiscard]] Memory& memory() const noexcept;

  // Makes positions [length, tokens) writable: takes memory for them, and copies the last page if it is shared. Positions from `exact_from`
  // on are drafts: commit() must be able to end the sequence after any of them, so a recurrent layer's state is kept after each. Errors:
  // cache_full, beyond the capacity or the pools' budget; device_error, see Memory::copy(). After an error the cache is as it was.
  // Exception: a suspended cache may have been resumed.
  [[nodiscard]] Status reserve(std::uint64_t tokens, std::uint64_t exact_from = ~std::uint64_t{0}) noexcept;
  // Gives a fork its own pages for positions [first, tokens), so that the fork can hold a branch of a tree of drafts. The fork's parent
  // must have reserved the positions before `first`, which both have in common. If `first` lies inside a page, the fork gets a copy of this
  // page; the pass that writes the positions before `first` must then write them to the copy too. Errors: unsupported, the cache has
  // recurrent layers, `first` is below length() or beyond the reserved positions, or `tokens` is above capacity(). After an error destroy
  // the fork.
  [[nodiscard]] Status reserve_branch(std::uint64_t first, std::uint64_t tokens) noexcept;
  // Makes the sequence `tokens` tokens long, but no longer than was reserved. Frees pages that reserve() took beyond `tokens` (unless
  // `beyond` is Reserved::keep), and pages that a group's window has passed. `sequence` has the inputs of all positions from 0 on. If it is
  // given, other sequences can find the full pages in the prefix index. Exception: pages that hold or follow an embedding without a content
  // are not found.
  // With recurrent layers a sequence can end only at a position after which a state was kept: the last reserved position, each draft, the
  // last position before the drafts, and some borders of pages. If no state was kept at `tokens`, length() becomes the last position before
  // `tokens` that has a state, or stays as it was if there is none.
  void commit(std::uint64_t tokens, const KvInputs& sequence = {}, Reserved beyond = Reserved::give_back) noexcept;
  // Drops the tokens from position `tokens` on, and frees the pages that become empty. If `tokens` is length() or more, nothing changes.
  // With recurrent layers length() becomes the last checkpoint at or before `tokens`. If the token at position `tokens` would need keys
  // that a group has freed already (its window had passed them), all tokens are dropped and length() is 0: the caller computes the tokens
  // again.
  void truncate(std::uint64_t tokens) noexcept;
  void clear() noexcept { truncate(0); }

  // Returns the lengths at which the cache holds a state of the recurrent layers, ascending: the checkpoints, and last length(). Empty for
  // an empty cache and for a model without recurrent layers.
  [[nodiscard]] std::vector<std::uint64_t> states() const;

  // Looks in the prefix index for pages with the keys and values of `inputs`, which would continue the sequence. Appends the pages that it
  // finds, and returns how many tokens they hold. Returns 0 if the sequence does not end at a page's border, or if an earlier page of the
  // sequence is not in the index (it was neither taken from the index nor added to it). In a group with a window, only pages that the
  // window still sees are taken. Exception: a sequence that has tokens already takes all pages of every group, so that truncate() can
  // restore the old length.
  [[nodiscard]] std::uint64_t adopt(const KvInputs& inputs) noexcept;
  // Prepares for a change of the records (keys and values) of positions [first, last) in place: makes their pages writable, as reserve()
  // does, and marks the cache as edited. From then on other sequences find none of the cache's pages, and by default no window frees pages.
  // Errors: those of reserve(); invalid_state, a window has freed pages already; unsupported, recurrent layers.
  [[nodiscard]] Status edit(std::uint64_t first, std::uint64_t last = ~std::uint64_t{0}) noexcept;
  // Prepares the removal of `tokens` tokens from [first, end); the caller decides which ones. Prepares, as edit() does, all positions to which
  // later tokens will move up. The caller then moves the records (keys and values) and calls end_removal(). With PassedPages::give_back_edited,
  // if a group's window begins more than a page after `end`, the group keeps and moves only the records after `end`. Errors: those of
  // edit(); invalid_argument, the range does not fit.
  [[nodiscard]] Result<KvRemoval> begin_removal(std::uint64_t first, std::uint64_t end, std::uint64_t tokens) noexcept;
  // Ends a removal, after the caller has moved the records: shortens the sequence by removal.tokens. Does nothing if the removal does not
  // fit the cache.
  void end_removal(const KvRemoval& removal) noexcept;
  // Makes an empty cache hold the positions of `extent`, for contents that come from a file or another cache: the caller then writes the
  // records (extend/kv/records.hpp, extend/kv/layer_on_host.hpp). Positions of a group before extent.first[group] take no memory. A
  // commit() with the tokens offers the full pages to other sequences, if the extent is not edited and all numbers of extent.first are at
  // borders of pages. After an error the cache is as it was.
  [[nodiscard]] Status install(const KvExtent& extent) noexcept;

  // Moves the pages of a paged cache to the pools' file (KvPoolOptions::file), so that other sequences can have their memory. The pages are
  // written in the background; a page's memory is freed once the page is written. A page that cannot be written stays in memory, and so do
  // shared pages, for their other holders. Until resume() the cache has a length, but no keys and values: do not call view(), fork(),
  // clone() or convert_to(). reserve() and edit() resume it by themselves. Errors: cache_full, the file has no room.
  [[nodiscard]] Status suspend() noexcept;
  // Begins to read the pages back, so that a later resume() waits less.
  [[nodiscard]] Status prefetch() noexcept;
  // Brings all pages back to memory, with the same bits. After an error (no room, a read error) the cache is suspended as before.
  [[nodiscard]] Status resume() noexcept;
  [[nodiscard]] bool suspended() const noexcept;

  // Returns a copy that shares all pages with this cache. The first write to a shared page, by either cache, copies only that page. Errors:
  // invalid_state, a contiguous cache: use clone().
  [[nodiscard]] Result<KvCache> fork() const noexcept;
  // Returns a copy with its own memory, of the same kind, type and page size.
  [[nodiscard]] Result<KvCache> clone() const noexcept;
  // Copies this cache's records (keys and values) into `to`, an empty cache of the same model that may have another kind, KV type, page
  // size and Memory. If the types are equal, the records have the same bits. Otherwise they are decoded and encoded again, and `to` is
  // marked as edited. After an error `to` is empty.
  [[nodiscard]] Status convert_to(KvCache& to) const noexcept;

  // Returns a checksum by which two caches can be compared: the XXH3-64 of a layer's records (extend/kv/records.hpp) from first_of_layer()
  // on: all keys, head by head and position by position, then all values. For a recurrent layer: the hash of its state. The checksum does
  // not depend on page size, kind or Memory. Layers that share keys (LayerSpec::keys_of) have the same checksum. Returns 0 if `layer` does
  // not exist, if the cache is suspended, or if the records cannot be read (LayerOnHost::read()).
  [[nodiscard]] std::uint64_t checksum(std::size_t layer) const noexcept;

 private:
  struct State;
  explicit KvCache(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
