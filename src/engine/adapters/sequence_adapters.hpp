// The adapters of one sequence, in the order in which their changes are made: by first position. Adapters with the same first position are
// in the caller's order. An adapter changes the rows from its first position on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <tessera/adapter.hpp>
#include <tessera/core/result.hpp>
#include <tessera/kv/kv_cache.hpp>

namespace tessera::detail {

// Returns the position at which the adapter's invocation (the tokens that activate it) begins among `tokens`; if it is there several
// times, the last one counts. nullopt: `tokens` does not have the invocation. Precondition: the adapter has an invocation.
[[nodiscard]] std::optional<std::uint64_t> last_invocation(const Adapter& adapter, std::span<const Token> tokens) noexcept;

class SequenceAdapters {
 public:
  // The value of `from` for an adapter whose invocation has not come yet.
  static constexpr std::uint64_t kNotInvoked = UINT64_MAX;

  struct One {
    Adapter adapter;
    float scale = 1.0f;
    std::uint64_t from = 0;
    bool waits = false;  // true: the adapter's invocation sets `from`
  };

  SequenceAdapters() noexcept = default;
  // Makes the list. Leaves out uses with scale 0. Errors: invalid_argument, an empty adapter, or a scale that is NaN or infinite.
  [[nodiscard]] static Result<SequenceAdapters> make(std::span<const AdapterUse> uses);

  // Sorts `list` by first position. Adapters with the same first position stay in their order.
  explicit SequenceAdapters(std::vector<One> list);
  // A copy reserves memory for a key of each adapter, so that set_keys() never allocates.
  SequenceAdapters(const SequenceAdapters& other);
  SequenceAdapters& operator=(const SequenceAdapters& other) { return *this = SequenceAdapters(other); }
  SequenceAdapters(SequenceAdapters&&) noexcept = default;
  SequenceAdapters& operator=(SequenceAdapters&&) noexcept = default;
  ~SequenceAdapters() = default;

  [[nodiscard]] bool empty() const noexcept { return list_.empty(); }
  [[nodiscard]] std::span<const One> list() const noexcept { return list_; }
  // Returns the adapters as the prefix index compares them (part of a prefix's key), without those that wait for their invocation.
  [[nodiscard]] std::span<const KvAdapter> keys() const noexcept { return keys_; }
  [[nodiscard]] std::vector<AdapterUse> uses() const;

  // Returns the number of adapters that change the row at `position`: the first elements of list().
  [[nodiscard]] std::uint32_t active_at(std::uint64_t position) const noexcept;
  // Compares a sequence with these adapters and a sequence of the same tokens with `other`. Returns the first position whose row the two
  // sequences compute differently; UINT64_MAX if they compute all rows alike.
  [[nodiscard]] std::uint64_t first_difference(const SequenceAdapters& other) const noexcept;

  [[nodiscard]] bool wait_for_invocation() const noexcept;
  // Activates each waiting adapter whose whole invocation is among `tokens`: from the first token of its last invocation on. The first of
  // `tokens` is at `position`. Adapters that are already active do not change.
  void invoke(std::span<const Token> tokens, std::uint64_t position) noexcept;
  // Returns these adapters for a sequence that consists of `tokens`. An adapter that is activated by its invocation begins at its last
  // invocation among `tokens`; it waits if `tokens` has none. Adapters with a fixed first position keep it.
  [[nodiscard]] SequenceAdapters placed_in(std::span<const Token> tokens) const;
  // Update the adapters when the sequence is edited. truncate(): only the first `tokens` tokens stay. An adapter that loses a token of
  // its invocation waits again. erase(): tokens [first, last) are removed. All active adapters stay active, and their first positions
  // move with the tokens.
  void truncate(std::uint64_t tokens) noexcept;
  void erase(std::uint64_t first, std::uint64_t last) noexcept;
  // Returns the lowest first position of all adapters that would wait again after truncate(tokens); UINT64_MAX if no adapter would.
  [[nodiscard]] std::uint64_t first_cut(std::uint64_t tokens) const noexcept;

  // Keep the same adapters active between settle() and release(): invoke() activates no adapter, and truncate() makes none wait. settle()
  // is called once a request's whole prompt is known, which decides the adapters that are active for the request.
  void settle() noexcept { is_settled_ = true; }
  void release() noexcept { is_settled_ = false; }

 private:
  // Returns whether the sequence's first `tokens` tokens lack a token of the invocation that activated the adapter.
  [[nodiscard]] bool is_cut(const One& one, std::uint64_t tokens) const noexcept;
  void set_keys() noexcept;  // sorts list_, and makes keys_ from it. Never allocates: keys_ has memory for a key of each adapter

  std::vector<One> list_;
  std::vector<KvAdapter> keys_;
  bool is_settled_ = false;
};

}  // namespace tessera::detail
