// The keys and values of one sequence, as an object. There are two layouts. Code reads and writes both layouts through the same address
// functions (kv_view.hpp):
//   contiguous  address space for the whole capacity is reserved when the cache is made, and pages of it are committed as
//               the sequence grows
//   paged       pages come from the engine's pools (kv_pools.hpp), can be shared between sequences (fork, prefix reuse),
//               and are copied before a write that another holder must not see
// Each group of layers (kv_layout.hpp) has its own pages. A function that allocates or frees pages does so in every group or in none.
//
// Recurrent layers have a state instead of keys and values. The cache holds the state after the sequence's last token, and checkpoints: the
// states at the borders of its newest pages. So a sequence with recurrent layers is truncated to a checkpoint, and the tokens after the
// checkpoint are computed again.
//
// A forward pass writes between two calls, so that a failed or cancelled pass does not change the sequence. reserve(n) makes room for
// positions below n, the pass writes the records, and commit(n) makes the positions part of the sequence.
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

// Says what commit() does with pages that were reserved beyond the committed tokens.
enum class Reserved : std::int32_t {
  give_back = 0,
  keep = 1,  // the positions written there may be committed later
};

// Says what happens to pages whose tokens a group's sliding window no longer sees (pages that the window has passed).
enum class PassedPages : std::int32_t {
  give_back = 0,  // a page is freed once the window begins more than a page after it. Exception: an edited sequence keeps its pages
  keep = 1,       // pages stay, because an edit may need them again
  give_back_edited = 2,  // as give_back, but pages of edited sequences are freed too: see begin_removal()
};

// The number of checkpoints that a sequence keeps by default: enough to go back by more than a page.
inline constexpr std::uint32_t kDefaultCheckpoints = 2;
inline constexpr std::uint32_t kAllCheckpoints = ~std::uint32_t{0};
// The most states of recurrent layers that one append offers to other sequences, in the prefix index.
inline constexpr std::uint32_t kMostOffered = 8;

struct KvCacheOptions {
  std::uint64_t capacity = 0;  // tokens at most
  std::uint32_t checkpoints = kDefaultCheckpoints;  // states of recurrent layers kept at the borders of the newest full pages
  PassedPages passed = PassedPages::give_back;
  // Paged caches: a text of everything that the contents of pages depend on besides the tokens (model, numerics, salt). Two sequences share
  // a prefix only if their texts are equal. Empty: no sharing.
  std::string prefix_identity = {};
  // Contiguous caches: an owner of the Memory, kept alive as long as the cache. Paged caches: see KvPoolOptions.
  std::shared_ptr<Memory> memory_owner = {};
};

// Returns the identity of an input that is no token: the XXH3-128 of an embedding's width and bits. Two embeddings with one different bit
// have different identities. The hash is not cryptographic: see docs/explanation/kv-cache.md, "Sharing".
[[nodiscard]] Hash128 content_hash(std::span<const float> embedding) noexcept;

// An adapter that changes a sequence's keys and values.
struct KvAdapter {
  std::uint64_t from = 0;  // the first position that it changes
  Hash128 content;         // hash of the adapter and of the scale with which it is used

  bool operator==(const KvAdapter&) const noexcept = default;
};

// The inputs of consecutive positions. Example: two tokens, two embeddings and a token are {.tokens = 5, 6, -1, -1, 7} and two contents.
struct KvInputs {
  std::span<const Token> tokens = {};      // -1 for an embedding
  std::span<const Hash128> contents = {};  // content_hash() of each embedding, in order. If there are fewer, the last contents are missing
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
  // Returns the adapters that begin at one of these inputs (KvAdapter::from). They are part of the key under which the prefix index stores
  // the inputs' page. Adapters that begin earlier are left out, because they are part of the key of an earlier page.
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

// The positions and states that a cache holds.
struct KvExtent {
  std::uint64_t length = 0;                // tokens of the sequence
  std::vector<std::uint64_t> first = {};   // [group]: the first position that the group holds; empty: 0 in all groups
  std::vector<std::uint64_t> states = {};  // KvCache::states(); empty without recurrent layers
  bool edited = false;                     // see KvCache::edit()
};

// A removal of tokens that KvCache::begin_removal() has prepared.
struct KvRemoval {
  std::uint64_t tokens = 0;              // number of tokens to remove
  std::vector<std::uint64_t> from = {};  // [group]: the caller moves no record of the group before this position
};

class KvCache {
 public:
  // Makes an empty cache. contiguous() reserves address space for the capacity and commits none of it.
  [[nodiscard]] static Result<KvCache> contiguous(KvLayout layout, const KvCacheOptions& options, Memory& memory) noexcept;
  [[nodiscard]] static Result<KvCache> paged(KvLayout layout, const KvCacheOptions& options, const KvPools& pools) noexcept;
  KvCache() noexcept;  // an empty handle (docs/headers.md)
  KvCache(KvCache&&) noexcept;
  KvCache& operator=(KvCache&&) noexcept;
  ~KvCache();

  [[nodiscard]] KvKind kind() const noexcept;
  [[nodiscard]] std::uint64_t length() const noexcept;    // tokens of the sequence
  // Returns the first position whose keys and values all layers still hold: the largest first_of_group(). The result is above 0 once a
  // group has freed pages that its sliding window has passed.
  [[nodiscard]] std::uint64_t first() const noexcept;
  // Returns the first position that the group's layers still hold.
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
  // Returns the memory that holds the pages. If the processor cannot address it, read the records through extend/kv/layer_on_host.hpp.
  [[nodiscard]] Memory& memory() const noexcept;

  // Makes positions [length, tokens) writable: takes memory for them, and copies the last page if it is shared. Positions from `exact_from`
  // on are drafts: commit() may end the sequence at any draft. Errors: cache_full, beyond the capacity or the pools' budget; device_error,
  // see Memory::copy(). After an error the cache is as it was. Exception: a suspended cache may have been resumed.
  [[nodiscard]] Status reserve(std::uint64_t tokens, std::uint64_t exact_from = ~std::uint64_t{0}) noexcept;
  // Gives a fork its own pages for positions [first, tokens), so that the fork can be a branch of a tree of drafts. Call it on a fork whose
  // parent has reserved the positions before `first`. If `first` lies inside a page, that page is copied, and the pass that writes the
  // positions before `first` must write them to the copy too. Errors: unsupported, with recurrent layers or positions that neither cache
  // has. After an error destroy the fork.
  [[nodiscard]] Status reserve_branch(std::uint64_t first, std::uint64_t tokens) noexcept;
  // Makes the sequence `tokens` tokens long, but no longer than was reserved. Pages that reserve() took beyond `tokens` are freed, unless
  // `beyond` is Reserved::keep. Pages that a group's window has passed are freed too. `sequence` has the inputs of all positions from 0 on:
  // pass it if other sequences may find the full pages in the prefix index. Other sequences find no page that holds or follows an embedding
  // without a content.
  // With recurrent layers a sequence can end only where a state was kept: after the last reserved position, after each draft, after the
  // last position before the drafts, and at some borders of pages. If no state was kept at `tokens`, length() becomes the last position
  // before `tokens` that has a state, or stays as it was.
  void commit(std::uint64_t tokens, const KvInputs& sequence = {}, Reserved beyond = Reserved::give_back) noexcept;
  // Drops the tokens from position `tokens` on; pages that become empty are freed at once. If `tokens` is length() or more, nothing
  // changes. With recurrent layers length() becomes the last checkpoint at or before `tokens`. If a group's window has passed keys that the
  // next position needs, all tokens are dropped and length() is 0: the tokens have to be computed again.
  void truncate(std::uint64_t tokens) noexcept;
  void clear() noexcept { truncate(0); }

  // Returns the lengths at which the cache holds a state of the recurrent layers, ascending; the last is length(). Empty for an
  // empty cache and without recurrent layers.
  [[nodiscard]] std::vector<std::uint64_t> states() const;

  // Appends the pages that the prefix index has for `inputs`, which continue the sequence, and returns how many tokens they hold. Returns 0
  // if the sequence does not end at a page's border, or if an earlier page is not in the index (it neither came from the index nor was
  // added to it). From a group with a window only the pages that the window still sees are taken. Exception: a sequence that has tokens
  // already takes all pages of every group, so that truncate() can restore the old length.
  [[nodiscard]] std::uint64_t adopt(const KvInputs& inputs) noexcept;
  // Prepares for changing the records of positions [first, last) in place: makes their pages writable, as reserve() does, and marks the
  // cache as edited. From then on other sequences find none of the cache's pages, and by default no window frees pages. Errors: those of
  // reserve(); invalid_state, a window has freed pages already; unsupported, recurrent layers.
  [[nodiscard]] Status edit(std::uint64_t first, std::uint64_t last = ~std::uint64_t{0}) noexcept;
  // Prepares the removal of `tokens` tokens out of the tokens [first, end): calls edit() for the positions to which the later tokens move
  // up. The caller then moves the records and calls end_removal(). With PassedPages::give_back_edited, a group whose window begins more
  // than a page after `end` keeps and moves only the records after `end`. Errors: those of edit(); invalid_argument, the range.
  [[nodiscard]] Result<KvRemoval> begin_removal(std::uint64_t first, std::uint64_t end, std::uint64_t tokens) noexcept;
  // Ends a removal, after the caller has moved the records: shortens the sequence by removal.tokens. A removal that does not fit the cache
  // is ignored.
  void end_removal(const KvRemoval& removal) noexcept;
  // Makes an empty cache hold positions [first, length), with a `first` for each group. The caller then writes the records
  // (extend/kv/records.hpp, extend/kv/layer_on_host.hpp), from a file or another cache. Pages before `first` take no memory. A
  // commit() with the tokens offers full pages to other sequences, if the extent is not edited and each `first` is at a page's
  // border. After an error the cache is as it was.
  [[nodiscard]] Status install(const KvExtent& extent) noexcept;

  // Moves the pages of a paged cache to the pools' file (KvPoolOptions::file). Pages are written in the background, and a page's memory is
  // freed once the page is written. A page that cannot be written stays in memory. Shared pages stay in memory for their other holders.
  // Until resume() the cache has a length, but no keys and values: do not call view(), fork(), clone() or convert_to(); reserve() and
  // edit() resume it by themselves. Errors: cache_full, the file has no room.
  [[nodiscard]] Status suspend() noexcept;
  // Begins to read the pages back, so that a later resume() waits less.
  [[nodiscard]] Status prefetch() noexcept;
  // Brings all pages back, with the same bits. After an error (no room, a read error) the cache is suspended as before.
  [[nodiscard]] Status resume() noexcept;
  [[nodiscard]] bool suspended() const noexcept;

  // Returns a copy that shares all pages with this cache. The first write to a shared page, by either cache, copies only that page. Errors:
  // invalid_state, a contiguous cache: use clone().
  [[nodiscard]] Result<KvCache> fork() const noexcept;
  // Returns a copy with its own memory, of the same kind, type and page size.
  [[nodiscard]] Result<KvCache> clone() const noexcept;
  // Copies this cache's records into `to`, an empty cache of the same model, in the kind, type, page size and Memory of `to`.
  // With the same type the records have the same bits. With another type they are decoded and encoded again, and `to` is marked
  // as edited. After an error `to` is empty.
  [[nodiscard]] Status convert_to(KvCache& to) const noexcept;

  // Returns the XXH3-64 of a layer's records (extend/kv/records.hpp) from first_of_layer() on: keys head by head, position by position,
  // then values. For a recurrent layer: the hash of its state. The checksum does not depend on page size, layout or Memory. Layers that
  // share keys (LayerSpec::keys_of) have the same checksum. Returns 0 if `layer` does not exist, if the cache is suspended, and if the
  // records cannot be read (LayerOnHost::read()).
  [[nodiscard]] std::uint64_t checksum(std::size_t layer) const noexcept;

 private:
  struct State;
  explicit KvCache(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
