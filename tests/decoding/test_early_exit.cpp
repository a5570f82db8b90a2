// Early exit: tokens against a reference of two engines (the whole model, and a file that has its first layer alone) that compute everything
// anew for each token; the same alone and beside other requests; the session's bits; wrong options.
#include <cmath>

#include "decoding/speculation_rig.hpp"
#include "engine/changed_model.hpp"

#include <tessera/scheduler/scheduler.hpp>

namespace test_early_exit {

using namespace tessera;
using namespace tessera::test;

Engine first_layer() {
  return must(load_changed("llama-gqa", [](GgufWriter& writer) { must(writer.set("llama.block_count", std::uint32_t{1})); }));
}

std::vector<float> logits_after(const Engine& engine, std::span<const Token> tokens) {
  Session session = must(engine.session());
  must(session.append(tokens));
  return {session.logits().begin(), session.logits().end()};
}

double certainty(std::vector<float> logits, ExitRule rule) {
  std::ranges::sort(logits, std::greater<>());
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(double{logit} - double{logits[0]});
  return (1.0 - (rule == ExitRule::margin ? std::exp(double{logits[1]} - double{logits[0]}) : 0.0)) / sum;
}

struct Reference {
  std::vector<Token> tokens;
  std::size_t exited = 0, tries = 0;
};

Reference reference(const Engine& whole, const Engine& first, const RequestKind& kind, std::span<const Token> prompt, const EarlyExitOptions& how) {
  Reference result;
  std::vector<Token> sequence(prompt.begin(), prompt.end());
  Sampler sampler = kind.sampler(whole);
  sampler.begin_answer(prompt.size());
  must(sampler.begin_text(prompt));
  std::uint32_t in_row = 0;
  while (result.tokens.size() < kind.options.max_tokens) {
    std::vector<float> logits;
    if (!result.tokens.empty() && in_row < how.most_in_row) {
      ++result.tries;
      logits = logits_after(first, sequence);
      if (certainty(logits, how.rule) < double{how.confidence}) logits.clear();
    }
    if (logits.empty()) {
      in_row = 0;
      logits = logits_after(whole, sequence);
    } else {
      ++in_row;
      ++result.exited;
    }
    const auto token = sampler.sample(logits, sequence, sequence.size());
    if (!token || !sampler.accept(*token)) break;
    result.tokens.push_back(*token);
    sequence.push_back(*token);
  }
  return result;
}

Outcome exited(const Engine& engine, RequestKind kind, std::span<const Token> prompt, const EarlyExitOptions& how, const SessionOptions& options = {},
               std::size_t leave_after = ~std::size_t{0}) {
  kind.options.early_exit = how;
  return generated(engine, kind, prompt, {}, options, leave_after);
}

constexpr EarlyExitOptions kHow[] = {
    {.layers = 1, .confidence = 1e-6f, .most_in_row = 3},
    {.layers = 1, .confidence = 0.12f},
    {.layers = 1, .rule = ExitRule::margin, .confidence = 0.03f, .most_in_row = 2},
    {.layers = 1, .confidence = 1.0f},
};

TEST_CASE("tokens that exit early are those of the first layers, the others those of the whole model", "[exit]") {
  const Engine whole = load_golden("llama-gqa"), first = first_layer();
  const auto prompt = make_tokens(3, 9, whole.spec().vocab_size);
  std::size_t turn = 0;
  for (const RequestKind& kind : request_kinds()) {
    for (const EarlyExitOptions& how : kHow) {
      INFO(kind.name << ", confidence " << how.confidence);
      const SessionOptions options{.kv = {.kind = turn++ % 3 == 0 ? KvKind::contiguous : KvKind::paged, .page_tokens = 16}};
      const Reference expected = reference(whole, first, kind, prompt, how);
      const Outcome got = exited(whole, kind, prompt, how, options);
      CHECK(got.told.tokens == expected.tokens);
      CHECK(got.figures.exited == expected.exited);
      if (got.told.error.empty()) CHECK(got.figures.exit_tries == expected.tries);
      if (how.confidence == 1.0f) CHECK(got.told == generated(whole, kind, prompt, {}, options).told);
      if (how.confidence < 1e-5f) CHECK(got.figures.exited > 0);
    }
  }
  const Outcome some = exited(whole, request_kinds()[1], prompt, kHow[1]);
  CHECK(some.figures.exited > 0);
  CHECK(some.figures.exited < some.figures.exit_tries);
  const double layers = whole.spec().n_layers(), tokens = static_cast<double>(some.figures.tokens);
  CHECK(some.figures.layers_saved == (static_cast<double>(some.figures.exited) * layers - static_cast<double>(some.figures.exit_tries)) / (tokens * layers));
}

TEST_CASE("a session whose tokens exited has the bits of one to which they were appended", "[exit]") {
  const Engine engine = load_golden("llama-gqa");
  const auto prompt = make_tokens(5, 14, engine.spec().vocab_size);
  for (std::size_t pieces = 1; pieces < 12; ++pieces) {
    Session session = must(engine.session({.kv = {.page_tokens = 16}}));
    must(session.append(prompt));
    Sampler sampler = request_kinds()[1].sampler(engine);
    GenerateOptions options = request_kinds()[1].options;
    options.early_exit = kHow[pieces % 3];
    options.max_tokens = pieces;
    for (const auto& piece : session.generate(sampler, options)) must(Result<Piece>(piece));
    CHECK(must(session.verify()).verdict == Verdict::same);
    Session fork = must(session.fork());
    std::vector<std::byte> saved;
    must(session.save([&](std::span<const std::byte> bytes) {
      saved.insert(saved.end(), bytes.begin(), bytes.end());
      return Status();
    }));
    Session restored = must(engine.restore(saved));
    const auto more = make_tokens(6, 3, engine.spec().vocab_size);
    std::vector<Token> all(session.tokens().begin(), session.tokens().end());
    all.insert(all.end(), more.begin(), more.end());
    const auto expected = logits_after(engine, all);
    for (Session* one : {&session, &fork, &restored}) {
      must(one->append(more));
      CHECK(same_bits(one->logits(), expected));
      must(one->truncate(prompt.size() + 1));
      CHECK(must(one->verify()).verdict == Verdict::same);
    }
  }
}

TEST_CASE("requests of a scheduler exit as they do alone, beside requests that do not", "[scheduler][exit]") {
  const Engine engine = load_golden("llama-gqa", {.step_rows = 64});
  EngineOptions little{.kv = {.page_tokens = 16}};
  little.kv_budget = 12 * 16 * engine.plan().kv_layout.bytes_per_token();
  const Engine small = load_golden("llama-gqa", little);
  const auto kinds = request_kinds();
  for (const Engine* one : {&engine, &small}) {
    for (const std::size_t at_once : {1u, 4u, 16u}) {
      Scheduler scheduler = must(Scheduler::create(*one, {.limits = {.rows = 20}}));
      std::vector<Told> alone;
      std::vector<RequestHandle> handles;
      std::size_t exits = 0;
      for (std::size_t n = 0; n < at_once; ++n) {
        RequestKind kind = kinds[n % kinds.size()];
        const auto prompt = make_tokens(n, 5 + 3 * (n % 7), engine.spec().vocab_size);
        if (n % 3 != 2) kind.options.early_exit = kHow[n % 4];
        const Outcome single = generated(engine, kind, prompt, {});
        alone.push_back(single.told);
        exits += single.figures.exited;
        handles.push_back(must(scheduler.submit({.prompt = prompt, .sampler = kind.sampler(engine), .generate = kind.options})));
      }
      for (std::size_t n = 0; n < at_once; ++n) {
        INFO("request " << n << " of " << at_once << (one == &small ? ", little room" : ""));
        Told told;
        while (auto piece = handles[n].next()) told.add(piece->piece);
        CHECK(told.tokens == alone[n].tokens);
        CHECK(told.text == alone[n].text);
        CHECK(same_bits(told.logprobs, alone[n].logprobs));
      }
      CHECK(scheduler.figures().exited == exits);
      CHECK(exits > 0);
      if (one == &small && at_once == 16) CHECK(scheduler.figures().recomputed > 0);
    }
  }
}

TEST_CASE("an early exit that cannot be is refused by name", "[exit]") {
  const Engine engine = load_golden("llama-gqa");
  const auto prompt = make_tokens(5, 14, engine.spec().vocab_size);
  const auto refusal = [&](const Engine& of, const GenerateOptions& options, const SessionOptions& how = {}) {
    Session session = must(of.session(how));
    must(session.append(prompt));
    Sampler sampler = sampling::chain().greedy().build();
    const auto piece = session.generate(sampler, options).next();
    REQUIRE(piece);
    REQUIRE(!*piece);
    CHECK(session.position() == prompt.size());
    return piece->error().text();
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  CHECK(has(refusal(engine, {.early_exit = {.layers = engine.spec().n_layers()}}), "an early exit after layer"));
  CHECK(has(refusal(engine, {.early_exit = {.layers = 1, .confidence = 0.0f}}), "more than 0, at most 1"));
  CHECK(has(refusal(engine, {.early_exit = {.layers = 1, .confidence = std::nanf("")}}), "more than 0, at most 1"));
  CHECK(has(refusal(engine, {.early_exit = {.layers = 1, .most_in_row = 65}}), "choose 1 to 64"));
  CHECK(has(refusal(engine, {.early_exit = {.layers = 1, .rule = static_cast<ExitRule>(9)}}), "choose probability or margin"));
  CHECK(has(refusal(engine, {.speculate = {.drafter = must(ngram_drafter())}, .early_exit = {.layers = 1}}), "exclude each other"));
  CHECK(has(refusal(engine, {.early_exit = {.layers = 1}}, {.stream = {.sinks = 2, .window = 32}}), "keeps all its tokens"));
  CHECK(has(refusal(load_golden("qwen35"), {.early_exit = {.layers = 1}}), "recurrent layers"));
}

}  // namespace test_early_exit
