// A sampler that follows a text: for one text after the other, of one tokenizer, and one answer of a conversation at a time.
#include <tessera/conversation/conversation.hpp>
#include <tessera/decoding/samples.hpp>
#include <tessera/extend/grammar/matcher.hpp>
#include <tessera/scheduler/scheduler.hpp>

#include <memory>
#include <string>
#include <vector>

#include "catch.hpp"
#include "engine/models.hpp"

namespace test_sampler_texts {

using namespace tessera;
using namespace tessera::test;

namespace {

const Engine& stories() {
  static const Engine engine = must(Engine::load(source_dir() / "models/tessera-stories.gguf", {.threads = 1}));
  return engine;
}

const CompiledGrammar& grammar() {
  static const CompiledGrammar made = must(
      CompiledGrammar::create(must(Grammar::regex("[a-d]{8}(x|y)z")), must(GrammarVocabulary::create(stories().tokenizer()))));
  return made;
}

Sampler following(const CompiledGrammar& of, std::uint64_t seed = 1) {
  return sampling::chain().stage(sampling::GrammarStage{must(Matcher::create(of))}).temperature(1.0f).seed(seed).build();
}

void read(Session& session, const char* text) { must(session.append(must(stories().tokenizer().encode(text)))); }

std::string draw(Session& session, Sampler& sampler, std::size_t max_tokens = 0) {
  std::string text;
  for (const auto& piece : session.generate(sampler, {.max_tokens = max_tokens})) {
    if (!piece) FAIL(piece.error().text());
    text += piece->text;
  }
  return text;
}

bool is_whole(const std::string& text) { return must(grammar().check(text)).accepted; }

ErrorCode refused(const std::optional<Result<Piece>>& first) { return first ? first->error().code() : ErrorCode::none; }

}  // namespace

TEST_CASE("a sampler with a grammar serves one text after the other") {
  Session session = must(stories().session({.context = 256}));
  Sampler sampler = following(grammar());
  for (int i = 0; i < 3; ++i) {
    read(session, "Once upon a time");
    CHECK(is_whole(draw(session, sampler)));
  }
  CHECK(is_whole(draw(session, sampler)));  // the text before is whole: this is another one
}

TEST_CASE("nothing stands behind the end of a grammar, also where the end is ignored") {
  const CompiledGrammar braces = must(CompiledGrammar::create(must(Grammar::ebnf("root ::= \"{\" \"}\"")),
                                                             must(GrammarVocabulary::create(stories().tokenizer()))));
  for (const EndOfGeneration end : {EndOfGeneration::stop, EndOfGeneration::ignore}) {
    Session session = must(stories().session({.context = 64}));
    read(session, "Once");
    Sampler sampler = following(braces);
    std::string text;
    const auto summary = session.generate(sampler, {.max_tokens = 8, .end_of_generation = end},
                                          [&](const Piece& piece) { return text += piece.text, true; });
    CHECK(text == "{}");
    CHECK(must(summary).finish ==
          (end == EndOfGeneration::stop ? FinishReason::end_of_generation : FinishReason::max_tokens));
  }
}

TEST_CASE("a text that was cut is left where another prompt follows, and goes on where none does") {
  Session session = must(stories().session({.context = 256}));
  Sampler sampler = following(grammar());
  read(session, "Once upon a time");
  std::string text = draw(session, sampler, 2);
  CHECK_FALSE(is_whole(text));
  text += draw(session, sampler, 1);
  text += draw(session, sampler);
  CHECK(is_whole(text));

  read(session, "One day");
  CHECK_FALSE(is_whole(draw(session, sampler, 2)));
  read(session, "Then");
  CHECK(is_whole(draw(session, sampler)));

  // Taken back together, it goes on; the session alone, it is another text.
  read(session, "One day");
  text = draw(session, sampler, 3);
  const std::size_t end = session.tokens().size();
  must(session.truncate(end - 1));
  must(sampler.rollback(1));
  const std::string kept = must(stories().tokenizer().decode(session.tokens().last(2), {.start = TextStart::continuation}));
  CHECK(is_whole(kept + draw(session, sampler)));
  CHECK_FALSE(is_whole(draw(session, sampler, 2)));
  must(session.truncate(session.tokens().size() - 1));
  CHECK(is_whole(draw(session, sampler)));
}

TEST_CASE("tokens that a host has had accepted begin the text") {
  Session session = must(stories().session());
  read(session, "Once upon a time");
  Sampler sampler = following(grammar());
  const std::vector<Token> begun = must(stories().tokenizer().encode("ab", {.bos = Bos::never}));
  std::vector<Token> begin;
  for (const Token token : begun) {
    if (!stories().tokenizer().piece(token).starts_with(' ')) begin.push_back(token);
  }
  std::string text;
  for (const Token token : begin) {
    text += stories().tokenizer().piece(token);
    must(sampler.accept(token));
  }
  REQUIRE_FALSE(text.empty());
  must(session.append(begin));
  CHECK(is_whole(text + draw(session, sampler)));
}

TEST_CASE("samples and requests begin a text of their own") {
  Sampler sampler = following(grammar());
  Session session = must(stories().session());
  read(session, "Once upon a time");
  Session other = must(session.fork());
  CHECK(is_whole(draw(other, sampler)));
  Samples samples = must(Samples::start(session, sampler, {.samples = 2}));
  std::string texts[2];
  while (auto piece = samples.next()) {
    texts[piece->sample] += piece->piece.text;
  }
  CHECK(is_whole(texts[0]));
  CHECK(is_whole(texts[1]));
}

TEST_CASE("a grammar of another tokenizer is refused, whoever draws") {
  const Engine other = load_golden("llama-gqa");
  REQUIRE(other.tokenizer().vocab_size() > 0);
  const auto vocabulary = must(GrammarVocabulary::create(other.tokenizer()));
  CHECK(vocabulary.tokenizer() == other.tokenizer().fingerprint());
  const auto foreign = must(CompiledGrammar::create(must(Grammar::literal("a")), vocabulary));
  Sampler sampler = following(foreign);
  CHECK(sampler.check_tokenizer(stories().tokenizer().fingerprint()).error().code() == ErrorCode::invalid_argument);
  CHECK(sampler.check_tokenizer(other.tokenizer().fingerprint()));
  CHECK(sampler.check_tokenizer({}));

  Session session = must(stories().session());
  read(session, "Once upon a time");
  CHECK(refused(session.generate(sampler).next()) == ErrorCode::invalid_argument);
  CHECK(Samples::start(session, sampler, {}).error().code() == ErrorCode::invalid_argument);
  Scheduler scheduler = must(Scheduler::create(stories()));
  CHECK(scheduler.submit({.prompt = {1}, .sampler = following(foreign)}).error().code() == ErrorCode::invalid_argument);
  Batch batch;
  const Token one = 1;
  must(batch.add(session, {&one, 1}, sampler));
  CHECK(stories().forward(batch).error().code() == ErrorCode::invalid_argument);
  Conversation talk = must(Conversation::create(stories(), {.messages = {{.role = "user", .content = "Hi"}}}));
  CHECK(talk.answer(sampler).error().code() == ErrorCode::invalid_argument);
  const auto budget = must(ReasoningBudget::create(other.tokenizer(), must(find_output_format("think")), {.tokens = 1}));
  Sampler bounded = sampling::chain().stage(budget).build();
  CHECK(talk.answer(bounded).error().code() == ErrorCode::invalid_argument);
}

TEST_CASE("while an answer goes on there is no second one, and the first one lives on") {
  Conversation talk = must(Conversation::create(stories(), {.messages = {{.role = "user", .content = "One day"}}}));
  const auto hear = [](Answer& answer) {
    std::string text;
    while (auto delta = answer.next()) text += delta->text;
    return text;
  };
  Sampler first = sampling::chain().temperature(0.9f).seed(7).build(), second = sampling::chain().greedy().build();
  std::string alone;
  {
    Answer answer = must(talk.answer(first, {.max_tokens = 20}));
    alone = hear(answer);
    talk.request().messages.pop_back();
  }
  Answer answer = must(talk.answer(first, {.max_tokens = 20}));
  std::string text = answer.next()->text;
  Scheduler scheduler = must(Scheduler::create(stories()));
  CHECK(talk.answer(second, {.max_tokens = 20}).error().code() == ErrorCode::invalid_state);
  CHECK(talk.answer(scheduler, {}).error().code() == ErrorCode::invalid_state);
  CHECK(talk.read().error().code() == ErrorCode::invalid_state);
  CHECK(talk.drop_old().error().code() == ErrorCode::invalid_state);
  CHECK(talk.summarise_old(second).error().code() == ErrorCode::invalid_state);
  text += hear(answer);
  CHECK(text == alone);
  CHECK(talk.request().messages.back().content == alone);

  // One that has ended, though it still lives, is in nobody's way; nor is one that was left.
  talk.request().messages.push_back({.role = "user", .content = "And then?"});
  {
    Answer left = must(talk.answer(second, {.max_tokens = 20}));
    CHECK(left.next());
  }
  CHECK(talk.answer(scheduler, {}));
  must(talk.read());
}

TEST_CASE("an answer outlives the handle of its conversation") {
  auto talk = std::make_unique<Conversation>(must(Conversation::create(stories(), {.messages = {{.role = "user", .content = "One day"}}})));
  Sampler sampler = sampling::chain().greedy().build();
  Answer answer = must(talk->answer(sampler, {.max_tokens = 4}));
  talk.reset();
  std::size_t pieces = 0;
  while (auto delta = answer.next()) pieces += delta->text.size();
  CHECK(pieces > 0);
  CHECK(answer.finish_reason() == FinishReason::max_tokens);
}

}  // namespace test_sampler_texts
