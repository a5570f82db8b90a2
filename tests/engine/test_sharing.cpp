// Pages that sessions have in common: forks until one of them writes, and prompts that begin alike. Who shares what,
// what it costs, and that nobody sees of it but in time and memory.
#include <set>

#include "engine/kv_rig.hpp"
#include "kv/held_types.hpp"

namespace test_sharing {

using namespace tessera;
using namespace tessera::test;

namespace {


std::set<const std::byte*> pages_of(const Session& session) {
  const KvCache& kv = session.kv();
  const KvView view = kv.view();
  return {view.pages[0], view.pages[0] + kv.layout().pages(kv.length())};
}

}  // namespace

TEST_CASE("a fork shares every page, and the first write to one copies that page alone", "[sharing]") {
  const KvRig rig;
  Session parent = rig.given(rig.prompt(100));  // three full pages and one of four tokens
  const std::uint64_t used = rig.figures().used_bytes, copies = rig.figures().copies;
  CHECK(used == 4 * rig.page_bytes());
  const Snapshot before(parent);
  Session fork = must(parent.fork());
  CHECK(Snapshot(fork) == before);
  CHECK(pages_of(fork) == pages_of(parent));
  CHECK(rig.figures().used_bytes == used);
  CHECK(rig.figures().copies == copies);

  must(fork.append(rig.part(200, 1)));
  CHECK(rig.figures().copies == copies + 1);
  CHECK(rig.figures().used_bytes == used + rig.page_bytes());
  CHECK(Snapshot(parent) == before);
  CHECK(as_if_alone(fork));
  must(fork.append(rig.part(201, 5)));
  must(parent.append(rig.part(300, 5)));  // the page is the parent's alone now
  CHECK(rig.figures().copies == copies + 1);
  CHECK(as_if_alone(fork));
  CHECK(as_if_alone(parent));

  // At a page's border there is nothing to copy.
  Session even = rig.given(rig.prompt(64));
  Session other = must(even.fork());
  const std::uint64_t then = rig.figures().copies;
  must(other.append(rig.part(200, 1)));
  must(even.append(rig.part(300, 1)));
  CHECK(rig.figures().copies == then);
  CHECK(as_if_alone(other));
  CHECK(as_if_alone(even));
}

TEST_CASE("N forks of a long prompt cost a page each, and none before they write", "[sharing]") {
  const KvRig rig;
  constexpr std::size_t kForks = 20;
  const Session parent = rig.given(rig.prompt(300));
  const KvFigures before = rig.figures();
  std::vector<Session> forks;
  for (std::size_t i = 0; i < kForks; ++i) forks.push_back(must(i % 2 == 0 ? parent.fork() : forks.back().fork()));
  CHECK(rig.figures().used_bytes == before.used_bytes);
  for (std::size_t i = 0; i < kForks; ++i) must(forks[i].append(rig.part(i, 2)));
  CHECK(rig.figures().used_bytes == before.used_bytes + kForks * rig.page_bytes());
  CHECK(rig.figures().copies == before.copies + kForks);
  for (const Session& fork : forks) CHECK(as_if_alone(fork));
  CHECK(as_if_alone(parent));
  forks.clear();
  CHECK(rig.figures().used_bytes == before.used_bytes);
}

TEST_CASE("forks and clones go on with the same bits, pending tokens too", "[sharing]") {
  const KvRig rig;
  for (const DType dtype : kFewKvTypes) {
    for (const KvKind kind : {KvKind::contiguous, KvKind::paged}) {
      DYNAMIC_SECTION(to_string(dtype) << (kind == KvKind::paged ? ", paged" : ", contiguous")) {
        Session session = rig.given(rig.prompt(40), {.dtype = dtype, .kind = kind});
        Sampler greedy = sampling::chain().greedy().build();
        must(session.generate(greedy, {.max_tokens = 3, .end_of_generation = EndOfGeneration::ignore}, {}));
        REQUIRE(session.has_pending());
        const Snapshot before(session);
        const auto fork = session.fork();
        if (kind == KvKind::contiguous) {
          REQUIRE(!fork);
          CHECK(fork.error().code() == ErrorCode::invalid_state);
          CHECK(fork.error().message().find("clone()") != std::string::npos);
        }
        Session copy = must(session.clone());
        CHECK(Snapshot(copy) == before);
        if (kind == KvKind::paged) {
          REQUIRE(fork);
          CHECK(Snapshot(*fork) == before);
          for (const std::byte* page : pages_of(copy)) CHECK(pages_of(session).count(page) == 0);
        }
        must(copy.append(rig.prompt(5)));
        CHECK(as_if_alone(copy));
        CHECK(Snapshot(session) == before);
        must(session.append({}));
        CHECK(as_if_alone(session));
      }
    }
  }
}

TEST_CASE("a conversion keeps the bits of its type, and is edited in another", "[sharing]") {
  const KvRig rig;
  for (const DType dtype : kFewKvTypes) {
    const Session session = rig.given(rig.prompt(100), {.dtype = dtype});
    const Snapshot before(session);
    for (const KvKind kind : {KvKind::contiguous, KvKind::paged}) {
      for (const std::uint32_t page_tokens : {16u, 32u, 64u}) {
        Session other = must(session.convert({.kind = kind, .page_tokens = page_tokens}));
        CHECK(other.kv().kind() == kind);
        CHECK(other.kv().layout().page_tokens == page_tokens);
        CHECK(!other.edited());
        CHECK(checksums(other) == before.checksums);
        CHECK(same_bits(other.logits(), session.logits()));
        must(other.append(rig.part(200, 30)));
        CHECK(as_if_alone(other));
      }
    }
    const DType to = dtype == DType::int8 ? DType::f16 : DType::int8;
    Session other = must(session.convert({.dtype = to}));
    CHECK(other.kv().dtype() == to);
    CHECK(other.kv().kind() == KvKind::paged);
    CHECK(other.edited());
    CHECK(same_bits(other.logits(), session.logits()));  // the last token was computed before
    must(other.append(rig.part(200, 30)));
    CHECK(!as_if_alone(other));  // rounded twice, or kept what was rounded more
    CHECK(Snapshot(session) == before);
    must(other.clear());
    CHECK(!other.edited());
    must(other.append(rig.prompt(50)));
    CHECK(as_if_alone(other));
  }
}

TEST_CASE("an empty session converted to another type is one of that type", "[sharing]") {
  const KvRig rig;
  const Session there = rig.given(rig.prompt(100), {.dtype = DType::int8});
  Session session = must(rig.session({.dtype = DType::f32}).convert({.dtype = DType::int8}));
  CHECK(!session.edited());
  must(session.append(rig.prompt(100)));
  CHECK(session.reused() == 96);
  CHECK(as_if_alone(session));
}

TEST_CASE("a prompt is taken over up to the last page border before its last token", "[sharing]") {
  for (const DType dtype : kFewKvTypes) {
    for (const std::uint32_t page : {16u, 32u, 64u}) {
      const KvRig rig;
      const KvOptions kv{.dtype = dtype, .page_tokens = page};
      const Session first = rig.given(rig.prompt(4 * page), kv);
      for (std::size_t borders : {1, 2, 3}) {
        for (const std::size_t n : {borders * page - 1, borders * page, borders * page + 1}) {
          INFO(to_string(dtype) << ", " << n << " tokens in pages of " << page);
          const KvFigures before = rig.figures();
          const Session second = rig.given(rig.prompt(n), kv);
          CHECK(second.reused() == (n - 1) / page * page);
          CHECK(as_if_alone(second));
          const KvFigures after = rig.figures();
          CHECK(after.tokens_saved - before.tokens_saved == second.reused());
          CHECK(after.hits - before.hits == (n > page ? 1 : 0));
        }
      }
    }
  }
}

TEST_CASE("prompts that part share what is before, and so does the rest of a prompt", "[sharing]") {
  const KvRig rig;
  const Session first = rig.given(rig.prompt(300));
  for (const std::size_t common : {0u, 1u, 31u, 32u, 33u, 95u, 96u, 250u}) {
    auto tokens = rig.tokens;
    tokens[common] = (tokens[common] + 1) % 96;
    const Session second = rig.given(std::span(tokens).first(300));
    INFO(common);
    CHECK(second.reused() == common / 32 * 32);
    CHECK(as_if_alone(second));
  }
  Session third = rig.given(rig.prompt(64));  // a border: what follows may be taken over as well
  CHECK(third.reused() == 32);
  must(third.append(rig.part(64, 100)));
  CHECK(third.reused() == 32 + 96);
  CHECK(as_if_alone(third));
  Session fourth = rig.given(rig.prompt(60));  // not a border: it is computed
  must(fourth.append(rig.part(60, 100)));
  CHECK(fourth.reused() == 32);
  CHECK(as_if_alone(fourth));
  must(third.truncate(64));  // back to a border of pages that are still known
  must(third.append(rig.part(64, 40)));
  CHECK(third.reused() == 32 + 96 + 32);
  CHECK(as_if_alone(third));
}

TEST_CASE("of two sessions of one batch with the same prompt one computes it, and both end on the same pages", "[sharing]") {
  const KvRig rig;
  Session a = rig.session(), b = rig.session();
  Batch batch;
  must(batch.add(a, rig.prompt(70)));
  must(batch.add(b, rig.prompt(70)));
  const Outputs outputs = must(rig.engine.forward(batch));
  CHECK(same_bits(outputs.row(69), lone_logits(rig.engine, DType::f32, rig.prompt(70))));
  CHECK(same_bits(outputs.row(139), outputs.row(69)));
  CHECK(a.reused() == 0);
  CHECK(b.reused() == 64);
  CHECK(rig.figures().used_bytes == 4 * rig.page_bytes());  // two in common, and one each
  // And in a batch with others, one may be taken over and another not.
  Session c = rig.session(), d = rig.session();
  batch.clear();
  must(batch.add(d, rig.part(100, 50)));
  must(batch.add(c, rig.prompt(70)));
  const Outputs more = must(rig.engine.forward(batch));
  CHECK(c.reused() == 64);
  CHECK(d.reused() == 0);
  CHECK(same_bits(more.row(119), outputs.row(69)));
  CHECK(same_bits(more.row(49), lone_logits(rig.engine, DType::f32, rig.part(100, 50))));
}

TEST_CASE("nothing is taken over from the first row on of which something is wanted", "[sharing]") {
  const KvRig rig;
  const Session first = rig.given(rig.prompt(200));
  Session lone = lone_session(rig.engine, DType::f32);
  const std::vector<float> all = all_logits(lone, rig.prompt(200), 200);
  const auto row = [&](std::size_t i) { return std::span(all).subspan(i * 96, 96); };

  Session every = rig.session();
  CHECK(same_bits(must(every.append(rig.prompt(200), {.logits = LogitsOf::all})).values, all));
  CHECK(every.reused() == 0);
  for (const std::size_t wanted : {0u, 31u, 32u, 63u, 64u, 150u, 199u}) {
    Session session = rig.session();
    const std::size_t rows[] = {wanted, 199};
    const Logits logits = must(session.append(rig.prompt(200), {.rows = std::span(rows).first(wanted == 199 ? 1 : 2)}));
    CHECK(session.reused() == wanted / 32 * 32);
    CHECK(same_bits(logits[0], row(wanted)));
    CHECK(same_bits(session.logits(), row(199)));
  }
  Session none = rig.session();
  must(none.append(rig.prompt(193), {.logits = LogitsOf::none}));
  CHECK(none.reused() == 192);
  Session even = rig.session();
  must(even.append(rig.prompt(192), {.logits = LogitsOf::none}));
  CHECK(even.reused() == 160);  // the last token is always computed
  Session hidden = rig.session();
  Batch batch;
  for (std::size_t i = 0; i < 70; ++i) {
    must(batch.add(hidden, {.token = rig.tokens[i], .embedding = {}, .want = i == 40 ? Want::hidden : Want::nothing}));
  }
  must(rig.engine.forward(batch));
  CHECK(hidden.reused() == 32);
}

TEST_CASE("scores are the same whether their beginning was taken over or not", "[sharing]") {
  const KvRig rig;
  const Session first = rig.given(rig.prompt(200));
  Session lone = lone_session(rig.engine, DType::f32);
  const std::vector<float> expected = must(lone.score(rig.prompt(200)));

  Session whole = rig.session();  // everything is wanted: nothing can be taken over
  CHECK(same_bits(must(whole.score(rig.prompt(200))), expected));
  CHECK(whole.reused() == 0);
  Session rest = rig.given(rig.prompt(100));
  CHECK(rest.reused() == 96);
  CHECK(same_bits(must(rest.score(rig.part(100, 100))), std::span(expected).subspan(100)));
  CHECK(same_bits(rest.logits(), lone.logits()));
}

}  // namespace test_sharing
