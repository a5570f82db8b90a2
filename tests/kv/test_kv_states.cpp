// States of recurrent layers in the cache. Instead of a mixer the tests leave a stamp behind each row, a hash of all tokens up
// to it, by the addresses that KvView gives, and look at it wherever the cache says that it holds a state.
#include <cstring>
#include <optional>
#include <random>

#include <tessera/unstable/kv/page_cost.hpp>

#include "catch.hpp"
#include "kv/pages/pools_state.hpp"
#include "machine/checked_memory.hpp"
#include "machine/twin.hpp"

namespace test_kv_states {

using namespace tessera;
using namespace tessera::tests;

namespace {

constexpr std::uint64_t kWords = 5;  // of a state
constexpr std::uint32_t kPage = 16;
constexpr std::size_t kFirst = 0, kSecond = 2;  // recurrent layers
const std::vector<KvLayerNeeds> kHybrid = {{.shape = {.state_bytes = kWords * sizeof(Stamp)}},
                                           {.shape = {.kv_heads = 1, .key_dim = 4, .value_dim = 4}},
                                           {.shape = {.state_bytes = kWords * sizeof(Stamp)}}};
constexpr std::size_t kLayers[] = {kFirst, kSecond};

KvLayout hybrid(std::uint32_t page = kPage, DType type = DType::f16) { return *make_kv_layout(kHybrid, type, page); }

Stamp word_of(Stamp stamp, std::size_t layer, std::uint64_t word) { return mix(stamp, layer * 100 + word); }

void write(std::byte* to, Stamp stamp, std::size_t layer) {
  for (std::uint64_t word = 0; word < kWords; ++word) {
    const Stamp value = word_of(stamp, layer, word);
    std::memcpy(to + word * sizeof value, &value, sizeof value);
  }
}
bool holds(const std::byte* at, Stamp stamp, std::size_t layer) {
  for (std::uint64_t word = 0; word < kWords; ++word) {
    const Stamp value = word_of(stamp, layer, word);
    if (std::memcmp(at + word * sizeof value, &value, sizeof value) != 0) return false;
  }
  return true;
}

// A cache and its tokens.
struct Sequence {
  KvCache cache;
  std::vector<Token> tokens = {};

  [[nodiscard]] Stamp stamp(std::uint64_t n) const {
    Stamp stamp = 0;
    for (const Token token : std::span(tokens).first(n)) stamp = mix(stamp, static_cast<std::uint64_t>(token));
    return stamp;
  }
  // Rows [first, last) of a step, as a mixer computes them.
  void compute(std::uint64_t first, std::uint64_t last) const {
    const KvView view = cache.view();
    for (std::uint64_t position = first; position < last; ++position) {
      for (const std::size_t layer : kLayers) {
        const std::byte* const before = view.state_before(layer, position);
        REQUIRE((position == 0) == (before == nullptr));
        if (before != nullptr) REQUIRE(holds(before, stamp(position), layer));
        write(view.state_after(layer, position), stamp(position + 1), layer);
      }
    }
  }
  // Room for so many tokens, of which the last `drafts` are drafts, and their rows; false if there is none.
  bool step(const std::vector<Token>& more, std::uint64_t drafts = 0) {
    const std::uint64_t length = cache.length(), end = length + more.size();
    if (const Status status = cache.reserve(end, end - drafts); !status) {
      CHECK((status.error().code() == ErrorCode::cache_full || status.error().code() == ErrorCode::out_of_memory));
      check();
      return false;
    }
    tokens.insert(tokens.end(), more.begin(), more.end());
    compute(length, end);
    return true;
  }
  void commit(std::uint64_t n, Reserved beyond = Reserved::give_back) {
    cache.commit(n, tokens, beyond);
    if (beyond == Reserved::give_back) tokens.resize(cache.length());
    check();
  }
  bool append(const std::vector<Token>& more) {
    if (!step(more)) return false;
    commit(tokens.size());
    REQUIRE(tokens.size() == cache.length());
    return true;
  }
  // Every state that the cache says it holds, and the last one at its end.
  void check() const {
    const auto states = cache.states();
    REQUIRE((states.empty() ? 0 : states.back()) == cache.length());
    for (const std::uint64_t n : states) {
      for (const std::size_t layer : kLayers) REQUIRE(holds(cache.view().kept_state(layer, n), stamp(n), layer));
    }
  }
  void truncate(std::uint64_t n) {
    cache.truncate(n);
    tokens.resize(cache.length());
    check();
  }
};

struct Pools {
  CheckedMemory memory;
  KvPools pools;

  explicit Pools(std::uint64_t budget = 0, KvPoolOptions options = {})
      : pools([&] {
          options.memory = &memory;
          options.budget = budget;
          options.keep = std::uint64_t{1} << 24;
          options.max_slab_pages = 1;
          options.freed = FreedPages::fill_nan;
          return *KvPools::create(options);
        }()) {}

  Sequence sequence(std::string identity = "model", std::uint32_t checkpoints = kDefaultCheckpoints) const {
    return {*KvCache::paged(hybrid(), {.capacity = 5000, .checkpoints = checkpoints, .prefix_identity = std::move(identity)}, pools)};
  }
};

std::vector<Token> some(std::uint64_t n, Token token = 7) { return std::vector<Token>(n, token); }

}  // namespace

TEST_CASE("recurrent layers are a group, and their states are no bytes of a token", "[kv][states]") {
  const KvLayout layout = hybrid();
  REQUIRE(layout.groups.size() == 2);
  CHECK(layout.groups[0].is_recurrent());
  CHECK(layout.state_group() == 0);
  CHECK(layout.state_bytes() == 2 * 64);  // each is rounded up
  CHECK(layout.page_bytes() == layout.groups[1].page_bytes);
  CHECK(layout.bytes_per_token() == 2 * 4 * 2);
  const KvLayerNeeds both[] = {{.shape = {.kv_heads = 1, .key_dim = 4, .value_dim = 4, .state_bytes = 8}}};
  CHECK(make_kv_layout(both, DType::f16, 16).error().code() == ErrorCode::invalid_argument);
  const KvLayerNeeds windowed[] = {{.shape = {.state_bytes = 8}, .window = 8}};
  CHECK(make_kv_layout(windowed, DType::f16, 16).error().code() == ErrorCode::invalid_argument);
}

TEST_CASE("a step that is not committed leaves the state as it was", "[kv][states]") {
  const Pools pools;
  for (const std::uint64_t n : {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{16}, std::uint64_t{37}}) {
    Sequence sequence = pools.sequence();
    if (n > 0) REQUIRE(sequence.append(some(n)));
    for (const std::uint64_t more : {1, 20, 300}) {
      REQUIRE(sequence.step(some(more, 9)));
      sequence.commit(n);
      CHECK(sequence.cache.length() == n);
    }
    REQUIRE(sequence.append(some(3, 5)));
  }
}

TEST_CASE("a sequence keeps its newest checkpoints, and truncation goes back to one", "[kv][states]") {
  const Pools pools;
  Sequence sequence = pools.sequence("", 3);
  REQUIRE(sequence.append(some(100)));
  CHECK(sequence.cache.states() == std::vector<std::uint64_t>{64, 80, 96, 100});
  for (int i = 0; i < 28; ++i) REQUIRE(sequence.append(some(1)));
  CHECK(sequence.cache.states() == std::vector<std::uint64_t>{96, 112, 128});
  const std::uint64_t bytes = sequence.cache.bytes();
  for (int i = 0; i < 160; ++i) REQUIRE(sequence.append(some(1)));
  CHECK(sequence.cache.bytes() == bytes + 10 * sequence.cache.layout().page_bytes());  // no more states than before
  sequence.truncate(283);
  CHECK(sequence.cache.length() == 272);
  sequence.truncate(271);
  CHECK(sequence.cache.length() == 256);
  sequence.truncate(255);
  CHECK(sequence.cache.length() == 0);
  CHECK(sequence.cache.bytes() == 0);
}

TEST_CASE("of drafts any number can be committed, at once or by and by", "[kv][states]") {
  const Pools pools;
  for (std::uint64_t accepted = 0; accepted <= 6; ++accepted) {
    for (const std::uint64_t n : {std::uint64_t{4}, std::uint64_t{14}, std::uint64_t{31}}) {
      Sequence at_once = pools.sequence();
      REQUIRE(at_once.append(some(n)));
      REQUIRE(at_once.step(some(8, 3), 6));
      at_once.commit(n + 2 + accepted);
      CHECK(at_once.cache.length() == n + 2 + accepted);
      Sequence later = pools.sequence();
      REQUIRE(later.append(some(n)));
      REQUIRE(later.step(some(8, 3), 6));
      later.commit(n + 2, Reserved::keep);
      CHECK(later.cache.length() == n + 2);
      later.commit(n + 2 + accepted);
      CHECK(later.cache.length() == n + 2 + accepted);
      REQUIRE(later.append(some(40, 2)));
    }
  }
  Sequence exact = pools.sequence();
  REQUIRE(exact.step(some(50)));
  exact.commit(49);  // no draft: back to the last border whose state is there
  CHECK(exact.cache.length() == 48);
}

TEST_CASE("a prefix is found up to a state that was offered", "[kv][states]") {
  const Pools pools;
  Sequence first = pools.sequence();
  REQUIRE(first.append(some(700)));
  Sequence second = pools.sequence();
  CHECK(second.cache.adopt(some(600)) == 512);
  second.tokens = some(512);
  second.check();
  REQUIRE(second.append(some(80)));
  Sequence third = pools.sequence();
  CHECK(third.cache.adopt(some(250)) == 0);
  Sequence fourth = pools.sequence("another");
  CHECK(fourth.cache.adopt(some(600)) == 0);
}

TEST_CASE("a sequence holds at most the states that the plan counts", "[kv][states]") {
  for (const std::uint32_t checkpoints : {1u, kDefaultCheckpoints, 40u, kAllCheckpoints}) {
    for (const bool offers : {false, true}) {
      INFO(checkpoints << " checkpoints, offers " << offers);
      const Pools pools;
      Sequence sequence = pools.sequence(offers ? "model" : "", checkpoints);
      const KvLayout& layout = sequence.cache.layout();
      const std::uint64_t pages = 9 * layout.state_pages, end = pages * kPage;
      std::uint64_t most = 0;
      const auto states = [&] { return (pools.pools.figures().used_bytes - layout.pages(end) * layout.page_bytes()) / layout.state_bytes(); };
      const std::uint64_t before = std::min<std::uint64_t>(checkpoints, pages / 2) * kPage + 3;  // checkpoints, and a live state
      REQUIRE(sequence.append(some(before)));
      REQUIRE(sequence.step(some(end - before - 1)));
      most = states();
      CHECK(most == PageCost::of(layout, checkpoints, offers).pages_at_once({.kind = KvGroupKind::recurrent}, end));
      sequence.commit(end - 1);
    }
  }
}

TEST_CASE("a fork takes its live state alone", "[kv][states]") {
  const Pools pools;
  Sequence one = pools.sequence("");
  REQUIRE(one.append(some(40)));
  const KvLayout& layout = one.cache.layout();
  const std::uint64_t used = pools.pools.figures().used_bytes;
  Sequence other{*one.cache.fork(), one.tokens};
  other.check();
  CHECK(pools.pools.figures().used_bytes == used);
  REQUIRE(other.append(some(1, 3)));
  CHECK(pools.pools.figures().used_bytes == used + layout.page_bytes() + layout.state_bytes());
  REQUIRE(one.append(some(30, 4)));
  one.check();
  other.check();
}

TEST_CASE("states are converted, cloned and suspended; an edit is refused", "[kv][states]") {
  KvPoolOptions with_file;
  with_file.file = std::filesystem::temp_directory_path() / fmt::format("tessera-states-{}", ::getpid());
  with_file.file_bytes = std::uint64_t{1} << 22;
  const Pools pools(0, with_file);
  Sequence sequence = pools.sequence("", 6);
  REQUIRE(sequence.append(some(150)));
  for (const std::uint32_t page : {16u, 32u, 64u}) {
    CheckedMemory memory;
    Sequence contiguous{*KvCache::contiguous(hybrid(page, DType::f32), {.capacity = 400}, memory), sequence.tokens};
    REQUIRE(sequence.cache.convert_to(contiguous.cache));
    contiguous.check();
    CHECK(contiguous.cache.states().size() == (page == 16 ? 7 : page == 32 ? 4 : 3));
    for (const std::size_t layer : kLayers) CHECK(contiguous.cache.checksum(layer) == sequence.cache.checksum(layer));
    REQUIRE(contiguous.append(some(100, 2)));
    contiguous.truncate(240);
    Sequence clone{*contiguous.cache.clone(), contiguous.tokens};
    clone.check();
    clone.truncate(0);
  }
  REQUIRE(sequence.cache.suspend());
  CHECK(sequence.cache.states().back() == 150);
  REQUIRE(sequence.cache.resume());
  sequence.check();
  REQUIRE(sequence.append(some(20)));
  REQUIRE(sequence.cache.suspend());
  sequence.cache.truncate(163);
  CHECK(sequence.cache.length() == 160);
  sequence.tokens.resize(160);
  REQUIRE(sequence.cache.resume());
  sequence.check();
  CHECK(sequence.cache.edit(3).error().code() == ErrorCode::unsupported);
}

// Everything at random, with little memory, and with allocations that fail.
TEST_CASE("random walks: every state that a cache holds is that of its tokens", "[kv][states][walk]") {
  std::uint64_t refused = 0, found = 0, forks = 0, back = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint64_t n) { return std::uniform_int_distribution<std::uint64_t>(0, n - 1)(random); };
    const KvLayout layout = hybrid();
    const std::uint64_t budgets[] = {0, 60, 30, 20};
    KvPoolOptions options;
    if (seed % 3 == 0) {
      options.file = std::filesystem::temp_directory_path() / fmt::format("tessera-states-{}", ::getpid());
      options.file_bytes = std::uint64_t{1} << 20;
    }
    const Pools pools(budgets[seed % 4] * (layout.page_bytes() + layout.state_bytes()), options);
    CheckedMemory memory;
    std::vector<Sequence> all;
    all.reserve(8);  // they are referred to
    for (int i = 0; i < 150; ++i) {
      if (all.empty() || (all.size() < 6 && below(8) == 0)) {
        if (below(5) == 0) {
          all.push_back({*KvCache::contiguous(layout, {.capacity = 600}, memory)});
        } else {
          all.push_back(pools.sequence(below(3) == 0 ? "" : "model", static_cast<std::uint32_t>(below(4))));
        }
      }
      Sequence& one = all[below(all.size())];
      const auto more = [&](std::uint64_t most) { return some(1 + below(most), static_cast<Token>(below(2))); };
      if (one.cache.length() > 300) one.truncate(below(300));
      switch (below(9)) {
        case 0:
        case 1:
          for (std::uint64_t n = below(20); n > 0; --n) refused += one.append(more(2)) ? 0 : 1;
          break;
        case 2: refused += one.append(more(280)) ? 0 : 1; break;
        case 3: {
          const auto rows = more(20);
          const std::uint64_t length = one.cache.length(), drafts = below(rows.size() + 1), own = rows.size() - drafts;
          if (!one.step(rows, drafts)) break;
          if (below(2) == 0) one.commit(length + own, Reserved::keep);
          if (below(4) == 0) one.truncate(length);
          else one.commit(length + own + below(drafts + 1));
          break;
        }
        case 4: one.truncate(below(one.cache.length() + 1)); break;
        case 5:
          if (one.cache.kind() == KvKind::paged && all.size() < 8) {
            all.push_back({*one.cache.fork(), one.tokens});
            all.back().check();
            ++forks;
          }
          break;
        case 6: {
          const Token token = static_cast<Token>(below(2));
          const std::uint64_t n = one.cache.adopt(some(300, token));
          found += n;
          one.tokens.insert(one.tokens.end(), n, token);
          one.check();
          break;
        }
        case 7:
          if (seed % 3 == 0 && one.cache.kind() == KvKind::paged && one.cache.suspend()) {
            if (below(2) == 0) {
              one.cache.truncate(below(one.cache.length() + 1));
              one.tokens.resize(one.cache.length());
            }
            if (one.cache.resume()) {
              one.check();
              ++back;
            } else {
              std::swap(one, all.back());
              all.pop_back();
            }
          }
          break;
        case 8:
          if (below(3) == 0) {
            std::swap(one, all.back());
            all.pop_back();
          }
          break;
      }
    }
    all.clear();
    {
      KvPools::State& state = *pools.pools.state();  // what is written behind is still used
      std::unique_lock lock(state.mutex);
      while (state.writing > 0) state.written.wait(lock);
    }
    CHECK(pools.pools.figures().used_bytes == 0);
    pools.pools.trim();
    CHECK(pools.pools.figures().held_bytes == 0);
    CHECK(memory.committed() == 0);
    CHECK(memory.reserved() == 0);
  }
  CHECK(refused > 50);
  CHECK(found > 1000);
  CHECK(forks > 50);
  CHECK(back > 20);
}

}  // namespace test_kv_states
