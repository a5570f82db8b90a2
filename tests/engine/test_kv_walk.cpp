// Random walks: sessions that share beginnings are created, appended to, forked, cut, edited, converted and dropped,
// and after every step their logits are bit for bit those of a twin that was alone (kv_twins.hpp).
//
// TESSERA_TEST_OPERATIONS_WALK: operations of each layout, page size and type; if it is not set 2000, under a sanitizer
// 200.
#include <array>
#include <cstdlib>
#include <iostream>
#include <random>
#include <set>

#include "engine/kv_twins.hpp"
#include "engine/mixed_windows.hpp"
#include "kv/held_types.hpp"

namespace test_kv_walk {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr std::size_t kSessions = 5;
constexpr std::size_t kLongest = 150;  // tokens: three pages of the largest size
constexpr std::uint32_t kWindow = 40;  // of the model that has one

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kOperations = 200;
#else
constexpr std::size_t kOperations = 2000;
#endif

std::size_t operations() {
  const char* text = std::getenv("TESSERA_TEST_OPERATIONS_WALK");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : kOperations;
}

struct Model {
  Model(Engine of, const KvTypes& types) : engine(std::move(of)), twins(engine, types) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      stems.push_back(make_tokens(seed, 2 * kLongest, engine.spec().vocab_size));
    }
  }
  Engine engine;
  Twins twins;
  std::vector<std::vector<Token>> stems;  // what prompts begin with
};

// A session, and what the test knows of it.
struct Player {
  Player(Session from, Model& of) : session(std::move(from)), model(&of) {}

  Session session;
  Model* model;
  std::vector<Token> tokens;
  std::size_t computed = 0;  // the others are pending
  std::vector<Edit> edits;   // what a twin does again; empty: it only appends
  std::size_t since = 0;     // tokens computed after the last edit
  std::vector<std::uint64_t> sums;  // what its keys and values were when it was last looked at

  [[nodiscard]] std::span<const Token> done() const { return std::span(tokens).first(computed); }
  [[nodiscard]] std::span<const Token> after_edits() const { return done().last(edits.empty() ? computed : since); }
};

PrefixReuse reuse_of(KvKind kind) { return kind == KvKind::paged ? PrefixReuse::on : PrefixReuse::off; }

class Walk {
 public:
  Walk(KvKind kind, std::uint32_t page_tokens, const KvTypes& types, std::uint32_t seed)
      : kv_{.dtype = types.dtype, .kind = kind, .page_tokens = page_tokens, .prefix = reuse_of(kind), .wide = types.wide},
        random_(seed),
        full_(load_golden("llama-long", options(seed)), types),
        windowed_(load_golden("mistral-long", options(seed, kWindow)), types),
        mixed_(with_windows("mistral-long", {static_cast<std::int32_t>(kWindow), 0}, options(seed)), types) {}

  void run(std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      INFO("operation " << i << " of " << n);
      step();
      for (const Model* model : {&full_, &windowed_, &mixed_}) check_figures(*model);
    }
    for (const Player& player : players_) CHECK(checksums(player.session) == player.sums);
    report(n);
    players_.clear();
    for (const Model* model : {&full_, &windowed_, &mixed_}) {
      const KvFigures figures = model->engine.kv_figures();
      CHECK(figures.used_bytes == 0);
      if (kv_.kind == KvKind::paged && n >= 1000) {  // of fewer operations, none may happen to
        CHECK(figures.hits > 0);
        CHECK(figures.copies > 0);
      }
      model->engine.trim();
      CHECK(model->engine.kv_figures().held_bytes == 0);
    }
  }

 private:
  static EngineOptions options(std::uint32_t seed, std::optional<std::uint32_t> window = {}) {
    EngineOptions options{.sliding_window = window, .threads = 1, .step_rows = seed % 3 == 0 ? 24u : 128u};
    // Where one read of what was freed would be seen.
    if (seed % 2 == 0) options.freed_pages = FreedPages::fill_nan;
    return options;
  }

  std::size_t pick(std::size_t n) { return random_() % n; }
  Model& any_model() { return *std::array{&full_, &windowed_, &mixed_}[pick(3)]; }
  Player& any() { return players_[pick(players_.size())]; }

  void step() {
    if (players_.empty()) return create();
    act();
    const Player& other = any();
    if (checksums(other.session) != other.sums) FAIL("the keys and values of another session have changed");
  }

  void act() {
    const std::size_t n = pick(100);
    if (n < 12) return create();
    if (n < 36) return append(any());
    if (n < 50) return generate(any());
    if (n < 57) return batch();
    if (n < 68) return copy(any());
    if (n < 78) return truncate(any());
    if (n < 85) return remove(any());
    if (n < 90) return keep_window(any());
    if (n < 95) return convert(any());
    if (n < 98) return destroy();
    any_model().engine.trim();
  }

  void make_room() {
    if (players_.size() == kSessions) destroy();
  }
  void destroy() { players_.erase(players_.begin() + static_cast<std::ptrdiff_t>(pick(players_.size()))); }

  void create() {
    make_room();
    Model& model = any_model();
    players_.emplace_back(must(model.engine.session({.kv = kv_})), model);
    append(players_.back());
  }

  // Tokens that a stem goes on with, or others.
  std::vector<Token> next_tokens(const Player& player, std::size_t most) {
    const auto& stem = player.model->stems[pick(player.model->stems.size())];
    const std::size_t n = 1 + pick(most);
    if (pick(4) == 0) return make_tokens(random_(), n, player.model->engine.spec().vocab_size);
    const std::size_t at = std::min(player.tokens.size(), stem.size() - n);
    return {stem.begin() + static_cast<std::ptrdiff_t>(at), stem.begin() + static_cast<std::ptrdiff_t>(at + n)};
  }

  void append(Player& player) {
    const std::size_t room = kLongest - std::min(kLongest, player.tokens.size());
    if (room < 2) return truncate(player);
    const auto tokens = next_tokens(player, player.tokens.empty() ? room : std::min<std::size_t>(room, 40));
    const LogitsOf wanted = pick(8) == 0 ? LogitsOf::none : pick(8) == 0 ? LogitsOf::all : LogitsOf::last;
    const Logits logits = must(player.session.append(tokens, {.logits = wanted}));
    player.tokens.insert(player.tokens.end(), tokens.begin(), tokens.end());
    computed_all(player);
    if (wanted == LogitsOf::all && player.edits.empty()) {
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        const auto until = player.done().first(player.tokens.size() - tokens.size() + i + 1);
        CHECK(same_bits(logits[i], player.model->twins.logits(until)));
      }
    }
    check(player);
  }

  // One to four tokens; the last is left pending.
  void generate(Player& player) {
    if (player.tokens.size() + 4 > kLongest) return truncate(player);
    if (player.session.logits().empty() && !player.session.has_pending()) return append(player);
    Sampler sampler = sampling::chain().temperature(1.5f).seed(pick(4)).build();
    must(player.session.generate(sampler, {.max_tokens = 1 + pick(4), .end_of_generation = EndOfGeneration::ignore},
                                 {}));
    const auto tokens = player.session.tokens();
    player.tokens.insert(player.tokens.end(), tokens.begin() + static_cast<std::ptrdiff_t>(player.tokens.size()),
                         tokens.end());
    computed_all(player, 1);
    check(player);
  }

  // Two sessions of one engine in one forward().
  void batch() {
    Player& a = any();
    Player* b = nullptr;
    for (Player& other : players_) {
      if (&other != &a && other.model == a.model) b = &other;
    }
    if (b == nullptr || a.tokens.size() + 6 > kLongest || b->tokens.size() + 6 > kLongest) return append(a);
    Batch rows;
    std::vector<std::size_t> last;
    for (Player* player : {&a, b}) {
      const auto tokens = next_tokens(*player, 5);
      must(rows.add(player->session, tokens));
      last.push_back(rows.size() - 1);
      player->tokens.insert(player->tokens.end(), tokens.begin(), tokens.end());
      computed_all(*player);
    }
    const Outputs outputs = must(a.model->engine.forward(rows));
    CHECK(same_bits(outputs.row(last[0]), expected(a)));
    CHECK(same_bits(outputs.row(last[1]), expected(*b)));
    check(*b);
    check(a);
  }

  void copy(Player& of) {
    make_room_but(of);
    Player& player = *copied_;
    const bool fork = player.session.kv().kind() == KvKind::paged && pick(4) != 0;
    if (player.session.kv().kind() == KvKind::contiguous) {
      CHECK(player.session.fork().error().code() == ErrorCode::invalid_state);
    }
    Player other(must(fork ? player.session.fork() : player.session.clone()), *player.model);
    take_over(player, std::move(other));
  }

  void convert(Player& of) {
    make_room_but(of);
    Player& player = *copied_;
    const std::uint32_t sizes[] = {16, 32, 64};
    const KvOptions to{.kind = pick(2) == 0 ? KvKind::contiguous : KvKind::paged, .page_tokens = sizes[pick(3)]};  // of its types
    Player other(must(player.session.convert(to)), *player.model);
    CHECK(other.session.kv().kind() == to.kind);
    CHECK(other.session.kv().layout().page_tokens == to.page_tokens);
    take_over(player, std::move(other));
  }

  // Room for a copy of this one, which is *copied_ then.
  void make_room_but(Player& of) {
    auto at = static_cast<std::size_t>(&of - players_.data());
    while (players_.size() >= kSessions) {
      const std::size_t victim = pick(players_.size());
      if (victim == at) continue;
      players_.erase(players_.begin() + static_cast<std::ptrdiff_t>(victim));
      if (victim < at) --at;
    }
    players_.reserve(kSessions);
    copied_ = &players_[at];
  }
  void take_over(const Player& from, Player other) {
    CHECK(same_bits(other.session.logits(), from.session.logits()));
    other.tokens = from.tokens;
    other.computed = from.computed;
    other.edits = from.edits;
    other.since = from.since;
    CHECK(checksums(other.session) == checksums(from.session));
    players_.push_back(std::move(other));
    if (!from.session.logits().empty()) probe(players_.back());
    check(players_.back());
  }

  void truncate(Player& player) {
    const std::size_t to = pick(8) == 0 ? 0 : pick(player.tokens.size() + 2);
    bool lost = false;  // what the token at `to` sees, in any layer
    for (std::size_t layer = 0; layer < player.model->engine.spec().layers.size(); ++layer) {
      const std::size_t window = player.model->engine.spec().layers[layer].window;
      const std::size_t visible = window != 0 && to >= window ? to - window + 1 : 0;
      lost = lost || (visible < player.session.kv().first_of_layer(layer) && to < player.computed);
    }
    if (to < player.computed && !player.edits.empty()) note_edit(player, to, player.computed);
    must(player.session.truncate(to));
    player.tokens.resize(std::min(to, player.tokens.size()));
    player.computed = lost ? 0 : std::min(player.computed, to);
    if (player.computed == 0) player.edits.clear();
    check(player);
  }

  void remove(Player& player) {
    const std::size_t first = pick(player.computed + 1);
    edit(player, first, std::min(player.computed, first + pick(player.computed - first + 1)));
  }
  void keep_window(Player& player) {
    const std::size_t sinks = pick(6), window = 1 + pick(80);
    if (sinks + window >= player.computed) {
      must(player.session.keep_window(sinks, window));
      return check(player);
    }
    edit(player, sinks, player.computed - window, true);
  }

  void edit(Player& player, std::size_t first, std::size_t last, bool keeps_window = false) {
    const std::size_t window = player.computed - last;
    const Status status =
        keeps_window ? player.session.keep_window(first, window) : player.session.remove(first, last);
    const std::size_t held_from = player.session.kv().first();
    if (first < last && last < player.computed && held_from > 0) {  // the model's window has given keys back
      CHECK((!status && status.error().code() == ErrorCode::invalid_state));
      return check(player);
    }
    must(status);
    if (first == last) return check(player);
    if (last < player.computed || !player.edits.empty()) note_edit(player, first, last);
    player.tokens.erase(player.tokens.begin() + static_cast<std::ptrdiff_t>(first),
                        player.tokens.begin() + static_cast<std::ptrdiff_t>(last));
    player.computed =
        player.session.position() == 0 ? 0 : player.computed - (last - first);  // 0: a window, as in truncate()
    if (player.computed == 0) player.edits.clear();
    if (!player.session.logits().empty()) probe(player);
    check(player);
  }

  static void note_edit(Player& player, std::size_t first, std::size_t last) {
    const auto appended = player.after_edits();
    player.edits.push_back({.appended = {appended.begin(), appended.end()}, .first = first, .last = last});
    player.since = 0;
  }

  static void computed_all(Player& player, std::size_t but = 0) {
    player.since += player.tokens.size() - but - player.computed;
    player.computed = player.tokens.size() - but;
  }

  // What its logits must be; an edited session's keys and values too.
  std::vector<float> expected(Player& player) {
    if (player.edits.empty()) {
      const auto logits = player.model->twins.logits(player.done());
      return {logits.begin(), logits.end()};
    }
    ++replays_;
    Session twin = replay(player.model->engine, {kv_.dtype, kv_.wide}, player.edits, player.after_edits());
    CHECK(checksums(twin) == checksums(player.session));
    return {twin.logits().begin(), twin.logits().end()};
  }

  // One token more, of a copy: shows what the keys and values are where no logits are known, or old ones.
  void probe(const Player& of) {
    ++compared_;
    const Token token = 7;
    Player player(must(of.session.kv().kind() == KvKind::paged ? of.session.fork() : of.session.clone()), *of.model);
    player.tokens = of.tokens;
    player.computed = of.computed;
    player.edits = of.edits;
    player.since = of.since;
    const Logits logits = must(player.session.append({&token, 1}));
    player.tokens.push_back(token);
    computed_all(player);
    if (!same_bits(logits[0], expected(player))) FAIL("the logits of a token appended are not the twin's");
  }

  void check(Player& player) {
    const Session& session = player.session;
    if (!std::ranges::equal(session.tokens(), player.tokens)) FAIL("other tokens");
    REQUIRE(session.position() == player.computed);
    if (session.edited() == player.edits.empty()) FAIL("edited() is " << session.edited());
    const std::span<const float> logits = session.logits();
    if (logits.empty()) {
      probe(player);
    } else {
      ++compared_;
      if (!same_bits(logits, expected(player))) FAIL("the logits are not the twin's");
    }
    player.sums = checksums(session);
  }

  // Every page that a session holds is counted once, and nothing else is.
  void check_figures(const Model& model) {
    std::set<const std::byte*> pages;
    std::uint64_t used = 0;
    for (const Player& player : players_) {
      const KvCache& kv = player.session.kv();
      if (player.model != &model || kv.kind() != KvKind::paged) continue;
      const KvView view = kv.view();
      for (std::size_t group = 0; group < kv.layout().groups.size(); ++group) {
        for (std::uint64_t i = 0; i < kv.layout().pages(kv.length()); ++i) {
          const std::byte* page = view.pages[group][i];
          if (page != nullptr && pages.insert(page).second) used += kv.layout().groups[group].page_bytes;
        }
      }
    }
    const KvFigures figures = model.engine.kv_figures();
    REQUIRE(figures.used_bytes == used);
    REQUIRE(figures.held_bytes == used + figures.cached_bytes + figures.free_bytes);
  }

  void report(std::size_t n) {
    std::cout << to_string(kv_.dtype) << (kv_.kind == KvKind::paged ? " paged " : " contiguous ") << kv_.page_tokens
              << ": " << n << " operations, " << compared_ << " logits compared, "
              << full_.twins.runs() + windowed_.twins.runs() + mixed_.twins.runs() << " twins, " << replays_ << " replays";
    for (const Model* model : {&full_, &windowed_, &mixed_}) {
      const KvFigures f = model->engine.kv_figures();
      std::cout << "; hits " << f.hits << ", tokens saved " << f.tokens_saved << ", copies " << f.copies
                << ", evictions " << f.evictions;
    }
    std::cout << std::endl;
  }

  KvOptions kv_;
  std::mt19937 random_;
  Model full_, windowed_, mixed_;  // the last one's first layer has a window, its second none
  std::vector<Player> players_;
  Player* copied_ = nullptr;
  std::size_t compared_ = 0, replays_ = 0;
};

}  // namespace

TEST_CASE("whatever is done to sessions, their logits are those of a twin that was alone", "[walk]") {
  std::uint32_t seed = 0;
  for (const KvKind kind : {KvKind::contiguous, KvKind::paged}) {
    for (const std::uint32_t page_tokens : {16u, 32u, 64u}) {
      for (const DType dtype : kFewKvTypes) {
        DYNAMIC_SECTION((kind == KvKind::paged ? "paged, " : "contiguous, ") << page_tokens << " tokens a page, "
                                                                             << to_string(dtype)) {
          KvTypes types = dtype;
          if (dtype == DType::k8v4) types.wide = {.dtype = DType::f32, .first = 1, .last = 0};
          if (dtype == DType::f16) types.wide = {.dtype = DType::int4, .first = 0, .last = 1};
          Walk(kind, page_tokens, types, seed).run(operations());
        }
        ++seed;
      }
    }
  }
}

}  // namespace test_kv_walk
