// Stop strings end an answer at the same byte however the answer is made: drafted, as one of several samples, as a request, in pieces,
// with reasoning in front, in the messages of gpt-oss.
#include <tessera/conversation/conversation.hpp>
#include <tessera/decoding/drafters.hpp>
#include <tessera/decoding/samples.hpp>
#include <tessera/scheduler/scheduler.hpp>

#include "catch.hpp"
#include "engine/models.hpp"

namespace test_stopped_answers {

using namespace tessera;
using namespace tessera::test;

namespace {

const Engine& stories() {
  static const Engine engine = load_stories({.threads = 1});
  return engine;
}

std::vector<Token> encoded(const std::string& text) { return must(stories().tokenizer().encode(text, {.bos = Bos::never})); }

// Draws the tokens of a text, one after the other, and then the end.
Sampler saying(const std::string& text, std::size_t from) {
  std::vector<Token> script = encoded(text);
  script.push_back(*stories().tokenizer().eos());
  return sampling::chain()
      .stage([script, from](sampling::Candidates& candidates, const sampling::Context& context) {
        const Token wanted = script.at(static_cast<std::size_t>(context.position) - from);
        candidates.remove_if([wanted](const sampling::Candidate& candidate) { return candidate.token != wanted; });
      })
      .seed(1)
      .build();
}

struct Way {
  const char* name;
  SpeculateOptions speculate{};
};

const std::vector<Way>& ways() {
  static const std::vector<Way> all{
      {"plain"},
      {"drafts of what stands in the prompt", {.drafter = must(ngram_drafter({.shortest = 1})), .max_drafts = 7, .length = DraftLength::longest}},
      {"drafts from a suffix automaton, in a tree", {.drafter = must(suffix_drafter()), .max_drafts = 12, .length = DraftLength::longest, .branches = 4}},
      {"drafts of a model", {.drafter = must(model_drafter(stories())), .max_drafts = 3, .length = DraftLength::longest}},
  };
  return all;
}

struct Stopped {
  std::string text;
  FinishReason reason = FinishReason::none;
  std::int32_t which = -1;
  bool operator==(const Stopped&) const = default;

  void add(const Piece& piece) {
    text += piece.text;
    reason = piece.finish;
    which = piece.stop_string;
  }
};

Stopped generated(const Session& prompt, const Sampler& sampler, std::uint32_t stream, GenerateOptions options) {
  Session session = must(prompt.fork());
  Sampler own = must(sampler.clone());
  own.reseed(sampler.seed(), sampler.stream() + stream);
  Stopped stopped;
  for (const auto& piece : session.generate(own, options)) stopped.add(must(Result<Piece>(piece)));
  return stopped;
}

constexpr std::uint32_t kSamples = 3;

// The answers of every way: one alone, as samples, as requests of a scheduler. `accepted` grows by the drafts that were right.
void check_all(const std::vector<Token>& prompt, const Sampler& sampler, GenerateOptions options, const std::vector<Stopped>& expected, std::uint64_t& accepted) {
  Session session = must(stories().session());
  must(session.append(prompt));
  Scheduler scheduler = must(Scheduler::create(stories()));
  std::vector<RequestHandle> requests;
  for (const Way& way : ways()) {
    INFO(way.name);
    options.speculate = way.speculate;
    CHECK(generated(session, sampler, 0, options).text == expected[0].text);
    CHECK(generated(session, sampler, 0, options) == expected[0]);
    std::vector<Stopped> samples(kSamples);
    Samples drawn = must(Samples::start(session, sampler, {.samples = kSamples, .generate = options}));
    while (auto piece = drawn.next()) samples[piece->sample].add(piece->piece);
    must(drawn.status());
    CHECK(samples == expected);
    requests.push_back(must(scheduler.submit({.prompt = prompt, .sampler = must(sampler.clone()), .generate = options, .samples = kSamples})));
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    INFO("a request, " << ways()[i].name);
    std::vector<Stopped> samples(kSamples);
    while (auto piece = requests[i].next()) samples[piece->sample].add(piece->piece);
    must(requests[i].status());
    CHECK(samples == expected);
    accepted += requests[i].figures().accepted;
  }
}

}  // namespace

TEST_CASE("a stop string ends an answer at the same byte in every way of running") {
  struct Case {
    const char* format;
    bool in_reasoning;  // as the prompt ends
    std::string answer;
    std::vector<std::string> stops;
    std::string text;  // up to where it is stopped
    std::int32_t which = 0;
    bool stops_in_reasoning = false;
  };
  const std::string final = "<|start|>assistant<|channel|>final<|message|>";
  const std::vector<Case> cases{
      {"think", true, "We stop here to think.</think>\n\nThe dog ran. It will stop now.", {"stop"}, "We stop here to think.</think>\n\nThe dog ran. It will "},
      {"think", true, "We stop here to think.</think>\n\nThe dog ran.", {"stop"}, "We ", 0, true},
      {"think", true, "One\n\ntwo.</think>The cat.\n\nThe end.", {"\n\n", "end"}, "One\n\ntwo.</think>The cat."},
      {"hermes", false, "<think>The end.</think>Ja. The end.", {"nobody", "end", "The end"}, "<think>The end.</think>Ja. ", 2},
      {"hermes", false, "<think>a b</think>The </think> end of it.", {"</think>"}, "<think>a b</think>The "},
      {"mistral", false, "[THINK]stop it[/THINK]Do stop it.", {"stop it"}, "[THINK]stop it[/THINK]Do "},
      // gpt-oss: no word of a header, nor of the analysis, is the answer's.
      {"harmony", false, "<|channel|>analysis<|message|>Be final.<|end|>" + final + "It is final, we stop.", {"stop", "final", "assistant"},
       "<|channel|>analysis<|message|>Be final.<|end|>" + final + "It is ", 1},
      {"harmony", false, "<|channel|>analysis<|message|>Be final.<|end|>" + final + "It is.", {"final"}, "<|channel|>analysis<|message|>Be ", 0, true},
      {"harmony", false, "<|channel|>analysis<|message|>A<|end|>" + final + "The analysis.", {"analysis", "commentary"},
       "<|channel|>analysis<|message|>A<|end|>" + final + "The "},
  };
  std::uint64_t accepted = 0;
  for (const Case& one : cases) {
    INFO(one.format << ": " << one.answer);
    // The answer stands in the prompt, so that there is something to draft.
    std::vector<Token> prompt = encoded("Say: " + one.answer + "\nIt said: ");
    GenerateOptions options{.max_tokens = 200, .stop_strings = one.stops, .control_text = ControlText::show};
    if (!one.stops_in_reasoning) {
      options.stop_free = StopFree{.stretches = must(reasoning_stretches(must(find_output_format(one.format)))), .starts_inside = one.in_reasoning};
    }
    const std::vector<Stopped> expected(kSamples, {one.text, FinishReason::stop_string, one.which});
    check_all(prompt, saying(one.answer, prompt.size()), options, expected, accepted);
  }
  CHECK(accepted > 50);
}

TEST_CASE("drawn answers are stopped where their text has the stop string, in every way of running") {
  std::uint64_t accepted = 0;
  std::size_t stopped = 0;
  const std::vector<Token> prompt = encoded("The cat saw the dog. The dog saw the cat. The cat saw");
  Session session = must(stories().session());
  must(session.append(prompt));
  for (const std::uint64_t seed : {1u, 2u, 3u, 4u}) {
    const Sampler sampler = sampling::chain().temperature(seed % 2 == 0 ? 1.1f : 0.4f).seed(seed).build();
    GenerateOptions options{.max_tokens = 40};
    std::vector<Stopped> expected;
    const std::vector<std::string> stops{"he c", "g. ", " was a", "nd t"};
    for (std::uint32_t i = 0; i < kSamples; ++i) {
      Stopped whole = generated(session, sampler, i, options);
      std::size_t first = std::string::npos, end = std::string::npos;
      for (std::size_t s = 0; s < stops.size(); ++s) {
        const std::size_t at = whole.text.find(stops[s]);
        if (at == std::string::npos || at + stops[s].size() >= end) continue;  // the one that is complete first
        first = at;
        end = at + stops[s].size();
        whole.which = static_cast<std::int32_t>(s);
      }
      if (first != std::string::npos) {
        whole.text.resize(first);
        whole.reason = FinishReason::stop_string;
        ++stopped;
      }
      expected.push_back(whole);
    }
    options.stop_strings = stops;
    check_all(prompt, sampler, options, expected, accepted);
  }
  CHECK(stopped >= 5);
  CHECK(accepted > 0);
}

TEST_CASE("a conversation's answer is stopped in its text alone, in its session and in a scheduler, unless it is asked for") {
  constexpr const char* kThinking = "{% for m in messages %}{{ m.role[0] }}: {{ m.content }}\n{% endfor %}a: <think>{{ '\\n' }}";
  constexpr const char* kHarmony = "{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endfor %}<|start|>assistant{# <|channel|> #}";
  struct Case {
    const char* source;
    std::string answer, reasoning, text;
    bool stops_in_reasoning = false;
  };
  const std::vector<Case> cases{
      {kThinking, "Do not stop.</think>\n\nNow stop.", "Do not stop.", "Now "},
      {kThinking, "Do not stop.</think>\n\nNow stop.", "Do not", "", true},
      {kHarmony, "<|channel|>analysis<|message|>Do not stop.<|end|><|start|>assistant<|channel|>final<|message|>Now stop.", "Do not stop.", "Now "},
      {kHarmony, "<|channel|>analysis<|message|>Do not stop.<|end|>", "Do not", "", true},
  };
  for (const Case& one : cases) {
    INFO(one.answer);
    for (const Way& way : ways()) {
      for (const bool is_request : {false, true}) {
        INFO(way.name << (is_request ? ", a request" : ""));
        Conversation talk = must(Conversation::create(stories(), {.messages = {{.role = "user", .content = one.answer}}}, {.chat_template = must(ChatTemplate::parse(one.source))}));
        Sampler sampler = saying(one.answer, must(talk.prompt()).size());
        std::optional<StopFree> nowhere;
        if (one.stops_in_reasoning) nowhere.emplace();
        Scheduler scheduler = must(Scheduler::create(stories()));
        const GenerateOptions options{.max_tokens = 100, .stop_strings = {"stop"}, .stop_free = nowhere, .speculate = way.speculate};
        Answer answer = is_request ? must(talk.answer(scheduler, {.prompt = {}, .sampler = must(sampler.clone()), .generate = options}))
                                   : must(talk.answer(sampler, {.max_tokens = 100, .stop_strings = {"stop"}, .stop_free = nowhere, .speculate = way.speculate}));
        std::string reasoning, text;
        while (auto delta = answer.next()) (delta->kind == OutputDelta::Kind::reasoning ? reasoning : text) += delta->text;
        must(answer.status());
        CHECK(reasoning == one.reasoning);
        CHECK(text == one.text);
        CHECK(answer.finish_reason() == FinishReason::stop_string);
        REQUIRE(talk.request().messages.size() == 2);
        CHECK(talk.request().messages[1].content == one.text);
      }
    }
  }
}

TEST_CASE("a control token that is no marker is not shown, wherever it was forced, unless it is asked for") {
  const Token end = *stories().tokenizer().eos();  // <|endoftext|>, the one control token of this vocabulary
  REQUIRE(stories().tokenizer().is_control(end));
  std::vector<Token> script = encoded("The dog");
  script.insert(script.begin(), end);
  script.push_back(end);
  for (const Token token : encoded(" ran.")) script.push_back(token);
  const std::vector<Token> prompt = encoded("Once");
  const Sampler sampler = sampling::chain()
                              .stage([script, from = prompt.size()](sampling::Candidates& candidates, const sampling::Context& context) {
                                const Token wanted = script.at(static_cast<std::size_t>(context.position) - from);
                                candidates.remove_if([wanted](const sampling::Candidate& candidate) { return candidate.token != wanted; });
                              })
                              .seed(1)
                              .build();
  GenerateOptions options{.max_tokens = script.size(), .end_of_generation = EndOfGeneration::ignore, .control_text = ControlText::show};
  std::uint64_t accepted = 0;
  const auto all = [&](const std::string& text) { check_all(prompt, sampler, options, std::vector<Stopped>(kSamples, {text, FinishReason::max_tokens}), accepted); };
  all("<|endoftext|>The dog<|endoftext|> ran.");
  options.shown_control = std::vector<Token>{end};
  all("<|endoftext|>The dog<|endoftext|> ran.");
  options.shown_control = must(marker_tokens(stories().tokenizer(), must(find_output_format("hermes"))));
  all("The dog ran.");
  options.shown_control = must(marker_tokens(stories().tokenizer(), must(find_output_format("glm"))));  // one of whose markers it is
  all("<|endoftext|>The dog<|endoftext|> ran.");
  options.control_text = ControlText::omit;
  all("The dog ran.");
}

}  // namespace test_stopped_answers
