// The adapters of one sequence, in the order in which their changes are made: by their first positions, and within one position as the
// caller gave them. A row at position p has the adapters whose first position is p or less.
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

// Returns where the adapter's last invocation among the tokens begins; nullopt if there is none. Precondition: it has an invocation.
[[nodiscard]] std::optional<std::uint64_t> last_invocation(const Adapter& adapter, std::span<const Token> tokens) noexcept;

class SequenceAdapters {
 public:
  // The first position of an adapter whose invocation has not come yet.
  static constexpr std::uint64_t kNotInvoked = UINT64_MAX;

  struct One {
    Adapter adapter;
    float scale = 1.0f;
    std::uint64_t from = 0;
    bool waits = false;  // `from` is set by the adapter's invocation
  };

  SequenceAdapters() noexcept = default;
  // Errors: invalid_argument, an empty adapter, or a scale that is NaN or infinite. Uses with scale 0 are left out.
  [[nodiscard]] static Result<SequenceAdapters> make(std::span<const AdapterUse> uses);

  // `list` is in order, as list() of other adapters was.
  explicit SequenceAdapters(std::vector<One> list);
  // Copies have room for all keys, as set_keys() needs it.
  SequenceAdapters(const SequenceAdapters& other);
  SequenceAdapters& operator=(const SequenceAdapters& other) { return *this = SequenceAdapters(other); }
  SequenceAdapters(SequenceAdapters&&) noexcept = default;
  SequenceAdapters& operator=(SequenceAdapters&&) noexcept = default;
  ~SequenceAdapters() = default;

  [[nodiscard]] bool empty() const noexcept { return list_.empty(); }
  [[nodiscard]] std::span<const One> list() const noexcept { return list_; }
  // Returns the part of a prefix's key that the adapters are. Adapters that wait for their invocation are no part of the key.
  [[nodiscard]] std::span<const KvAdapter> keys() const noexcept { return keys_; }
  [[nodiscard]] std::vector<AdapterUse> uses() const;

  // Returns how many adapters a row at `position` has: the first ones of list().
  [[nodiscard]] std::uint32_t active_at(std::uint64_t position) const noexcept;
  // Returns the first position at which rows of sequences with these and with the other adapters differ; UINT64_MAX if none does.
  [[nodiscard]] std::uint64_t first_difference(const SequenceAdapters& other) const noexcept;

  [[nodiscard]] bool wait_for_invocation() const noexcept;
  // Activates adapters whose invocation begins among `tokens`, which follow `position` tokens: each from its last invocation on. Adapters
  // that are active stay as they are.
  void invoke(std::span<const Token> tokens, std::uint64_t position) noexcept;
  // Returns the adapters of a sequence that is these tokens: each that its invocation activates begins at the last one among them.
  [[nodiscard]] SequenceAdapters placed_in(std::span<const Token> tokens) const;
  // Follow the sequence when tokens are dropped from its end, or removed between [first, last). An adapter waits again if the sequence
  // has lost a token of its invocation's end.
  void truncate(std::uint64_t tokens) noexcept;
  void erase(std::uint64_t first, std::uint64_t last) noexcept;
  // Returns the first position of an adapter that would wait again after truncate(tokens); UINT64_MAX if none would.
  [[nodiscard]] std::uint64_t first_cut(std::uint64_t tokens) const noexcept;

  // Stops invocations from activating adapters, and truncate() from making them wait again: a request's whole prompt has decided. Until
  // release().
  void settle() noexcept { is_settled_ = true; }
  void release() noexcept { is_settled_ = false; }

 private:
  // Returns whether the sequence's first `tokens` tokens lack a token of the invocation that activated the adapter.
  [[nodiscard]] bool is_cut(const One& one, std::uint64_t tokens) const noexcept;
  void set_keys() noexcept;  // never takes memory: keys_ has room for all of list_

  std::vector<One> list_;
  std::vector<KvAdapter> keys_;
  bool is_settled_ = false;
};

}  // namespace tessera::detail
