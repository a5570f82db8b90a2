// A matcher's promises: roll back, fork, drafts, forced bytes, the end, the stage.
#include "grammar_rig.hpp"

#include <thread>

#include <tessera/extend/grammar/cache.hpp>
#include <tessera/sampling/chain.hpp>

namespace test_grammar_matcher {

using namespace grammar_rig;

namespace {

const std::string kPerson = R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},
  "required":["name","age"],"additionalProperties":false})";

void type(Matcher& matcher, std::string_view text) {
  for (const char c : text) REQUIRE(matcher.accept(static_cast<unsigned char>(c)).has_value());
}

std::vector<std::uint64_t> mask_of(Matcher& matcher) {
  const auto mask = matcher.mask();
  REQUIRE(mask.has_value());
  return {mask->begin(), mask->end()};
}

}  // namespace

TEST_CASE("roll back comes to where it was, a copy goes its own way") {
  const GrammarVocabulary v = vocabulary();
  const CompiledGrammar grammar = compiled(Grammar::json_schema(kPerson), v);
  auto matcher = Matcher::create(grammar);
  std::vector<std::vector<std::uint64_t>> masks;
  const std::string text = R"({"age": 12, "name": "B\u00e9"})";
  for (const char c : text) {
    masks.push_back(mask_of(*matcher));
    type(*matcher, std::string(1, c));
  }
  CHECK(matcher->may_end());
  Matcher fork = *matcher;
  REQUIRE(fork.accept(end_of(v)).has_value());
  CHECK(fork.ended());
  CHECK_FALSE(matcher->ended());
  for (std::size_t n = text.size(); n-- > 0;) {
    REQUIRE(matcher->rollback(1).has_value());
    CHECK(mask_of(*matcher) == masks[n]);
  }
  CHECK_FALSE(matcher->rollback(1).has_value());
  REQUIRE(fork.rollback(1 + text.size()).has_value());
  CHECK(mask_of(fork) == masks[0]);
}

TEST_CASE("a token that is not allowed is an error and changes nothing") {
  const GrammarVocabulary v = vocabulary({"{\"age", "{\"no"});
  const CompiledGrammar grammar = compiled(Grammar::json_schema(kPerson), v);
  auto matcher = Matcher::create(grammar);
  const auto before = mask_of(*matcher);
  CHECK_FALSE(matcher->accept('[').has_value());
  CHECK_FALSE(matcher->accept(257).has_value());
  CHECK_FALSE(matcher->accept(end_of(v)).has_value());
  CHECK_FALSE(matcher->accept(-1).has_value());
  CHECK_FALSE(matcher->accept(1'000'000).has_value());
  CHECK(mask_of(*matcher) == before);
  CHECK(matcher->accept(256).has_value());
}

TEST_CASE("a draft is checked in one call, up to its first wrong token") {
  const GrammarVocabulary v = vocabulary();
  const CompiledGrammar grammar = compiled(Grammar::regex("ab*c"), v);
  auto matcher = Matcher::create(grammar);
  const std::vector<Token> draft{'a', 'b', 'b', 'd', 'c'};
  CHECK(*matcher->check(draft) == 3);
  CHECK(matcher->accepted() == 0);
  const std::vector<Token> whole{'a', 'c', end_of(v), 'x'};
  CHECK(*matcher->check(whole) == 3);
}

TEST_CASE("forced bytes are those that must come, and no more") {
  const GrammarVocabulary v = vocabulary();
  const CompiledGrammar grammar = compiled(Grammar::json_schema(kPerson, {.space = JsonSpace::none, .order = JsonOrder::stated}), v);
  auto matcher = Matcher::create(grammar);
  CHECK(*matcher->forced() == R"({"name":")");
  type(*matcher, R"({"name":"x)");
  CHECK(matcher->forced()->empty());
  type(*matcher, "\"");
  CHECK(*matcher->forced() == R"(,"age":)");
  const std::vector<std::string> texts{"hello there", "hello you"};
  const CompiledGrammar choice = compiled(Grammar::choice(texts), v);
  auto chooser = Matcher::create(choice);
  CHECK(*chooser->forced() == "hello ");
  type(*chooser, "hello t");
  CHECK(*chooser->forced() == "here");
  CHECK(*chooser->forced(2) == "he");
  type(*chooser, "here");
  CHECK(chooser->forced()->empty());
  CHECK(tokens_of(*chooser->mask()) == std::vector<Token>{end_of(v)});
}

TEST_CASE("a character may be split over tokens, and only a whole one ends the text") {
  const GrammarVocabulary v = vocabulary({"\xC3\xA9\xF0\x9F", "\x98\x80"});
  const CompiledGrammar grammar = compiled(Grammar::regex("[\\u00e0-\\u00ff\\u{1F600}]+"), v);
  auto matcher = Matcher::create(grammar);
  CHECK_FALSE(has(*matcher->mask(), 257));
  REQUIRE(matcher->accept(256).has_value());
  CHECK_FALSE(matcher->may_end());
  CHECK(has(*matcher->mask(), 257));
  CHECK(has(*matcher->mask(), 0x98));
  CHECK_FALSE(has(*matcher->mask(), 0x99));
  REQUIRE(matcher->accept(257).has_value());
  CHECK(matcher->may_end());
}

TEST_CASE("a chain with the stage first draws texts of the grammar only") {
  const GrammarVocabulary v = vocabulary({"true", "fal", "se"});
  const CompiledGrammar grammar = compiled(Grammar::json_schema(R"({"type":"array","items":{"type":"boolean"},"minItems":1,"maxItems":3})"), v);
  std::vector<float> logits(v.size(), 0.0f);
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    auto matcher = Matcher::create(grammar);
    auto sampler = sampling::chain().stage(sampling::GrammarStage{*matcher}).temperature(1.0f).seed(seed).build();
    std::vector<Token> history;
    std::string text;
    while (history.size() < 300) {
      auto token = sampler.sample(logits, history, history.size());
      if (!token) FAIL(token.error().text());
      REQUIRE(sampler.accept(*token).has_value());
      if (history.size() == 2) {  // a copy has the same to say
        auto copy = sampler.clone();
        REQUIRE(copy.has_value());
        REQUIRE(copy->rollback(1).has_value());
        REQUIRE(copy->accept(*token).has_value());
      }
      history.push_back(*token);
      if (*token == end_of(v)) break;
      text += v.bytes(*token);
    }
    if (history.back() == end_of(v)) CHECK(accepts(grammar, text));
  }
}

TEST_CASE("matchers of one grammar are used by several threads") {
  std::mt19937 seeds(1);
  const GrammarVocabulary v = vocabulary(random_texts(seeds, 200));
  const CompiledGrammar grammar = compiled(Grammar::json(), v);
  std::vector<std::thread> threads;
  std::vector<int> failures(4);
  for (std::size_t t = 0; t < failures.size(); ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < 20; ++i) {
        auto matcher = Matcher::create(grammar);
        for (int step = 0; step < 30 && !matcher->ended(); ++step) {
          const auto mask = matcher->mask();
          if (!mask) {
            ++failures[t];
            break;
          }
          const auto allowed = tokens_of(*mask);
          failures[t] += !matcher->accept(allowed[random() % allowed.size()]).has_value();
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(failures == std::vector<int>(4));
}

TEST_CASE("a vocabulary that lacks what a grammar needs is an error, not a crash") {
  const std::vector<std::string> tokens{"x", "y", ""};
  const Token end = 2;
  const auto v = GrammarVocabulary::create(tokens, {&end, 1});
  const CompiledGrammar grammar = compiled(Grammar::regex("xz"), *v);
  auto matcher = Matcher::create(grammar);
  REQUIRE(matcher->accept(0).has_value());
  const auto mask = matcher->mask();
  REQUIRE_FALSE(mask.has_value());
  CHECK_THAT(mask.error().text(), Catch::Matchers::ContainsSubstring("no token"));
}

TEST_CASE("the cache gives the same grammar again, and forgets the one not asked for the longest") {
  const GrammarVocabulary v = vocabulary();
  auto cache = GrammarCache::create(v, {.entries = 2});
  REQUIRE(cache.has_value());
  const auto get = [&](std::string_view pattern) { return cache->get({.kind = GrammarSource::Kind::regex, .text = pattern}); };
  const auto first = get("a+");
  REQUIRE(first.has_value());
  CHECK(accepts(*first, "aa"));
  REQUIRE(get("b+").has_value());
  REQUIRE(get("a+").has_value());
  CHECK(cache->size() == 2);
  REQUIRE(get("c+").has_value());  // b+ goes
  CHECK(cache->size() == 2);
  CHECK_FALSE(get("(").has_value());
  CHECK(cache->size() == 2);
  CHECK(accepts(*cache->get({.kind = GrammarSource::Kind::json_schema, .text = "{\"const\":1}"}), " 1"));
  CHECK_FALSE(accepts(*cache->get({.kind = GrammarSource::Kind::json_schema, .text = "{\"const\":1}", .options = {.space = JsonSpace::none}}), " 1"));
  CHECK(accepts(*first, "aaa"));  // whoever has it keeps it
}

}  // namespace test_grammar_matcher
