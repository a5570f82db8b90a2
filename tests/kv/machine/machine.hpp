// Walks over the KV cache: caches, and beside each what it must hold (twin.hpp). An operation is done to both and they
// are compared; then the pools are checked page by page. Every command can be carried out in every state, so a sequence
// from which commands were taken is one again: that is what makes shrinking simple.
//
// To add an operation: write it (operations.hpp) and put it into kOperations.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "checked_memory.hpp"
#include "hidden_memory.hpp"
#include "kv/held_types.hpp"
#include "kv/pages/pools_state.hpp"
#include "twin.hpp"

namespace tessera::tests {

// What the library did is not what it promises.
struct Broken : std::logic_error {
  using std::logic_error::logic_error;
};

template <class... Args>
void expect(bool holds, fmt::format_string<Args...> what, Args&&... args) {
  if (!holds) throw Broken(fmt::format(what, std::forward<Args>(args)...));
}

struct Command {
  std::uint8_t operation = 0;            // in kOperations
  std::uint8_t which = 0, a = 0, b = 0;  // the cache, and what the operation makes of them
};

// A walk's circumstances. Zeros are the plainest.
struct Setup {
  std::uint8_t types = 0, pages = 0, heads = 0, budget = 0, keep = 0, slab = 0, hash = 0, freed = 0;
};

// Of all walks together.
struct Counts {
  std::array<std::uint64_t, 32> operations = {};
  std::uint64_t total = 0;
  std::uint64_t refused_capacity = 0, refused_pages = 0, refused_state = 0, allocation_failures = 0;
  std::uint64_t prefix_hits = 0, prefix_tokens = 0, copies = 0, evictions = 0;
  std::uint64_t pages_written = 0, pages_read = 0;  // to the file and from it
  std::uint64_t pages_passed = 0;   // by windows
  std::uint64_t tails_moved = 0;    // of groups of which only the end was moved, over what a window had passed
  std::uint64_t window_resets = 0;  // truncated behind what the window had passed
  std::uint64_t most_caches = 0, most_sharers = 0, most_groups = 0, shared_places = 0;
};

class Machine {
 public:
  Machine(const Setup& setup, Counts& counts);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  struct Operation {
    const char* name;
    unsigned weight;  // of 100 or so
    void (Machine::*run)(const Command&);
  };
  static const Operation kOperations[];
  static std::span<const Operation> operations();

  // Throws Broken.
  void run(const Command& command);
  // Ends all caches: everything goes back.
  void finish();

  [[nodiscard]] std::vector<Twin>& caches() noexcept { return caches_; }

 private:
  static constexpr std::size_t kMaxCaches = 10;

  // operations.hpp
  void create(const Command&);
  void window(const Command&);
  void append(const Command&);
  void cancel(const Command&);
  void adopt(const Command&);
  void fork(const Command&);
  void clone(const Command&);
  void convert(const Command&);
  void save_restore(const Command&);
  void truncate(const Command&);
  void edit(const Command&);
  void take_out(const Command&);
  void drop(const Command&);
  void evict(const Command&);
  void suspend(const Command&);
  void resume(const Command&);
  void fail_allocation(const Command&);

  // Parts of operations.
  [[nodiscard]] std::optional<Twin> make(const KvLayout& layout, KvKind kind, std::uint64_t capacity, PassedPages passed,
                                         std::uint32_t salt);
  // The layout with other windows in its groups; the walks' own one with those of another cache.
  [[nodiscard]] static KvLayout with_window(KvLayout layout, std::uint64_t window);
  [[nodiscard]] static KvLayout with_windows_of(KvLayout layout, const KvLayout& other);
  [[nodiscard]] Twin* any(const Command& command);
  [[nodiscard]] bool bring_back(Twin& twin);
  void drain() const;
  void add(Twin&& twin);
  void remove(std::size_t index);
  std::uint64_t adopt_into(Twin& twin, std::span<const Token> tokens);
  template <class Fn>
  [[nodiscard]] Status make_writable(Twin& twin, std::uint64_t first, std::uint64_t last, std::uint64_t reserved,
                                     Fn&& fn);
  [[nodiscard]] bool reserve(Twin& twin, std::uint64_t tokens);
  void commit(Twin& twin, bool offer);
  using Wanted = std::vector<std::uint64_t>;  // pages of each group
  [[nodiscard]] Wanted pages_to_acquire(const Twin& twin, std::uint64_t first, std::uint64_t last) const;
  // The same of tokens that are taken out; of a group `again` and later ones, though a window has passed them.
  [[nodiscard]] Wanted pages_to_move_to(const Twin& twin, std::uint64_t first, std::span<const std::uint64_t> again, std::uint64_t last) const;
  [[nodiscard]] static Wanted pages_held(const Twin& twin, std::uint64_t tokens);
  void expect_out_of_memory(const Error& error);
  void expect_refused(const Error& error, KvKind kind, const KvLayout& layout, const Wanted& wanted);
  void expect_private(const Twin& twin, std::uint64_t first, std::uint64_t last) const;
  [[nodiscard]] Stamp unique_stamp() noexcept { return mix(~std::uint64_t{0}, ++stamps_made_); }

  // Calls the library, and waits for what it writes behind: what is looked at then does not change meanwhile. If an
  // allocation is to fail, it is one of those that fn makes.
  template <class Fn>
  auto call(Fn&& fn) {
    struct Watch {
      Machine& m;
      counted::Scope scope;
      explicit Watch(Machine& machine)
          : m(machine), scope(machine.armed_ ? machine.allocations_left_ : -1, machine.failure_) {}
      ~Watch() {
        scope.stop();
        m.drain();
        m.struck_last_ = false;
        if (!m.armed_) return;
        m.struck_last_ = counted::failed > 0;
        m.struck_ = m.struck_ || m.struck_last_;
        m.armed_ = counted::failed == 0 || m.failure_ == counted::Failure::from_then_on;
        m.allocations_left_ = std::max<std::int64_t>(0, counted::left);
      }
    };
    const Watch watch(*this);
    return fn();
  }

  // invariants.hpp
  void check_pools();
  void check_settled() const;
  void check_state(const Twin& twin) const;
  void check_records(const Twin& twin);
  void check_all_records();
  void check_pages_of(const detail::PagePool& pool);

  [[nodiscard]] detail::PagePool* pool_of(const KvGroup& group) const;
  [[nodiscard]] static detail::PageId id_of(const detail::PagePool& pool, const std::byte* page);

  Counts& counts_;
  CheckedMemory memory_;
  HiddenMemory hidden_{memory_};
  KvPoolOptions options_;
  std::vector<KvLayout> layouts_;  // of all caches, but for windows: three
  std::optional<KvPools> pools_;
  std::vector<Twin> caches_;
  Records records_;

  bool armed_ = false;                         // an allocation of the next command is to fail
  bool struck_ = false, struck_last_ = false;  // one did: in this command, in its last call
  std::int64_t allocations_left_ = 0;
  counted::Failure failure_ = counted::Failure::once;

  Command command_;           // the present one
  bool pools_first_ = false;  // to be ended before the caches
  std::uint64_t stamps_made_ = 0, steps_ = 0;
  std::uint64_t hits_ = 0, tokens_saved_ = 0, copies_ = 0;  // what the figures must say
  std::vector<std::byte*> held_;                            // scratch of check_pages_of
};

inline Hash128 constant_hash(const Hash128&, std::span<const std::byte>) noexcept { return {}; }
inline Hash128 two_bit_hash(const Hash128& parent, std::span<const std::byte> bytes) noexcept {
  std::uint64_t sum = parent.low;
  for (const std::byte byte : bytes) sum = sum * 31 + static_cast<std::uint64_t>(byte);
  return {.low = mix(sum, 0) & 3, .high = 0};
}

inline Machine::Machine(const Setup& setup, Counts& counts) : counts_(counts) {
  constexpr std::uint32_t kPages[] = {16, 32, 64};
  const KvLayerShape plain{.kv_heads = 1, .key_dim = 4, .value_dim = 2};
  const KvLayerShape wide{.kv_heads = 2, .key_dim = 2, .value_dim = 4};
  // One, two and three groups; layers that share a place; groups of equal pages, and of different ones.
  const std::vector<KvLayerNeeds> kinds[] = {
      {{.shape = plain}},
      {{.shape = plain}, {.shape = plain, .window = 20}},
      {{.shape = wide}, {.shape = plain, .window = 33}, {.shape = plain, .window = 33, .shares = 1}, {.shape = wide, .shares = 0}},
      {{.shape = plain}, {.shape = wide, .window = 5}, {.shape = plain, .window = 40}, {.shape = wide, .window = 5, .shares = 1}},
      {{.shape = plain, .window = 50}, {.shape = plain, .window = 10}},
      {{.shape = plain}, {.shape = plain, .shares = 0}},
      {{.shape = wide, .window = 1}, {.shape = plain}, {.shape = wide}, {.shape = plain, .window = 64}},
      {{.shape = wide}, {.shape = plain}},
  };
  auto layers = kinds[setup.heads % 8];
  // Two page sizes of one type and one of another: conversions, and pools that compete.
  constexpr std::size_t kTypes = std::size(test::kKvTypes);
  const DType first = test::kKvTypes[setup.types % kTypes], second = test::kKvTypes[(setup.types / kTypes + setup.types + 1) % kTypes];
  const std::size_t page = setup.pages % 3;
  // A first layer of a type that is the same in all layouts.
  if (setup.heads / 8 % 2 == 1) {
    layers[0].dtype = test::kKvTypes[(setup.types + 3) % kTypes];
    for (KvLayerNeeds& layer : layers) {
      if (layer.shares == 0) layer.dtype = layers[0].dtype;
    }
  }
  for (const auto& [type, tokens] : {std::pair{first, kPages[page]}, std::pair{first, kPages[(page + 1) % 3]},
                                     std::pair{second, kPages[setup.pages / 3 % 3]}}) {
    auto layout = make_kv_layout(layers, type, tokens);
    expect(layout.has_value(), "no layout");
    layouts_.push_back(*std::move(layout));
  }
  const std::uint64_t largest = std::max({layouts_[0].page_bytes(), layouts_[1].page_bytes(), layouts_[2].page_bytes()});
  constexpr std::uint64_t kBudgets[] = {0, 40, 20, 10, 5};  // in pages of the largest kind
  constexpr std::uint64_t kSlabs[] = {1, 2, 3, 7};
  options_.memory = setup.freed / 32 % 2 == 0 ? static_cast<Memory*>(&memory_) : &hidden_;
  options_.budget = kBudgets[setup.budget % 5] * largest;
  options_.keep = setup.keep % 4 * (options_.budget != 0 ? options_.budget / 3 : 12 * largest);
  options_.max_slab_pages = kSlabs[setup.slab % 4];
  pools_first_ = setup.freed / 2 % 2 == 1;
  if (setup.freed / 4 % 4 == 3) {  // a page takes a block of the file
    options_.file = std::filesystem::temp_directory_path() / fmt::format("tessera-walk-{}", ::getpid());
    options_.file_bytes = (setup.freed / 16 % 2 == 0 ? 8 : 100) * std::uint64_t{4096};
  }
  options_.freed = setup.freed % 2 == 0 ? FreedPages::leave : FreedPages::fill_nan;
  options_.hash = std::array<PrefixHash, 4>{nullptr, nullptr, two_bit_hash, constant_hash}[setup.hash % 4];
  auto pools = KvPools::create(options_);
  expect(pools.has_value(), "no pools");
  pools_ = *std::move(pools);
}

inline void Machine::run(const Command& command) {
  const std::size_t index = command.operation % operations().size();
  const Operation& operation = kOperations[index];
  struck_ = false;
  command_ = command;
  try {
    (this->*operation.run)(command);
    drain();
    check_pools();
    check_all_records();
    ++steps_;
  } catch (const Broken& broken) {
    throw Broken(fmt::format("after operation {}, {}: {}", steps_, operation.name, broken.what()));
  }
  if (operation.run != &Machine::fail_allocation) armed_ = false;
  counts_.allocation_failures += struck_ ? 1 : 0;
  ++counts_.operations[index];
  ++counts_.total;
  counts_.most_caches = std::max<std::uint64_t>(counts_.most_caches, caches_.size());
}

inline void Machine::finish() {
  check_all_records();
  counts_.copies += copies_;
  counts_.prefix_hits += hits_;
  counts_.prefix_tokens += tokens_saved_;
  counts_.evictions += pools_->figures().evictions;
  counts_.pages_written += pools_->figures().pages_written;
  counts_.pages_read += pools_->figures().pages_read;
  if (pools_first_) {  // the caches keep them alive
    pools_.reset();
    check_all_records();
    caches_.clear();
  } else {
    caches_.clear();
    drain();
    check_pools();
    check_settled();
    expect(pools_->figures().used_bytes == 0, "pages are used although no cache is left");
    pools_->trim();
    expect(pools_->figures().held_bytes == 0, "{} bytes are held after trim()", pools_->figures().held_bytes);
    expect(pools_->figures().file_bytes == 0, "{} bytes of the file are taken", pools_->figures().file_bytes);
    pools_.reset();
  }
  expect(memory_.allocated() == 0 && memory_.reserved() == 0 && memory_.committed() == 0,
         "{} bytes of pages, {} reserved and {} committed are not returned", memory_.allocated(), memory_.reserved(),
         memory_.committed());
  expect(hidden_.makes_sense(), "what is not the device's memory was taken for it");
}

}  // namespace tessera::tests
