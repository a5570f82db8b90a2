// What must never be shared: pages of another tenant, type or page size, and pages that are not what the model computes
// from the tokens alone.
#include <map>
#include <random>
#include <set>

#include "engine/kv_rig.hpp"
#include "kv/held_types.hpp"

namespace test_tenants {

using namespace tessera;
using namespace tessera::test;

namespace {

// What a new session with these tokens takes over; and it must have the right logits then.
std::size_t found(const KvRig& rig, std::span<const Token> sequence, KvOptions kv = {}) {
  const Session session = rig.given(sequence, std::move(kv));
  CHECK(as_if_alone(session));
  return session.reused();
}

}  // namespace

TEST_CASE("a page of one tenant is never served to another", "[tenants]") {
  const KvRig rig;
  const std::string salts[] = {"", "a", "a\n", "ab", "b", std::string("a\0", 2)};
  std::vector<std::vector<Token>> stems;
  for (std::uint64_t seed = 0; seed < 3; ++seed) stems.push_back(make_tokens(seed, 200, 96));
  std::map<std::string, std::set<std::vector<Token>>> known;  // by tenant: beginnings of whole pages
  std::map<const std::byte*, std::string> owners;
  std::vector<Session> sessions;
  std::mt19937 random(5);
  std::size_t shared = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string& salt = salts[random() % std::size(salts)];
    std::vector<Token> prompt = stems[random() % stems.size()];
    prompt.resize(1 + random() % 150);
    if (random() % 3 == 0) prompt[random() % prompt.size()] = 5;
    Session session = rig.given(prompt, {.salt = salt});

    std::size_t expected = 0;
    std::set<std::vector<Token>>& beginnings = known[salt];
    for (std::size_t n = 32;
         n < prompt.size() && beginnings.contains({prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(n)});
         n += 32) {
      expected = n;
    }
    CHECK(session.reused() == expected);
    shared += expected;
    for (std::size_t n = 32; n <= prompt.size(); n += 32) {
      beginnings.insert({prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(n)});
    }
    const KvView view = session.kv().view();
    for (std::uint64_t page = 0; page < session.kv().layout().pages(prompt.size()); ++page) {
      CHECK(owners.emplace(view.pages[0][page], salt).first->second == salt);
    }
    sessions.push_back(std::move(session));
  }
  CHECK(shared > 2000);
}

TEST_CASE("the engine's salt is that of sessions that say none; a conversion may give another", "[tenants]") {
  const KvRig rig({.kv = {.salt = "engine"}});
  const Session session = rig.given(rig.prompt(100));
  CHECK(found(rig, rig.prompt(100), {.salt = "other"}) == 0);
  CHECK(found(rig, rig.prompt(100), {.salt = "engine"}) == 96);
  {
    Session fork = must(session.fork());
    must(fork.append(rig.part(100, 60)));
  }
  CHECK(found(rig, rig.prompt(150), {.salt = "other"}) == 96);  // of itself
  CHECK(found(rig, rig.prompt(150)) == 128);
  Session given_away = must(session.convert({.salt = "third"}));
  must(given_away.append(rig.part(100, 1)));
  CHECK(found(rig, rig.prompt(100), {.salt = "third"}) == 96);
  for (std::uint64_t page = 0; page < 3; ++page) {
    CHECK(given_away.kv().view().pages[0][page] != session.kv().view().pages[0][page]);
  }
}

TEST_CASE("reuse can be off, for a session and for an engine", "[tenants]") {
  const KvRig rig;
  {
    const Session silent = rig.given(rig.prompt(100), {.prefix = PrefixReuse::off});
    CHECK(found(rig, rig.prompt(100)) == 0);  // it offers nothing
  }
  CHECK(found(rig, rig.prompt(100), {.prefix = PrefixReuse::off}) == 0);  // and takes nothing
  CHECK(found(rig, rig.prompt(100)) == 96);
  const KvRig off({.kv = {.prefix = PrefixReuse::off}});
  CHECK(found(off, off.prompt(100)) == 0);
  CHECK(found(off, off.prompt(100)) == 0);
  CHECK(off.engine.kv_figures().hits + off.engine.kv_figures().misses + off.engine.kv_figures().cached_bytes == 0);
  CHECK(found(off, off.prompt(100), {.prefix = PrefixReuse::on}) == 0);
  CHECK(found(off, off.prompt(100), {.prefix = PrefixReuse::on}) == 96);
}

TEST_CASE("types, page sizes and layouts do not share", "[tenants]") {
  const KvRig rig;
  std::set<std::pair<DType, std::uint32_t>> seen;
  for (int round = 0; round < 2; ++round) {
    for (const DType dtype : kFewKvTypes) {
      for (const std::uint32_t page : {16u, 32u, 64u}) {
        const bool again = !seen.insert({dtype, page}).second;
        CHECK(found(rig, rig.prompt(100), {.dtype = dtype, .page_tokens = page}) == (again ? 99 / page * page : 0));
        CHECK(found(rig, rig.prompt(100), {.dtype = dtype, .kind = KvKind::contiguous, .page_tokens = page}) == 0);
      }
    }
  }
}

TEST_CASE("a session of some layers neither gives nor takes", "[tenants]") {
  const KvRig rig;
  const auto fill = [&](Session& session, std::uint32_t last_layer) {
    Batch batch;
    for (std::size_t i = 0; i < 70; ++i) {
      must(batch.add(session,
                     {.token = rig.tokens[i], .embedding = {}, .want = i == 69 ? Want::hidden : Want::nothing}));
    }
    const Outputs outputs = must(rig.engine.forward(batch, {.last_layer = last_layer}));
    return std::vector<float>(outputs.row(69).begin(), outputs.row(69).end());
  };
  Session lower = must(rig.engine.session());
  const auto expected = fill(lower, 1);
  CHECK(found(rig, rig.prompt(70)) == 0);
  CHECK(found(rig, rig.prompt(70)) == 64);
  Session other = must(rig.engine.session());
  CHECK(same_bits(fill(other, 1), expected));
  CHECK(other.reused() == 0);
  // Once it is empty it may hold all layers, and then it takes part.
  must(other.clear());
  must(other.append(rig.prompt(70)));
  CHECK(other.reused() == 64);
  CHECK(as_if_alone(other));
}

TEST_CASE("of an edited session others find what is before the edit, and nothing behind it", "[tenants]") {
  const KvRig rig;
  Session session = rig.given(rig.prompt(200));
  const Session reader = rig.given(rig.prompt(200));  // shares six pages
  CHECK(reader.reused() == 192);
  const Snapshot before(reader);
  must(session.remove(70, 75));
  REQUIRE(session.edited());
  must(session.append(rig.part(200, 100)));
  CHECK(Snapshot(reader) == before);

  const std::vector<Token> edited(session.tokens().begin(), session.tokens().end());
  REQUIRE(edited.size() == 295);
  CHECK(found(rig, edited) == 64);
  CHECK(found(rig, rig.prompt(200)) == 192);  // of the reader
  CHECK(session.reused() == 0);
  // Cut back behind the edit, or before it, it is still edited; emptied it is not.
  must(session.truncate(100));
  must(session.append(rig.part(200, 100)));
  CHECK(session.edited());
  std::vector<Token> tokens(session.tokens().begin(), session.tokens().end());
  CHECK(found(rig, tokens) == 96);  // of the new session above, which had the same 100
  must(session.clear());
  CHECK(!session.edited());
  must(session.append(rig.prompt(150)));
  CHECK(session.reused() == 128);
  CHECK(as_if_alone(session));

  // Forks and clones of an edited session are edited too.
  must(session.remove(1, 2));
  std::vector<Session> copies;
  copies.push_back(must(session.fork()));
  copies.push_back(must(session.clone()));
  copies.push_back(must(session.convert({.kind = KvKind::paged, .page_tokens = 16})));
  for (Session& copy : copies) {
    CHECK(copy.edited());
    must(copy.append(rig.prompt(60)));
    CHECK(found(rig, copy.tokens(), {.page_tokens = copy.kv().layout().page_tokens}) == 0);
    rig.engine.trim();
  }
}

}  // namespace test_tenants
