// What a grammar forces is drafted: the tokens are the same, in fewer steps.
#include <algorithm>

#include <tessera/decoding/drafters.hpp>
#include <tessera/extend/grammar/matcher.hpp>

#include "catch.hpp"
#include "engine/models.hpp"

namespace test_forced_drafts {

using namespace tessera;
using namespace tessera::test;

namespace {

const Engine& stories() {
  static const Engine engine = load_stories({.threads = 1});
  return engine;
}

const CompiledGrammar& person() {
  static const CompiledGrammar grammar = [] {
    const auto vocabulary = must(GrammarVocabulary::create(stories().tokenizer()));
    const auto schema = must(Grammar::json_schema(R"({"type": "object", "properties": {
        "first_name": {"enum": ["Anna", "Tom", "Lily"]}, "favourite_animal": {"enum": ["cat", "dog", "a big elephant"]},
        "age_in_years": {"type": "integer", "minimum": 0, "maximum": 99}, "likes_playing_outside": {"type": "boolean"}},
        "required": ["first_name", "favourite_animal", "age_in_years", "likes_playing_outside"], "additionalProperties": false})",
                                                  {.space = JsonSpace::none, .order = JsonOrder::stated}));
    return must(CompiledGrammar::create(schema, vocabulary));
  }();
  return grammar;
}

struct Written {
  std::vector<Token> tokens;
  std::string text;
  Figures figures;
};

// How a text is cut into tokens: as this small model likes, which has never seen such names; or as models do that have them in
// their prompt, in long tokens, which go on behind what is forced where they can.
enum class Cut { any, longest };

void keep_longest(sampling::Candidates& candidates, const sampling::Context&) {
  const auto size = [](Token token) { return stories().tokenizer().piece(token).size(); };
  std::size_t longest = 0;
  for (const Token token : candidates.tokens()) longest = std::max(longest, size(token));
  candidates.remove_if([&](const sampling::Candidate& candidate) { return size(candidate.token) < longest; });
}

Written written(std::uint64_t seed, Cut how, std::shared_ptr<const Drafter> drafter, DraftLength length = DraftLength::longest) {
  Session session = must(stories().session());
  must(session.append(must(stories().tokenizer().encode("Once upon a time"))));
  Sampler sampler = sampling::chain()
                        .stage(sampling::GrammarStage{must(Matcher::create(person()))})
                        .stage(how == Cut::longest ? keep_longest : [](sampling::Candidates&, const sampling::Context&) {})
                        .temperature(0.7f)
                        .seed(seed)
                        .build();
  Generation generation = session.generate(sampler, {.max_tokens = 200, .speculate = {.drafter = std::move(drafter), .max_drafts = 16, .length = length}});
  Written out;
  for (const auto& piece : generation) {
    if (!piece) FAIL(piece.error().text());
    out.tokens.push_back(piece->token);
    out.text += piece->text;
  }
  out.figures = generation.figures();
  must(generation.drafting());
  return out;
}

}  // namespace

TEST_CASE("forced tokens are drafted: the same text in fewer steps", "[speculation]") {
  for (const Cut cut : {Cut::any, Cut::longest}) {
    std::size_t plain_steps = 0, steps = 0, drafted = 0, accepted = 0;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const Written plain = written(seed, cut, nullptr), forced = written(seed, cut, must(forced_drafter()));
      CHECK(forced.tokens == plain.tokens);
      CHECK(forced.text == plain.text);
      plain_steps += plain.figures.steps;
      steps += forced.figures.steps;
      drafted += forced.figures.drafted;
      accepted += forced.figures.accepted;
      const Written measured = written(seed, cut, must(forced_drafter()), DraftLength::by_goodput);
      CHECK(measured.tokens == plain.tokens);
      const Written both = written(seed, cut, must(forced_drafter(must(suffix_drafter({.least = 0.0f})))));
      CHECK(both.tokens == plain.tokens);
      CHECK(both.figures.drafted > forced.figures.drafted);
    }
    CAPTURE(plain_steps, steps, drafted, accepted);
    CHECK(plain_steps == steps + accepted);
    CHECK(accepted > 0);
    if (cut == Cut::any) continue;
    CHECK(2 * accepted >= drafted);
    CHECK(10 * steps <= 6 * plain_steps);
  }
}

TEST_CASE("without a grammar nothing is forced, and the other drafter is asked", "[speculation]") {
  Session session = must(stories().session());
  must(session.append(must(stories().tokenizer().encode("Once upon a time"))));
  Sampler sampler = sampling::chain().greedy().build();
  CHECK(must(sampler.forced()).empty());
  Session fork = must(session.fork());
  const auto steps = [](Session& of, Sampler& with, std::shared_ptr<const Drafter> drafter) {
    Generation generation = of.generate(with, {.max_tokens = 40, .speculate = {.drafter = std::move(drafter), .length = DraftLength::longest}});
    for (const auto& piece : generation) must(Result<Piece>(piece));
    return generation.figures();
  };
  CHECK(steps(session, sampler, must(forced_drafter())).drafted == 0);
  Sampler again = sampling::chain().greedy().build();
  const Figures with = steps(fork, again, must(forced_drafter(must(suffix_drafter({.least = 0.0f})))));
  CHECK(with.drafted > 0);
}

TEST_CASE("a stage of a user's own may force, and one that fails ends the drafts alone", "[speculation]") {
  struct Forces {
    bool fails;
    void operator()(sampling::Candidates&, const sampling::Context&) {}
    Result<std::string> forced() {
      if (fails) return Error(ErrorCode::invalid_state, "no");
      return std::string(" the cat and the dog");
    }
  };
  for (const bool fails : {false, true}) {
    Session session = must(stories().session());
    must(session.append(must(stories().tokenizer().encode("Once upon a time"))));
    Sampler sampler = sampling::chain().stage(Forces{fails}).greedy().build();
    Generation generation = session.generate(sampler, {.max_tokens = 20, .speculate = {.drafter = must(forced_drafter()), .length = DraftLength::longest}});
    for (const auto& piece : generation) must(Result<Piece>(piece));
    CHECK(generation.figures().tokens > 0);
    CHECK(generation.drafting().has_value() == !fails);
    CHECK((generation.figures().drafted > 0) == !fails);
  }
}

}  // namespace test_forced_drafts
