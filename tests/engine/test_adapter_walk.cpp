// Random walks of sessions with adapters beside sessions without any, in one engine: they are appended to, batched, forked, cut, saved and
// restored, suspended, and change their adapters; handles of adapters are dropped and loaded again meanwhile. After each step the logits are those
// of a session that computes the same tokens from nothing, alone; without adapters, in an engine that has never loaded one.
#include <filesystem>
#include <optional>
#include <random>
#include <vector>

#include <unistd.h>

#include "engine/kv_twins.hpp"
#include "engine/made_adapter.hpp"

namespace test_adapter_walk {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr std::size_t kAdapters = 3, kSessions = 6, kLongest = 120;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kSteps = 150;
#else
constexpr int kSteps = 400;
#endif

// An adapter by its index, and its scale.
struct Use {
  std::size_t adapter;
  float scale;
};
using Uses = std::vector<Use>;

class AdapterWalk {
 public:
  explicit AdapterWalk(std::uint32_t seed)
      : random_(seed), engine_(load_golden("llama-long", options(seed))), twins_(load_golden("llama-long", {.threads = 1})), bare_(load_golden("llama-long", {.threads = 1})) {
    const ModelFile file = must(ModelFile::open(golden_dir() / "llama-long.gguf"));
    for (std::size_t i = 0; i < kAdapters; ++i) {
      const MadeAdapter how{.rank = i == 1 ? 16u : 4u, .dtype = i == 2 ? DType::f16 : DType::f32, .seed = static_cast<std::uint32_t>(i + 1)};
      paths_.push_back(folder_.write("walk" + std::to_string(i), file, how));
      twin_adapters_.push_back(must(twins_.adapter(paths_.back())));
    }
    adapters_.resize(kAdapters);
  }

  void run() {
    for (int i = 0; i < kSteps; ++i) {
      INFO("step " << i);
      if (players_.size() < 2 || (players_.size() < kSessions && below(8) == 0)) {
        const Uses uses = any_uses();
        players_.push_back({must(engine_.session({.kv = {.page_tokens = 16}, .adapters = handles(uses)})), uses});
      }
      step(players_[below(players_.size())]);
      for (Player& player : players_) {
        if (below(3) == 0) check(player);
      }
    }
    for (Player& player : players_) check(player);
    CHECK(with_adapters_ > 0);
    CHECK(without_ > 0);
  }
  std::uint64_t hits() const { return engine_.kv_figures().hits; }

 private:
  struct Player {
    Session session;
    Uses uses;
  };

  static EngineOptions options(std::uint32_t seed) {
    EngineOptions options{.threads = 1, .step_rows = seed % 2 == 0 ? 24u : 128u};
    options.freed_pages = FreedPages::fill_nan;
    options.kv_file = std::filesystem::temp_directory_path() / ("tessera-adapter-walk-" + std::to_string(::getpid()) + "-" + std::to_string(seed));
    options.kv_file_bytes = std::uint64_t{1} << 24;
    return options;
  }
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }

  // None in a third of the cases; else one or two, with a scale that may be below 0.
  Uses any_uses() {
    Uses uses;
    if (below(3) == 0) return uses;
    const std::size_t first = below(kAdapters);
    uses.push_back({first, below(2) == 0 ? 1.0f : -0.5f});
    if (below(3) == 0) uses.push_back({(first + 1) % kAdapters, 0.25f});
    return uses;
  }
  // Loads adapters whose handles were dropped.
  std::vector<AdapterUse> handles(const Uses& uses) {
    std::vector<AdapterUse> all;
    for (const Use& use : uses) {
      std::optional<Adapter>& adapter = adapters_[use.adapter];
      if (!adapter) adapter = must(engine_.adapter(paths_[use.adapter]));
      all.push_back({.adapter = *adapter, .scale = use.scale});
    }
    return all;
  }
  // The beginnings of texts are few, so that pages of other sessions would be found if they were taken for one's own.
  std::vector<Token> more(std::size_t at, std::size_t n) {
    std::vector<Token> tokens(n);
    const std::size_t text = below(2);
    for (std::size_t i = 0; i < n; ++i) tokens[i] = static_cast<Token>(3 + ((at + i) * (7 + text)) % 90);
    return tokens;
  }

  void step(Player& player) {
    Session& session = player.session;
    const std::size_t length = session.tokens().size();
    switch (below(9)) {
      case 0:
      case 1:
        if (length > kLongest) must(session.truncate(below(length)));
        else (void)must(session.append(more(length, 1 + below(40))));
        break;
      case 2: batch(); break;
      case 3:
        if (!session.suspended() && players_.size() < kSessions) players_.push_back({must(session.fork()), player.uses});
        break;
      case 4: must(session.truncate(below(length + 1))); break;
      case 5: {
        if (session.suspended()) break;
        (void)handles(player.uses);  // a file names its adapters, which must be loaded
        std::vector<std::byte> saved;
        must(session.save([&](std::span<const std::byte> bytes) { return saved.insert(saved.end(), bytes.begin(), bytes.end()), Status(); }));
        session = must(engine_.restore(saved, {.kv = {.page_tokens = 32}}));
        break;
      }
      case 6:
        player.uses = any_uses();
        must(session.use_adapters(handles(player.uses)));
        break;
      case 7:
        if (session.suspended()) must(session.resume());
        else if (length > 0) must(session.suspend());
        break;
      case 8:
        adapters_[below(kAdapters)].reset();  // sessions that use it go on
        if (players_.size() > 2 && below(2) == 0) players_.erase(players_.begin() + static_cast<std::ptrdiff_t>(below(players_.size())));
        break;
    }
  }

  // All sessions with a token in one step, whatever their adapters.
  void batch() {
    Batch rows;
    for (Player& player : players_) {
      if (player.session.suspended()) must(player.session.resume());
      if (player.session.has_pending()) (void)must(player.session.append({}));
      const std::size_t length = player.session.tokens().size();
      if (length > kLongest) continue;
      must(rows.add(player.session, more(length, 1 + below(3))));
    }
    if (rows.size() > 0) (void)must(engine_.forward(rows));
  }

  void check(Player& player) {
    if (player.session.tokens().empty()) return;
    (void)must(player.session.append({}));
    ++(player.uses.empty() ? without_ : with_adapters_);
    std::vector<AdapterUse> uses;
    for (const Use& use : player.uses) uses.push_back({.adapter = twin_adapters_[use.adapter], .scale = use.scale});
    Session twin = must((uses.empty() ? bare_ : twins_).session({.kv = {.prefix = PrefixReuse::off}, .adapters = uses}));
    const Logits logits = must(twin.append(player.session.tokens()));
    REQUIRE(same_bits(player.session.logits(), logits.values));
  }

  std::mt19937 random_;
  AdapterFolder folder_;
  Engine engine_, twins_, bare_;
  std::vector<std::filesystem::path> paths_;
  std::vector<Adapter> twin_adapters_;
  std::vector<std::optional<Adapter>> adapters_;
  std::vector<Player> players_;
  std::size_t with_adapters_ = 0, without_ = 0;
};

}  // namespace

TEST_CASE("Sessions with adapters and without walk beside each other, each with its own bits", "[adapters]") {
  std::uint64_t hits = 0;  // pages that a session found, of another with the same adapters
  for (std::uint32_t seed = 1; seed <= 4; ++seed) {
    INFO("seed " << seed);
    AdapterWalk walk(seed);
    walk.run();
    hits += walk.hits();
  }
  CHECK(hits > 0);
}

}  // namespace test_adapter_walk
