// Sessions and requests of an engine on several ranks do all that those of one rank do, with the same bits.
#include <chrono>
#include <random>
#include <stop_token>
#include <thread>

#include "ranks/rank_threads.hpp"

namespace test_rank_sessions {

using namespace tessera;
using namespace tessera::test;

namespace {

std::vector<std::byte> saved(const Session& session) {
  std::vector<std::byte> bytes;
  must(session.save([&](std::span<const std::byte> piece) -> Status {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    return {};
  }));
  return bytes;
}

// Asks for a stop after a time, somewhere in a step.
class StopLater {
 public:
  explicit StopLater(std::chrono::microseconds after) : thread_([this, after] {
    std::this_thread::sleep_for(after);
    source_.request_stop();
  }) {}
  ~StopLater() { thread_.join(); }
  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("a session lives on several ranks as on one") {
  for (const std::string& name : {std::string("llama-gqa"), std::string("mistral"), std::string("qwen35"), std::string("gemma4-e"), std::string("deepseek-v2-lite")}) {
    const auto tokens = golden_tokens(name);
    const Engine one = load_golden(name);
    EngineOptions options = divided(3);
    options.step_rows = 8;
    const auto divided_engine = load_divided(name, options);
    REQUIRE(divided_engine);
    const Engine& many = *divided_engine;
    const bool is_recurrent = std::ranges::any_of(one.spec().layers, &LayerSpec::is_recurrent);
    std::mt19937 random(7);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    struct Twins {
      Session one, many;
    };
    std::vector<Twins> all;
    const auto make = [&] { all.push_back({must(one.session()), must(many.session())}); };
    make();
    for (int step = 0; step < 120; ++step) {
      INFO(name << ", step " << step);
      Twins& twins = all[below(all.size())];
      const std::size_t room = twins.one.kv().capacity() - twins.one.tokens().size();
      switch (below(8)) {
        case 0:
          if (all.size() < 5) make();
          break;
        case 1: {  // a fork of both
          if (all.size() >= 5 || twins.one.tokens().empty()) break;
          auto a = twins.one.fork(), b = twins.many.fork();
          REQUIRE(a.has_value() == b.has_value());
          if (a) all.push_back({*std::move(a), *std::move(b)});
          break;
        }
        case 2: {
          const std::size_t length = twins.one.tokens().size();
          const std::size_t to = below(length + 1);
          const auto a = twins.one.truncate(to), b = twins.many.truncate(to);
          CHECK(a.has_value() == b.has_value());
          break;
        }
        case 3: {  // saved by the ranks, restored by one rank, and the other way round
          const auto bytes_one = saved(twins.one), bytes_many = saved(twins.many);
          twins.one = must(one.restore(bytes_many));
          twins.many = must(many.restore(bytes_one));
          CHECK(bytes_one.size() == bytes_many.size());
          CHECK_FALSE(twins.many.edited());
          break;
        }
        case 4:  // a stop, at any moment
          if (room > 8) {
            const std::size_t n = 1 + below(8);
            const auto chunk = std::span(tokens).subspan(below(tokens.size() - n), n);
            const StopLater later(std::chrono::microseconds(below(300)));
            const auto stopped = twins.many.append(chunk, {.stop = later.token()});
            if (stopped) must(twins.one.append(chunk));
            else CHECK(stopped.error().code() == ErrorCode::cancelled);
          }
          break;
        default:
          if (const std::size_t n = 1 + below(12); room > n && tokens.size() > n) {
            const auto chunk = std::span(tokens).subspan(below(tokens.size() - n), n);
            const auto a = must(twins.one.append(chunk, {.logits = LogitsOf::all})), b = must(twins.many.append(chunk, {.logits = LogitsOf::all}));
            CHECK(same_bits(a.values, b.values));
          }
      }
      for (const Twins& pair : all) {
        CHECK(std::ranges::equal(pair.one.tokens(), pair.many.tokens()));
        CHECK(checksums(pair.one) == checksums(pair.many));
      }
    }
    CHECK((is_recurrent || all.size() > 1));
  }
}

TEST_CASE("a scheduler's requests on several ranks get one rank's tokens") {
  const auto run = [&](std::uint32_t ranks) {
    EngineOptions options = divided(ranks);
    options.numerics = Numerics::invariant;
    const Engine engine = must(Engine::load(source_dir() / "models/tessera-stories.gguf", options));
    Scheduler scheduler = must(Scheduler::create(engine));
    std::vector<RequestHandle> requests;
    for (std::uint64_t i = 0; i < 6; ++i) {
      Request request;
      request.prompt = must(engine.tokenizer().encode(i % 2 == 0 ? "Once upon a time" : "The dog"));
      request.sampler = sampling::chain().temperature(0.8f).top_k(40).seed(i).build();
      request.generate.max_tokens = 24;
      requests.push_back(must(scheduler.submit(std::move(request))));
    }
    std::vector<std::string> texts;
    for (RequestHandle& request : requests) {
      std::string text;
      while (const auto piece = request.next()) text += piece->piece.text;
      must(request.status());
      texts.push_back(text);
    }
    return texts;
  };
  const auto expected = run(1);
  CHECK(run(2) == expected);
  CHECK(run(3) == expected);
}

TEST_CASE("token budgets that choose by votes choose the same tokens on several ranks") {
  const auto model = source_dir() / "models/tessera-stories.gguf";
  const auto logits_of = [&](EngineOptions options, TokenChoice choice) {
    options.numerics = Numerics::invariant;
    options.step_rows = 64;
    options.kv.budget = {.tokens = kLeastTokenBudget, .choice = choice};
    const Engine engine = must(Engine::load(model, options));
    std::vector<Token> tokens(300);
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<Token>(5 + i * 7919 % (engine.spec().vocab_size - 5));
    const KvOptions kv{.page_tokens = 16, .prefix = PrefixReuse::off, .budget = {.tokens = kLeastTokenBudget, .choice = choice}};
    Session session = must(engine.session({.kv = kv}));
    std::vector<float> values;
    for (std::size_t i = 0; i < tokens.size(); i += 30) {
      const auto logits = must(session.append(std::span(tokens).subspan(i, 30)));
      values.insert(values.end(), logits.values.begin(), logits.values.end());
    }
    CHECK(session.edited());
    return values;
  };
  for (const TokenChoice choice : {TokenChoice::h2o, TokenChoice::snapkv}) {
    const auto expected = logits_of(divided(1), choice);
    CHECK(same_bits(logits_of(divided(2), choice), expected));
    RankThreads others(model, 2);
    CHECK(same_bits(logits_of(others.options(), choice), expected));
  }
}

}  // namespace test_rank_sessions
