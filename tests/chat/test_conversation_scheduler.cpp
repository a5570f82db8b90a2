// Conversations whose turns are requests of one scheduler give what each gives alone, to the last bit.
#include <random>

#include <tessera/conversation/conversation.hpp>
#include <tessera/scheduler/scheduler.hpp>

#include "catch.hpp"
#include "engine/models.hpp"

namespace test_conversation_scheduler {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr const char* kRoles =
    "{% for m in messages %}{{ m.role[0] }}:{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}a:{% endif %}";

const Engine& stories() {
  static const Engine engine = load_stories({.threads = 1});
  return engine;
}

Conversation begin(const std::string& system) {
  return must(Conversation::create(stories(), {.messages = {{.role = "system", .content = system}}},
                                   {.chat_template = must(ChatTemplate::parse(kRoles))}));
}

Sampler drawing(std::uint64_t seed) { return sampling::chain().temperature(0.9f).top_p(0.95f).seed(seed).build(); }

std::string rest_of(Answer& answer) {
  std::string text;
  while (auto delta = answer.next()) text += delta->text;
  must(answer.status());
  return text;
}

void check_same(const Conversation& a, const Conversation& b) {
  CHECK(a.request().to_json().dump() == b.request().to_json().dump());
  CHECK(Snapshot(a.session()) == Snapshot(b.session()));
}

}  // namespace

TEST_CASE("turns of several conversations in one scheduler, with edits and undos, are those of each alone") {
  Scheduler scheduler = must(Scheduler::create(stories()));
  constexpr std::size_t kTalks = 3;
  std::vector<Conversation> together, alone;
  for (std::size_t i = 0; i < kTalks; ++i) {
    together.push_back(begin("You are number " + std::to_string(i)));
    alone.push_back(begin("You are number " + std::to_string(i)));
  }
  std::mt19937 random(8);
  std::size_t kept = 0, all = 0;
  for (std::size_t turn = 0; turn < 6; ++turn) {
    std::vector<Answer> answers;
    for (std::size_t i = 0; i < kTalks; ++i) {
      auto& messages = together[i].request().messages;
      const auto what = messages.size() > 3 ? random() % 4 : 0;
      for (Conversation* talk : {&together[i], &alone[i]}) {
        auto& list = talk->request().messages;
        if (what == 2) list.resize(list.size() - 2);
        if (what == 3) list[1].content = "The dog ran.";
        list.push_back({.role = "user", .content = "Say " + std::to_string(turn * 7 + i)});
      }
      answers.push_back(must(together[i].answer(scheduler, {.prompt = {}, .sampler = drawing(turn + i), .generate = {.max_tokens = 10 + i}})));
      kept += answers.back().prompt().kept;
      all += answers.back().prompt().tokens;
    }
    std::vector<std::string> texts(kTalks);
    for (bool more = true; more;) {  // one piece of each in turn
      more = false;
      for (std::size_t i = 0; i < kTalks; ++i) {
        const auto delta = answers[i].next();
        if (!delta) continue;
        texts[i] += delta->text;
        more = true;
      }
    }
    for (std::size_t i = 0; i < kTalks; ++i) {
      Sampler sampler = drawing(turn + i);
      Answer answer = must(alone[i].answer(sampler, {.max_tokens = 10 + i}));
      CHECK(answer.prompt().kept == answers[i].prompt().kept);
      CHECK(rest_of(answer) == texts[i]);
      CHECK(answer.finish_reason() == answers[i].finish_reason());
      CHECK(answers[i].figures().tokens == answer.figures().tokens);
      check_same(together[i], alone[i]);
    }
  }
  CHECK(2 * kept > all);
  // And both go on by themselves.
  for (Conversation* talk : {&together[0], &alone[0]}) {
    talk->request().messages.push_back({.role = "user", .content = "Alone"});
    must(talk->read());
  }
  check_same(together[0], alone[0]);
}

TEST_CASE("a stopped answer is one; of one that is left a new session knows nothing") {
  Scheduler scheduler = must(Scheduler::create(stories()));
  Conversation talk = begin("Be kind."), alone = begin("Be kind.");
  std::stop_source stop;
  talk.request().messages.push_back({.role = "user", .content = "One day"});
  {
    Answer answer = must(talk.answer(scheduler, {.prompt = {}, .sampler = drawing(3), .generate = {.stop = stop.get_token()}}));
    std::string text = answer.next().value().text;
    stop.request_stop();
    text += rest_of(answer);
    CHECK(answer.finish_reason() == FinishReason::cancelled);
    CHECK(talk.request().messages.back().content == text);
  }
  talk.request().messages.push_back({.role = "user", .content = "And then?"});
  const std::size_t before = talk.request().messages.size();
  {
    Answer left = must(talk.answer(scheduler, {.prompt = {}, .sampler = drawing(4)}));
    REQUIRE(left.next());
  }
  CHECK(talk.request().messages.size() == before);
  while (must(scheduler.step())) {}
  CHECK(scheduler.idle());
  alone.request() = talk.request();
  Answer again = must(talk.answer(scheduler, {.prompt = {}, .sampler = drawing(5), .generate = {.max_tokens = 12}}));
  Sampler sampler = drawing(5);
  Answer same = must(alone.answer(sampler, {.max_tokens = 12}));
  CHECK(rest_of(again) == rest_of(same));
  check_same(talk, alone);
}

TEST_CASE("what a conversation's request cannot have is told, and changes nothing") {
  Scheduler scheduler = must(Scheduler::create(stories(), {.max_waiting = 1}));
  Conversation talk = begin("Be kind.");
  talk.request().messages.push_back({.role = "user", .content = "One day"});
  must(talk.read());
  const Snapshot before(talk.session());
  const auto refused = [&](Request request, ErrorCode code) {
    const auto answer = talk.answer(scheduler, std::move(request));
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code() == code);
    CHECK(Snapshot(talk.session()) == before);
  };
  refused({.prompt = {1}}, ErrorCode::invalid_argument);
  refused({.prompt = {}, .session = must(stories().session())}, ErrorCode::invalid_argument);
  refused({.prompt = {}, .samples = 2}, ErrorCode::invalid_argument);
  refused({.prompt = {}, .on_piece = [](const RequestPiece&) {}}, ErrorCode::invalid_argument);
  refused({.prompt = {}, .sampler = sampling::chain().top_p(7.0f).build()}, ErrorCode::invalid_argument);
  const Engine other = load_stories({.threads = 1});
  Scheduler foreign = must(Scheduler::create(other));
  CHECK_FALSE(talk.answer(foreign, {.prompt = {}}));
  CHECK(Snapshot(talk.session()) == before);
  scheduler.drain();
  refused({.prompt = {}}, ErrorCode::invalid_state);
}

TEST_CASE("a call that is asked for comes by way of a scheduler too") {
  Scheduler scheduler = must(Scheduler::create(stories()));
  const char* tool = R"({"type": "function", "function": {"name": "pet", "parameters": {"type": "object", "properties":
    {"kind": {"type": "string", "enum": ["cat", "dog"]}}, "required": ["kind"], "additionalProperties": false}}})";
  Conversation talk = must(Conversation::create(
      stories(), {.messages = {{.role = "user", .content = "A pet!"}}, .tools = {*Json::parse(tool)}},
      {.chat_template = must(ChatTemplate::parse(kRoles)), .output_format = must(find_output_format("hermes"))}));
  Sampler sampler = sampling::chain()
                        .stage(sampling::GrammarStage{must(talk.tool_matcher({.use = ToolUse::at_once, .max_calls = 1}))})
                        .temperature(1.0f)
                        .seed(2)
                        .build();
  Answer answer = must(talk.answer(scheduler, {.prompt = {}, .sampler = std::move(sampler)}));
  rest_of(answer);
  REQUIRE(talk.request().messages.back().tool_calls.size() == 1);
  CHECK(talk.request().messages.back().tool_calls[0].name == "pet");
}

}  // namespace test_conversation_scheduler
