// A budget of tokens in a model whose layers have windows: the layers that see all keys hold the budget, the others what
// their windows need, and nobody sees it in the bits.
#include <array>

#include "engine/kv_file.hpp"
#include "engine/kv_twins.hpp"
#include "engine/made_model.hpp"
#include "engine/snapshot_bytes.hpp"

namespace test_window_budgets {

using namespace tessera;
using namespace tessera::test;

namespace {

// Layers 0 and 2 see 40 tokens, layer 1 sees all, layer 3 sees 100; pages are of 16. A drop leaves 140 tokens, of which the
// last 116 are those of the longest window and a page.
const MadeShape kShape{.d_model = 64, .layers = 4, .heads = 4, .kv_heads = 2, .ffn = 96, .vocab = 97, .windows = {40, 0, 40, 100}};
constexpr TokenBudget kBudget{.tokens = 160, .choice = TokenChoice::snapkv, .sinks = 3, .recent = 116};
constexpr TokenChoice kChoices[] = {TokenChoice::window, TokenChoice::h2o, TokenChoice::snapkv};

const MadeModel& model() {
  static const MadeModel made = make_model(kShape, DType::f32);
  return made;
}
Engine load(EngineOptions options = {}) {
  options.kv = {.dtype = DType::f16, .page_tokens = 16, .budget = kBudget};
  return model().load(std::move(options));
}
std::vector<Token> tokens(std::size_t n) { return made_tokens(n, kShape.vocab, 3); }
TokenBudget budget_of(TokenChoice choice, std::uint32_t recent = 116) {
  TokenBudget budget = kBudget;
  budget.choice = choice;
  budget.recent = recent;
  return budget;
}
void go_on(Session& session, std::size_t n) {
  for (const Token token : tokens(n)) must(session.append(std::span(&token, 1)));
}
// Pages of a group after `n` tokens: all, less what the window has passed by more than one.
std::uint64_t pages(std::uint64_t n, std::uint64_t window) {
  const std::uint64_t passed = window != 0 && n >= window ? (n - window + 1) / 16 : 0;
  return (n + 15) / 16 - (passed > 1 ? passed - 1 : 0);
}
std::uint64_t bytes_of(const Session& session) {
  const KvLayout& layout = session.kv().layout();
  std::uint64_t bytes = 0;
  for (const KvGroup& group : layout.groups) bytes += pages(session.position(), group.window) * group.page_bytes;
  return bytes;
}
bool verified(const Session& session) {
  const Verification found = must(session.verify());
  INFO(found.what);
  CHECK(found.verdict == Verdict::same);
  return found.verdict == Verdict::same;
}

}  // namespace

TEST_CASE("layers with a window hold what it needs beside a budget, with the bits of a session that holds all", "[token-budget][groups]") {
  for (const FreedPages freed : {FreedPages::leave, FreedPages::fill_nan}) {
    const Engine engine = load({.threads = 1, .freed_pages = freed});
    for (const TokenChoice choice : kChoices) {
      for (const DType dtype : {DType::f16, DType::int8, DType::k8v4}) {
        for (const std::size_t chunk : {400u, 37u}) {
          CAPTURE(static_cast<int>(choice), to_string(dtype), chunk);
          Session session = must(engine.session({.kv = {.dtype = dtype, .prefix = PrefixReuse::off, .budget = budget_of(choice)}}));
          const auto text = tokens(400);
          for (std::size_t i = 0; i < text.size(); i += chunk) must(session.append(std::span(text).subspan(i, std::min(chunk, text.size() - i))));
          CHECK(session.edited());
          CHECK(session.kv().first_of_layer(1) == 0);
          CHECK(session.kv().first_of_layer(0) > 0);
          CHECK(verified(session));
          go_on(session, 90);  // over several drops
          CHECK(session.position() < 160);
          CHECK(session.kv().bytes() == bytes_of(session));
          CHECK(session.kv().bytes() < session.kv().layout().page_bytes() * pages(session.position(), 0));
          CHECK(verified(session));
        }
      }
    }
  }
}

TEST_CASE("a window's budget over windows is keep_window() of a session that holds all", "[token-budget][groups]") {
  const Engine engine = load();
  for (const KvKind kind : {KvKind::paged, KvKind::contiguous}) {
    Session session = must(engine.session({.kv = {.kind = kind, .budget = budget_of(TokenChoice::window, 0)}}));
    Session manual = must(engine.session({.kv = {.budget = {.tokens = kNoTokenBudget}}, .stream = {.sinks = 3, .window = 500}}));
    must(session.append(tokens(300)));
    must(manual.append(tokens(300)));
    for (int i = 0; i < 3; ++i) {
      must(manual.keep_window(3, 137));
      CHECK(std::ranges::equal(session.tokens(), manual.tokens()));
      go_on(session, 19);
      go_on(manual, 19);
      CHECK(same_bits(session.logits(), manual.logits()));
      CHECK(session.kv().bytes() < manual.kv().bytes());
      go_on(session, 1);
      go_on(manual, 1);
    }
  }
}

TEST_CASE("where a drop may leave a window less than it sees, all layers hold the budget", "[token-budget][groups]") {
  const Engine engine = load();
  for (const std::uint32_t recent : {115u, 116u}) {
    Session session = must(engine.session({.kv = {.budget = budget_of(TokenChoice::snapkv, recent)}}));
    must(session.append(tokens(300)));
    go_on(session, 30);
    CHECK((session.kv().bytes() == session.kv().layout().page_bytes() * pages(session.position(), 0)) == (recent == 115));
    CHECK(verified(session));
    // What windows have passed can be no other budget's.
    const auto refused = session.convert({.budget = budget_of(TokenChoice::snapkv, 60)});
    CHECK(refused.has_value() == (recent == 115));
    CHECK(session.convert({.budget = budget_of(TokenChoice::snapkv, 118)}).has_value());
  }
}

TEST_CASE("copies of a session with a budget over windows go on as it does", "[token-budget][groups]") {
  const Engine engine = load(with_file("window-budgets", 8 << 20));
  Session session = must(engine.session());
  must(session.append(tokens(301)));
  CHECK(session.kv().first() > 0);
  const auto sums = checksums(session);
  std::vector<Session> copies;
  copies.push_back(must(session.fork()));
  copies.push_back(must(session.clone()));
  copies.push_back(must(session.convert({.page_tokens = 64, .budget = {.tokens = kNoTokenBudget}})));
  copies.push_back(must(session.convert({.kind = KvKind::contiguous})));
  const Bytes bytes = saved(session);
  copies.push_back(must(engine.restore(bytes)));
  CHECK(saved(copies.back()) == bytes);
  must(session.suspend());
  for (Session& copy : copies) CHECK(checksums(copy) == sums);
  must(session.resume());
  go_on(session, 60);
  for (Session& copy : copies) {
    if (copy.budget().tokens == 0) continue;  // it drops nothing
    go_on(copy, 60);
    CHECK(same_bits(copy.logits(), session.logits()));
    CHECK(verified(copy));
  }
}

TEST_CASE("cut within a page a session with a budget over windows stays what it is; further back it begins anew", "[token-budget][groups]") {
  const Engine engine = load();
  Session session = must(engine.session());
  must(session.append(tokens(300)));
  CHECK(session.position() == 140);
  Session copy = must(session.fork());
  must(copy.truncate(140 - 16));
  CHECK(copy.edited());
  CHECK(copy.position() == 124);
  go_on(copy, 5);
  CHECK(verified(copy));

  copy = must(session.fork());
  must(copy.truncate(100));
  CHECK(!copy.edited());
  CHECK(copy.position() == 0);
  go_on(copy, 1);
  Session anew = must(engine.session({.kv = {.prefix = PrefixReuse::off}}));
  must(anew.append(session.tokens().first(100)));
  go_on(anew, 1);
  CHECK(same_bits(copy.logits(), anew.logits()));
  CHECK(verified(copy));
}

}  // namespace test_window_budgets
