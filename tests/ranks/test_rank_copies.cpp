// Sessions whose keys and values are on ranks in other processes: saved files are one rank's, and copies, conversions and checks work.
#include <random>

#include "ranks/rank_threads.hpp"

namespace test_rank_copies {

using namespace tessera;
using namespace tessera::test;

namespace {

std::filesystem::path file_of(const std::string& name) { return golden_dir() / (name + ".gguf"); }

std::vector<std::byte> saved(const Session& session) {
  std::vector<std::byte> bytes;
  must(session.save([&](std::span<const std::byte> piece) -> Status {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    return {};
  }));
  return bytes;
}

std::vector<std::uint64_t> checksums(const Session& session) {
  std::vector<std::uint64_t> all;
  for (std::size_t layer = 0; layer < session.kv().layout().layers.size(); ++layer) all.push_back(session.kv().checksum(layer));
  return all;
}

struct Twins {
  Session one, many;
};

// Checks that the next tokens' logits are the same, and so are all keys, values and states.
void check_same(Twins& twins, std::span<const Token> more) {
  CHECK(same_bits(must(twins.one.append(more, {.logits = LogitsOf::all})).values, must(twins.many.append(more, {.logits = LogitsOf::all})).values));
  CHECK(checksums(twins.one) == checksums(twins.many));
}

// Guesses that the last token comes again.
class Again final : public Drafter {
 public:
  Result<std::unique_ptr<Drafter>> start(const Engine&) const override { return std::unique_ptr<Drafter>(new Again); }
  Result<std::size_t> propose(const DraftContext& context, std::span<Token> out) override {
    std::ranges::fill(out, context.history.back());
    return out.size();
  }
};

}  // namespace

TEST_CASE("every kind of session is saved, restored, cloned and verified over sockets as on one rank") {
  std::size_t computed = 0;
  for (const std::string& name : representative_models()) {
    const auto tokens = golden_tokens(name);
    const std::size_t n = std::min<std::size_t>(tokens.size() - 4, 40);
    const auto text = std::span(tokens).first(n), more = std::span(tokens).subspan(n, 2);
    RankThreads ranks(file_of(name), 2);
    EngineOptions options = ranks.options();
    options.rank_split = computed % 3 == 2 ? RankSplit::layers : RankSplit::heads;
    const auto engine = Engine::load(file_of(name), options);
    if (!engine) continue;  // test_rank_processes counts these
    ++computed;
    const Engine one = load_golden(name);
    for (const SessionOptions& how : {SessionOptions{.kv = {.prefix = PrefixReuse::off}}, SessionOptions{.kv = {.kind = KvKind::contiguous}}}) {
      INFO(name << (how.kv.kind == KvKind::contiguous ? ", contiguous" : ""));
      Twins twins{must(one.session(how)), must(engine->session(how))};
      must(twins.one.append(text));
      must(twins.many.append(text));
      CHECK(checksums(twins.one) == checksums(twins.many));
      const auto bytes = saved(twins.many);
      CHECK(bytes == saved(twins.one));
      Twins restored{must(one.restore(bytes, how)), must(engine->restore(bytes, how))};
      check_same(restored, more);
      if (const auto copy = twins.one.clone(); copy) {
        Twins copies{must(twins.one.clone()), must(twins.many.clone())};
        check_same(copies, more);
      }
      const auto found = must(twins.many.verify());
      INFO(found.what);
      CHECK(found.verdict == must(twins.one.verify()).verdict);
      check_same(twins, more);
    }
  }
  CHECK(computed > 5);
}

TEST_CASE("conversions of KV types over sockets give one rank's numbers") {
  const auto tokens = golden_tokens("llama-gqa");
  RankThreads ranks(file_of("llama-gqa"), 1);
  const Engine one = load_golden("llama-gqa"), many = must(Engine::load(file_of("llama-gqa"), ranks.options()));
  for (const DType from : {DType::f16, DType::int8, DType::int4}) {
    for (const KvOptions& to : {KvOptions{.dtype = DType::f32}, KvOptions{.dtype = DType::int8}, KvOptions{.kind = KvKind::contiguous},
                                KvOptions{.page_tokens = 16}}) {
      INFO(to_string(from) << " to " << to_string(to.dtype));
      Twins twins{must(one.session({.kv = {.dtype = from}})), must(many.session({.kv = {.dtype = from}}))};
      must(twins.one.append(std::span(tokens).first(10)));
      must(twins.many.append(std::span(tokens).first(10)));
      Twins other{must(twins.one.convert(to)), must(twins.many.convert(to))};
      check_same(other, std::span(tokens).subspan(10, 2));
      check_same(twins, std::span(tokens).subspan(10, 2));
    }
  }
}

TEST_CASE("sessions of ranks go through files at random times") {
  for (const std::string& name : {std::string("llama-gqa"), std::string("mistral"), std::string("qwen35")}) {
    const auto tokens = golden_tokens(name);
    RankThreads ranks(file_of(name), 2);
    const Engine one = load_golden(name);
    EngineOptions options = ranks.options();
    options.threads = 1;
    const Engine many = must(Engine::load(file_of(name), options));
    std::mt19937 random(17);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    std::vector<Twins> all;
    all.reserve(8);  // references stay valid
    for (int step = 0; step < 120; ++step) {
      INFO(name << ", step " << step);
      if (all.empty() || (all.size() < 4 && below(5) == 0)) {
        all.push_back({must(one.session()), must(many.session())});
        continue;
      }
      if (all.size() > 5) all.erase(all.begin());
      Twins& twins = all[below(all.size())];
      const std::size_t length = twins.one.tokens().size(), room = twins.one.kv().capacity() - length;
      switch (below(6)) {
        case 0:
          if (length > 0) all.push_back({must(twins.one.fork()), must(twins.many.fork())});
          break;
        case 1: {
          const std::size_t to = below(length + 1);
          CHECK(twins.one.truncate(to).has_value() == twins.many.truncate(to).has_value());
          break;
        }
        case 2: {  // each goes on from the other's file
          const auto of_one = saved(twins.one), of_many = saved(twins.many);
          twins.one = must(one.restore(of_many));
          twins.many = must(many.restore(of_one));
          break;
        }
        case 3:
          if (length > 0) twins = {must(twins.one.clone()), must(twins.many.clone())};
          break;
        default:
          if (const std::size_t n = 1 + below(12); room > n && tokens.size() > n) {
            const auto chunk = std::span(tokens).subspan(below(2) == 0 ? 0 : below(tokens.size() - n), n);
            const auto a = must(twins.one.append(chunk, {.logits = LogitsOf::all})), b = must(twins.many.append(chunk, {.logits = LogitsOf::all}));
            CHECK(same_bits(a.values, b.values));
          }
      }
      CHECK(std::ranges::equal(twins.one.tokens(), twins.many.tokens()));
    }
  }
}

TEST_CASE("sessions of ranks are saved between the pieces of a generation with drafts") {
  for (const std::string& name : {std::string("qwen35"), std::string("llama-gqa")}) {  // with states, and without
    const auto tokens = golden_tokens(name);
    RankThreads ranks(file_of(name), 1);
    const Engine one = load_golden(name), many = must(Engine::load(file_of(name), ranks.options()));
    Twins twins{must(one.session()), must(many.session())};
    const auto text = std::span(tokens).first(8);
    for (Session* session : {&twins.one, &twins.many}) must(session->append(text)), must(session->append(text));  // it repeats, so drafts are made
    std::vector<std::vector<std::byte>> files[2];
    std::vector<Token> drawn[2];
    std::size_t drafted = 0;
    for (int i = 0; i < 2; ++i) {
      Session& session = i == 0 ? twins.one : twins.many;
      Sampler greedy = sampling::chain().greedy().build();
      Generation generation = session.generate(greedy, {.max_tokens = 16, .end_of_generation = EndOfGeneration::ignore,
                                                        .speculate = {.drafter = std::make_shared<Again>(), .max_drafts = 3, .length = DraftLength::longest}});
      for (const auto& piece : generation) {
        drawn[i].push_back(must(piece).token);
        files[i].push_back(saved(session));
      }
      drafted += generation.figures().drafted;
    }
    INFO(name);
    CHECK(drafted > 0);
    CHECK(drawn[0] == drawn[1]);
    CHECK(files[0] == files[1]);
    check_same(twins, std::span(tokens).first(2));
  }
}

TEST_CASE("a session that is saved when a rank has gone is an error") {
  const auto tokens = golden_tokens("llama-gqa");
  RankThreads ranks(file_of("llama-gqa"), 2);
  const Engine engine = must(Engine::load(file_of("llama-gqa"), ranks.options()));
  Session session = must(engine.session());
  must(session.append(std::span(tokens).first(4)));
  const auto before = saved(session);
  ranks.stop(1);
  const Status gone = session.save([](std::span<const std::byte>) { return Status(); });
  REQUIRE_FALSE(gone);
  CHECK(gone.error().code() == ErrorCode::device_error);
  CHECK(gone.error().text().find("rank 2") != std::string::npos);
  CHECK_FALSE(session.clone());
  CHECK_FALSE(engine.restore(before));
  Session again = must(load_golden("llama-gqa").restore(before));  // the file lets it go on elsewhere
  CHECK(again.tokens().size() == 4);
}

}  // namespace test_rank_copies
