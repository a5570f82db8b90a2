// Adapters that an invocation activates (aLoRA), in sequences that go on: invoked twice, cut within the invocation, forked, saved, given to
// a scheduler and taken back, drawn with drafts. Each is compared with a twin that is told the position at which the adapter begins.
#include <optional>
#include <utility>
#include <vector>

#include <tessera/decoding/drafters.hpp>
#include <tessera/scheduler/scheduler.hpp>

#include "engine/made_adapter.hpp"
#include "engine/snapshot_bytes.hpp"

#include "catch.hpp"

namespace test_invocations {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr Token kFirst = 40, kSecond = 41;  // the invocation

struct Rig {
  explicit Rig(std::vector<std::uint32_t> invocation = {kFirst, kSecond}, const std::string& model = "llama-long")
      : file(must(ModelFile::open(golden_dir() / (model + ".gguf")))),
        engine(must(Engine::load(file, {.kv = {.page_tokens = 16}, .threads = 2}))) {
    const auto in_layers = [](std::string_view name) { return name.starts_with("blk."); };
    const MadeAdapter how{.seed = 3, .size = 0.8f, .takes = in_layers, .invocation = std::move(invocation)};
    adapter = must(engine.adapter(folder.write("second-thought", file, how)));
  }
  [[nodiscard]] Session session(std::vector<AdapterUse> uses) const { return must(engine.session({.adapters = std::move(uses)})); }

  // Returns the logits after `text`, computed at once with the adapter from position `from` on; nullopt: without it.
  [[nodiscard]] std::vector<float> twin(std::span<const Token> text, std::optional<std::uint64_t> from) const {
    const SessionOptions options{.kv = {.prefix = PrefixReuse::off},
                                 .adapters = from ? std::vector<AdapterUse>{{adapter, 1.0f, from}} : std::vector<AdapterUse>{}};
    Session fresh = must(engine.session(options));
    must(fresh.append(text));
    return logits_of(fresh);
  }
  static std::vector<float> logits_of(const Session& session) { return {session.logits().begin(), session.logits().end()}; }

  AdapterFolder folder;
  ModelFile file;
  Engine engine;
  Adapter adapter;
};

// Returns a text of n tokens with invocations at these positions.
std::vector<Token> text_with(std::size_t n, std::initializer_list<std::size_t> at, Token seed = 1) {
  std::vector<Token> text(n);
  for (std::size_t i = 0; i < n; ++i) text[i] = static_cast<Token>((static_cast<std::size_t>(seed) + 3 * i) % 40);
  for (const std::size_t i : at) text[i] = kFirst, text[i + 1] = kSecond;
  return text;
}

std::optional<std::uint64_t> first_position(const Session& session) {
  const auto uses = must(session.adapters());
  REQUIRE(uses.size() == 1);
  return uses[0].from;
}

std::vector<std::byte> saved(const Session& session) {
  std::vector<std::byte> bytes;
  must(session.save([&](std::span<const std::byte> piece) -> Status {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    return {};
  }));
  return bytes;
}

std::vector<Token> with(std::vector<Token> text, std::span<const Token> more) {
  text.insert(text.end(), more.begin(), more.end());
  return text;
}

}  // namespace

TEST_CASE("An adapter stays where its invocation began, until it is told to wait again", "[adapters]") {
  for (const std::string model : {"llama-long", "qwen35"}) {
    INFO(model);
    const Rig rig({kFirst, kSecond}, model);
    const std::vector<Token> first = text_with(40, {10, 21}), second = text_with(20, {12}, 7), all = with(first, second);
    Session session = rig.session({{rig.adapter}});
    must(session.append(first));
    CHECK(first_position(session) == 21);
    CHECK(same_bits(Rig::logits_of(session), rig.twin(first, 21)));
    Session fork = must(session.fork());
    Session restored = must(rig.engine.restore(saved(session)));
    must(session.append(second));
    CHECK(first_position(session) == 21);
    CHECK(same_bits(Rig::logits_of(session), rig.twin(all, 21)));

    for (Session* copy : {&fork, &restored}) {
      const std::vector<AdapterUse> again = {{rig.adapter}};
      must(copy->use_adapters(again));
      CHECK(first_position(*copy) == std::nullopt);
      CHECK(copy->position() <= 21);
      must(copy->append(second));
      CHECK(first_position(*copy) == 52);
      CHECK(same_bits(Rig::logits_of(*copy), rig.twin(all, 52)));
      CHECK(must(copy->verify()).verdict == Verdict::same);
    }
  }
}

TEST_CASE("An adapter waits again when a token of its invocation is cut off", "[adapters]") {
  for (const std::string model : {"llama-long", "qwen35"}) {
    INFO(model);
    const Rig rig({kFirst, kSecond}, model);
    const std::vector<Token> text = text_with(40, {17}), more = text_with(16, {}, 5), invoked = text_with(16, {4}, 5);
    for (const std::size_t cut : {16u, 17u, 18u, 19u, 30u}) {
      INFO(cut);
      Session session = rig.session({{rig.adapter}});
      must(session.append(text));
      must(session.truncate(cut));
      const bool waits = cut < 19;
      CHECK(first_position(session) == (waits ? std::nullopt : std::optional<std::uint64_t>(17)));
      Session fork = must(session.fork());
      Session restored = must(rig.engine.restore(saved(session)));
      const std::vector<Token> begin(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(cut));
      for (Session* one : {&session, &restored}) {
        must(one->append(more));
        CHECK(same_bits(Rig::logits_of(*one), rig.twin(with(begin, more), waits ? std::nullopt : std::optional<std::uint64_t>(17))));
      }
      must(fork.append(invoked));
      CHECK(same_bits(Rig::logits_of(fork), rig.twin(with(begin, invoked), waits ? cut + 4 : 17)));
      CHECK(must(fork.verify()).verdict == Verdict::same);
    }
  }
}

TEST_CASE("Tokens that are drawn or drafted activate no adapter", "[adapters]") {
  const Rig rig({40});
  Sampler sampler = sampling::chain().stage([](sampling::Candidates& candidates, const sampling::Context& context) {
    const Token wanted = context.position % 3 == 0 ? 40 : static_cast<Token>(context.position % 2);
    candidates.remove_if([wanted](const sampling::Candidate& one) { return one.token != wanted; });
  }).build();
  const auto drawn = [&](Session& session, std::shared_ptr<const Drafter> drafter) {
    must(session.append(text_with(30, {})));
    GenerateOptions options{.max_tokens = 20, .end_of_generation = EndOfGeneration::ignore};
    options.speculate.drafter = std::move(drafter);
    for (const auto& piece : session.generate(sampler, options)) must(piece);
    must(session.append({}));
  };
  for (const auto& drafter : {std::shared_ptr<const Drafter>(), must(early_exit_drafter(1))}) {
    Session session = rig.session({{rig.adapter}}), plain = rig.session({});
    drawn(session, drafter);
    drawn(plain, nullptr);
    CHECK(first_position(session) == std::nullopt);
    CHECK(same_bits(Rig::logits_of(session), Rig::logits_of(plain)));
  }
}

TEST_CASE("A session that a scheduler gives back waits for an invocation as before", "[adapters]") {
  const Rig rig;
  Scheduler scheduler = must(Scheduler::create(rig.engine, {.limits = {.rows = 7}}));
  const auto asked = [&](Session session, const std::vector<Token>& prompt) {
    const std::vector<Token> before(session.tokens().begin(), session.tokens().end());
    RequestHandle handle = must(scheduler.submit({.prompt = prompt,
                                                  .session = std::move(session),
                                                  .generate = {.max_tokens = 2, .end_of_generation = EndOfGeneration::ignore},
                                                  .session_at_end = SessionAtEnd::keep}));
    while (handle.next()) {}
    must(handle.status());
    std::optional<Session> back = handle.take_session();
    REQUIRE(back);
    must(back->truncate(before.size() + prompt.size()));
    return *std::move(back);
  };
  const std::vector<Token> plain = text_with(33, {}), invoked = text_with(40, {3, 30}, 5), more = text_with(9, {});
  // The invocation is not in the first prompt, and is cut by the steps of the second: it begins in a step and ends in the next.
  Session session = asked(rig.session({{rig.adapter}}), plain);
  CHECK(first_position(session) == std::nullopt);
  session = asked(std::move(session), invoked);
  CHECK(first_position(session) == 63);
  must(session.append({}));
  const std::vector<Token> both = with(plain, invoked);
  CHECK(same_bits(Rig::logits_of(session), rig.twin(both, 63)));
  // The same session waits again when the invocation is dropped.
  must(session.truncate(64));
  CHECK(first_position(session) == std::nullopt);
  must(session.append(more));
  CHECK(same_bits(Rig::logits_of(session), rig.twin(with({both.begin(), both.begin() + 64}, more), std::nullopt)));

}

TEST_CASE("A request that is cancelled at any row of its prompt gives back a session without traces of an invocation that is cut", "[adapters]") {
  const Rig rig;
  std::size_t cut = 0;
  for (std::uint32_t rows = 26; rows <= 36; ++rows) {
    INFO(rows << " rows before the cancel");
    Scheduler scheduler = must(Scheduler::create(rig.engine, {.limits = {.rows = rows}}));
    const std::vector<Token> prompt = text_with(60, {30}, static_cast<Token>(rows));  // a text of its own, so that no pages are found
    RequestHandle request = must(scheduler.submit({.prompt = prompt,
                                                   .session_options = {.adapters = {{rig.adapter}}},
                                                   .session_at_end = SessionAtEnd::keep}));
    must(scheduler.step());
    request.cancel();
    while (request.next()) {}
    std::optional<Session> back = request.take_session();
    REQUIRE(back);
    const std::size_t n = back->tokens().size();
    REQUIRE((n > 0 && n < prompt.size()));
    cut += n == 31 ? 1 : 0;  // between the two tokens of the invocation
    const bool is_whole = n >= 32;
    CHECK(first_position(*back) == (is_whole ? std::optional<std::uint64_t>(30) : std::nullopt));
    // It goes on without the rest of the invocation: rows that a cut invocation had changed are computed again.
    const std::vector<Token> more = text_with(20, {}), whole = with({prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(n)}, more);
    must(back->append(more));
    CHECK(same_bits(Rig::logits_of(*back), rig.twin(whole, is_whole ? std::optional<std::uint64_t>(30) : std::nullopt)));
    Session plain = rig.session({});  // and its pages are those of no adapter
    must(plain.append(whole));
    CHECK(same_bits(Rig::logits_of(plain), rig.twin(whole, std::nullopt)));
  }
  CHECK(cut > 0);
}

}  // namespace test_invocations
