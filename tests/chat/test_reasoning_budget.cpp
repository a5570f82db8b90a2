// A budget ends the reasoning where it says, whatever the model would write, and is not seen otherwise.
#include <tessera/conversation/conversation.hpp>
#include <tessera/decoding/drafters.hpp>

#include "catch.hpp"
#include "engine/models.hpp"

namespace test_reasoning_budget {

using namespace tessera;
using namespace tessera::test;

namespace {

const Engine& stories() {
  static const Engine engine = load_stories({.threads = 1});
  return engine;
}

const Tokenizer& tokenizer() { return stories().tokenizer(); }

OutputFormat format(const char* name = "think") { return must(find_output_format(name)); }

std::vector<Token> encoded(const std::string& text) { return must(tokenizer().encode(text, {.bos = Bos::never})); }

// The one token that the stage leaves of two, or none if it leaves both.
std::optional<Token> forced(ReasoningBudget& budget, Token other) {
  std::optional<Token> only;
  const std::size_t vocab = tokenizer().vocab_size();
  std::vector<Token> tokens(vocab);
  std::vector<float> logits(vocab), weights(vocab);
  std::vector<std::uint64_t> keys(vocab);
  std::vector<std::uint32_t> counts(vocab);
  for (std::size_t i = 0; i < vocab; ++i) tokens[i] = static_cast<Token>(i);
  sampling::Candidates candidates({tokens, logits, weights, keys, counts}, vocab);
  must(budget(candidates, {}));
  if (candidates.size() == 1) only = candidates[0].token;
  else CHECK(candidates.size() == vocab);
  (void)other;
  return only;
}

// What an answer is that would be this text, under a budget: each token as it comes, but for those that the stage writes.
std::string bounded(const std::string& text, const ReasoningBudgetOptions& options, const char* name = "think") {
  ReasoningBudget budget = must(ReasoningBudget::create(tokenizer(), format(name), options));
  std::string out;
  for (const Token token : encoded(text)) {
    while (const auto must_come = forced(budget, token)) {
      must(budget.accept(*must_come, 0.0f));
      out += tokenizer().piece(*must_come);
    }
    must(budget.accept(token, 0.0f));
    out += tokenizer().piece(token);
  }
  while (const auto must_come = forced(budget, 0)) {
    must(budget.accept(*must_come, 0.0f));
    out += tokenizer().piece(*must_come);
  }
  return out;
}

constexpr const char* kThinking = "{% for m in messages %}{{ m.role[0] }}: {{ m.content }}\n{% endfor %}a: <think>{{ '\\n' }}";

struct Heard {
  std::string text, reasoning;
  std::vector<Token> tokens;
};

Heard answer(Conversation& talk, Sampler& sampler, const AnswerOptions& options = {.max_tokens = 60}) {
  const std::size_t before = must(talk.prompt()).size();
  Answer answer = must(talk.answer(sampler, options));
  Heard heard;
  while (auto delta = answer.next()) {
    if (delta->kind == OutputDelta::Kind::text) heard.text += delta->text;
    if (delta->kind == OutputDelta::Kind::reasoning) heard.reasoning += delta->text;
  }
  must(answer.status());
  const auto all = talk.session().tokens();
  heard.tokens.assign(all.begin() + static_cast<std::ptrdiff_t>(before), all.end());
  return heard;
}

Conversation begin(const char* source) {
  return must(Conversation::create(stories(), {.messages = {{.role = "user", .content = "Once there was a cat."}}},
                                   {.chat_template = must(ChatTemplate::parse(source))}));
}

}  // namespace

TEST_CASE("reasoning has as many tokens as the budget, and then its end") {
  const std::string told = "One day a cat ran to the big tree and saw a bird";
  const std::vector<Token> tokens = encoded(told);
  for (std::size_t n = 0; n < tokens.size(); ++n) {
    std::string first;
    for (std::size_t i = 0; i < n; ++i) first += tokenizer().piece(tokens[i]);
    const std::string out = bounded(told, {.tokens = n, .starts_in_reasoning = true});
    CHECK(out == first + "</think>" + told.substr(first.size()));
  }
  const std::string opened = "<think>" + told, out = bounded(opened, {.tokens = 5});
  const std::size_t end = out.find("</think>");
  REQUIRE(end != std::string::npos);
  CHECK(encoded(out.substr(7, end - 7)).size() == 5);
  CHECK(out.substr(0, end) + out.substr(end + 8) == opened);
}

TEST_CASE("reasoning that ends in time is left alone, and so is text") {
  for (const char* text : {"One day.</think>The cat ran and ran and ran to the tree.", "</think>The cat ran and ran to the tree."}) {
    CHECK(bounded(text, {.tokens = 8, .starts_in_reasoning = true}) == text);
  }
  CHECK(bounded("The cat ran and ran and ran.", {.tokens = 2}) == "The cat ran and ran and ran.");
  // What is spent is spent: of a second reasoning only what is left.
  CHECK(bounded("<think>One.</think>Yes<think>Two three four five six", {.tokens = 0}) ==
        "<think></think>One.</think>Yes<think></think>Two three four five six");
}

TEST_CASE("the end comes behind the last words, in the format's way, and within no character") {
  CHECK(bounded("One day a cat", {.tokens = 2, .starts_in_reasoning = true, .last_words = "\nEnough.\n"}).find("\nEnough.\n</think>") != std::string::npos);
  CHECK(bounded("One day a cat", {.tokens = 2, .starts_in_reasoning = true}, "cohere").find("<|END_THINKING|>") != std::string::npos);
  const std::string emoji = "a\xF0\x9F\x98\x80" "b\xC3\xA9" "c";
  for (std::size_t n = 0; n < 10; ++n) {
    const std::string out = bounded(emoji, {.tokens = n, .starts_in_reasoning = true});
    const std::size_t end = out.find("</think>");
    REQUIRE(end != std::string::npos);
    for (const std::size_t cut : {end}) CHECK((cut == 0 || cut == 1 || cut == 5 || cut == 6 || cut == 8 || cut == 9));
  }
  CHECK_FALSE(ReasoningBudget::create(tokenizer(), {.name = "none", .regions = {}}, {}));
}

TEST_CASE("what is rolled back was not accepted") {
  const std::vector<Token> tokens = encoded("One <think>day a cat ran to</think> the big <think>tree and saw");
  ReasoningBudget budget = must(ReasoningBudget::create(tokenizer(), format(), {.tokens = 6}));
  std::vector<std::optional<Token>> before;
  for (const Token token : tokens) {
    before.push_back(forced(budget, token));
    must(budget.accept(token, 0.0f));
  }
  for (std::size_t i = tokens.size(); i-- > 0;) {
    budget.rollback(1);
    CHECK(forced(budget, 0) == before[i]);
  }
  for (const Token token : tokens) must(budget.accept(token, 0.0f));
  const auto at_end = forced(budget, 0);
  budget.rollback(tokens.size());
  for (const Token token : tokens) must(budget.accept(token, 0.0f));
  CHECK(forced(budget, 0) == at_end);
}

TEST_CASE("a conversation's answer reasons for as long as it may, drafted or not") {
  const auto drawing = [](std::optional<ReasoningBudget> budget) {
    auto chain = sampling::chain();
    if (budget) chain.stage(*std::move(budget));
    return chain.temperature(0.8f).seed(4).build();
  };
  Conversation free = begin(kThinking);
  Sampler plain = drawing({});
  const Heard all = answer(free, plain);
  CHECK(all.text.empty());  // a story teller that ends no reasoning
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{20}}) {
    Conversation talk = begin(kThinking);
    Sampler sampler = drawing(must(talk.reasoning_budget({.tokens = n})));
    const Heard heard = answer(talk, sampler);
    REQUIRE(std::min(heard.tokens.size(), all.tokens.size()) >= n);
    CHECK(std::ranges::equal(std::span(heard.tokens).first(n), std::span(all.tokens).first(n)));
    const std::string reasoning = must(tokenizer().decode(std::span(all.tokens).first(n)));
    CHECK(reasoning.find(heard.reasoning) != std::string::npos);
    CHECK_FALSE(heard.text.empty());
    CHECK(talk.request().messages.back().reasoning == heard.reasoning);
    for (const auto& drafter : {must(suffix_drafter()), must(model_drafter(stories()))}) {
      Conversation again = begin(kThinking);
      Sampler same = drawing(must(again.reasoning_budget({.tokens = n})));
      const Heard drafted = answer(again, same, {.max_tokens = 60, .speculate = {.drafter = drafter, .length = DraftLength::longest}});
      CHECK(drafted.tokens == heard.tokens);
    }
  }
}

}  // namespace test_reasoning_budget
