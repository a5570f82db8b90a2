// Ranks behind sockets give one rank's bits, and their failures are errors of the call.
#include <map>
#include <random>

#include "ranks/rank_threads.hpp"

namespace test_rank_processes {

using namespace tessera;
using namespace tessera::test;

namespace {

std::filesystem::path file_of(const std::string& name) { return golden_dir() / (name + ".gguf"); }

}  // namespace

TEST_CASE("logits of every kind of model are one rank's over sockets") {
  std::map<std::size_t, std::size_t> computed;
  for (const std::string& name : representative_models()) {
    const auto tokens = golden_tokens(name);
    const Engine one = load_golden(name);
    Session alone = must(one.session());
    const auto expected = all_logits(alone, tokens, tokens.size());
    for (const std::size_t others : {1u, 2u}) {
      INFO(name << " with " << others << " ranks elsewhere");
      RankThreads ranks(file_of(name), others);
      EngineOptions options = ranks.options();
      options.rank_split = others == 2 && computed[2] % 2 == 0 ? RankSplit::layers : RankSplit::heads;
      auto engine = Engine::load(file_of(name), options);
      if (!engine) {
        CHECK(engine.error().code() == ErrorCode::unsupported);
        continue;
      }
      ++computed[others];
      Session session = must(engine->session({.kv = {.prefix = PrefixReuse::off}}));
      CHECK(same_bits(all_logits(session, tokens, 5), expected));
      Session again = must(engine->session({.kv = {.kind = KvKind::contiguous}}));
      CHECK(same_bits(all_logits(again, tokens, tokens.size()), expected));
    }
  }
  for (const std::size_t others : {1u, 2u}) CHECK(computed[others] >= representative_models().size() / 2);
}

TEST_CASE("sessions fork, go back and share prefixes over sockets as on one rank") {
  for (const std::string& name : {std::string("llama-gqa"), std::string("mistral"), std::string("qwen35")}) {
    const auto tokens = golden_tokens(name);
    RankThreads ranks(file_of(name), 2);
    const Engine one = load_golden(name);
    const Engine many = must(Engine::load(file_of(name), ranks.options()));
    std::mt19937 random(11);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    struct Twins {
      Session one, many;
    };
    std::vector<Twins> all;
    all.reserve(8);  // references stay valid
    for (int step = 0; step < 150; ++step) {
      INFO(name << ", step " << step);
      if (all.empty() || (all.size() < 5 && below(5) == 0)) {
        all.push_back({must(one.session()), must(many.session())});
        continue;
      }
      if (all.size() == 5) all.erase(all.begin());
      Twins& twins = all[below(all.size())];
      const std::size_t room = twins.one.kv().capacity() - twins.one.tokens().size();
      switch (below(6)) {
        case 0:
          if (!twins.one.tokens().empty()) all.push_back({must(twins.one.fork()), must(twins.many.fork())});
          break;
        case 1: {
          const std::size_t to = below(twins.one.tokens().size() + 1);
          CHECK(twins.one.truncate(to).has_value() == twins.many.truncate(to).has_value());
          break;
        }
        case 2: {  // tokens from the middle, where a model allows it
          if (twins.one.tokens().size() < 8) break;
          const auto a = twins.one.remove(2, 5), b = twins.many.remove(2, 5);
          CHECK(a.has_value() == b.has_value());
          break;
        }
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

TEST_CASE("a stop in the middle of a step leaves ranks behind sockets usable") {
  RankThreads ranks(file_of("llama-gqa"), 2);
  const auto tokens = golden_tokens("llama-gqa");
  const Engine one = load_golden("llama-gqa");
  const Engine many = must(Engine::load(file_of("llama-gqa"), ranks.options()));
  Session alone = must(one.session());
  const auto expected = all_logits(alone, tokens, tokens.size());
  std::size_t stopped = 0;
  // On a busy machine the stop may always come before or after the step, so the delays are tried again until one came in time.
  for (int i = 0; i < 40 || (stopped == 0 && i < 4000); ++i) {
    Session session = must(many.session({.kv = {.prefix = PrefixReuse::off}}));
    std::stop_source source;
    std::thread later([&source, i] {
      std::this_thread::sleep_for(std::chrono::microseconds(50 * (i % 40)));
      source.request_stop();
    });
    const auto logits = session.append(tokens, {.logits = LogitsOf::all, .stop = source.get_token()});
    later.join();
    if (!logits) {
      ++stopped;
      CHECK(logits.error().code() == ErrorCode::cancelled);
      CHECK(session.tokens().empty());
    }
    Session after = must(many.session({.kv = {.prefix = PrefixReuse::off}}));
    CHECK(same_bits(all_logits(after, tokens, 6), expected));
  }
  CHECK(stopped > 0);
}

TEST_CASE("an engine whose rank is gone says so, and the ranks serve the next one") {
  const auto tokens = golden_tokens("llama-gqa");
  RankThreads ranks(file_of("llama-gqa"), 2);
  {
    const Engine engine = must(Engine::load(file_of("llama-gqa"), ranks.options()));
    Session session = must(engine.session());
    must(session.append(std::span(tokens).first(4)));
  }
  {
    const Engine engine = must(Engine::load(file_of("llama-gqa"), ranks.options()));
    Session session = must(engine.session());
    must(session.append(std::span(tokens).first(4)));
    ranks.stop(1);
    for (int i = 0; i < 2; ++i) {
      const auto logits = session.append(std::span(tokens).subspan(4, 2));
      REQUIRE_FALSE(logits);
      INFO(logits.error().text());
      CHECK(logits.error().code() == ErrorCode::device_error);
      CHECK(logits.error().text().find("rank 2") != std::string::npos);
      CHECK(session.tokens().size() == 4);
    }
  }
  const auto engine = Engine::load(file_of("llama-gqa"), ranks.options());
  REQUIRE_FALSE(engine);  // nobody listens at rank 2's address
  CHECK((engine.error().code() == ErrorCode::io || engine.error().code() == ErrorCode::not_found));
}

TEST_CASE("ranks that differ are refused, with the reason") {
  const auto error_of = [](const std::filesystem::path& model, const EngineOptions& options) {
    const auto engine = Engine::load(model, options);
    REQUIRE_FALSE(engine);
    return engine.error().text();
  };
  RankThreads ranks(file_of("llama-gqa"), 1, "open sesame");
  EngineOptions options = ranks.options();
  CHECK(error_of(file_of("llama-gqa"), options).find("secret") != std::string::npos);
  options.rank_secret = "open sesame";
  CHECK(error_of(file_of("qwen3"), options).find("another") != std::string::npos);
  const Engine engine = must(Engine::load(file_of("llama-gqa"), options));
  {  // the rank that refuses is named, also if it is not the first
    RankThreads good(file_of("llama-gqa"), 1), bad(file_of("qwen3"), 1);
    EngineOptions both = good.options();
    both.rank_addresses.push_back(bad.options().rank_addresses.front());
    CHECK(error_of(file_of("llama-gqa"), both).find("rank 2") != std::string::npos);
  }
  options.rank_addresses = {"unix:/tmp/nobody-listens-here"};
  CHECK_FALSE(Engine::load(file_of("llama-gqa"), options));
  options.rank_addresses = {"no address"};
  const auto wrong = Engine::load(file_of("llama-gqa"), options);
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().code() == ErrorCode::invalid_argument);
}

}  // namespace test_rank_processes
