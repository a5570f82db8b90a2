// Conversations with an adapter that its invocation activates: however much of the prompt the session has computed before, an answer is
// that of a conversation that reads all messages anew.
#include <tessera/conversation/conversation.hpp>
#include <tessera/scheduler/scheduler.hpp>

#include "catch.hpp"
#include "engine/made_adapter.hpp"
#include "engine/models.hpp"

namespace test_conversation_adapters {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr const char* kRoles =
    "{% for m in messages %}{{ m.role[0] }}:{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}a:{% endif %}";

// An engine, and an adapter whose invocation is the end of each prompt of kRoles.
struct Rig {
  Rig() : engine(load_stories({.threads = 2})) {
    const std::vector<Token> prompt = must(talk({}, {{.role = "user", .content = "Hello"}}).prompt());
    const std::vector<std::uint32_t> end(prompt.end() - 2, prompt.end());
    const ModelFile file = must(ModelFile::open(source_dir() / "models/tessera-stories.gguf"));
    const auto in_layers = [](std::string_view name) { return name.starts_with("blk."); };
    const MadeAdapter how{.rank = 2, .seed = 4, .size = 0.6f, .takes = in_layers, .invocation = end};
    adapter = must(engine.adapter(folder.write("second-thought", file, how)));
  }
  [[nodiscard]] Conversation talk(std::vector<AdapterUse> adapters, std::vector<Message> messages) const {
    return must(Conversation::create(engine, {.messages = std::move(messages)},
                                     {.chat_template = must(ChatTemplate::parse(kRoles)), .session = {.adapters = std::move(adapters)}}));
  }

  AdapterFolder folder;
  Engine engine;
  Adapter adapter;
};

std::string answer_of(Conversation& talk, Scheduler* scheduler) {
  Sampler sampler = sampling::chain().greedy().build();
  Answer answer = scheduler == nullptr ? must(talk.answer(sampler, {.max_tokens = 8}))
                                       : must(talk.answer(*scheduler, {.prompt = {}, .generate = {.max_tokens = 8}}));
  std::string text;
  while (const auto delta = answer.next()) text += delta->text;
  must(answer.status());
  return text;
}

std::optional<std::uint64_t> first_position(const Conversation& talk) {
  const auto uses = must(talk.session().adapters());
  REQUIRE(uses.size() == 1);
  return uses[0].from;
}

}  // namespace

TEST_CASE("an adapter begins at the last invocation of each turn's prompt", "[adapters]") {
  const Rig rig;
  Scheduler scheduler = must(Scheduler::create(rig.engine, {.limits = {.rows = 5}}));
  for (Scheduler* by : {static_cast<Scheduler*>(nullptr), &scheduler}) {
    Conversation talk = rig.talk({{rig.adapter}}, {});
    bool does_something = false;
    for (const std::string question : {"Once upon a time", "And then?", "Why?"}) {
      INFO(question);
      talk.request().messages.push_back({.role = "user", .content = question});
      Conversation twin = rig.talk({{rig.adapter}}, talk.request().messages), plain = rig.talk({}, talk.request().messages);
      const std::size_t length = must(talk.prompt()).size();
      const std::string text = answer_of(talk, by);
      CHECK(first_position(talk) == length - 2);
      CHECK(text == answer_of(twin, nullptr));
      does_something |= text != answer_of(plain, nullptr);
      CHECK(must(talk.session().verify()).verdict == Verdict::same);
    }
    CHECK(does_something);
    // The same question once more: the session has the whole prompt and an answer behind it.
    talk.request().messages.pop_back();
    Conversation twin = rig.talk({{rig.adapter}}, talk.request().messages);
    CHECK(answer_of(talk, by) == answer_of(twin, nullptr));
  }
}

TEST_CASE("an adapter that comes to a conversation later, or with one request, begins at the prompt's last invocation", "[adapters]") {
  const Rig rig;
  Scheduler scheduler = must(Scheduler::create(rig.engine));
  Conversation talk = rig.talk({}, {{.role = "user", .content = "Once upon a time"}});
  (void)answer_of(talk, nullptr);
  talk.request().messages.push_back({.role = "user", .content = "Why?"});
  for (const float scale : {1.0f, 0.5f}) {
    const std::vector<AdapterUse> uses = {{rig.adapter, scale}};
    must(talk.use_adapters(uses));
    Conversation twin = rig.talk(uses, talk.request().messages), other = rig.talk({}, talk.request().messages);
    const std::string expected = answer_of(twin, nullptr);
    must(other.read());
    Answer answer = must(other.answer(scheduler, {.prompt = {}, .generate = {.max_tokens = 8}, .adapters = uses}));
    std::string text;
    while (const auto delta = answer.next()) text += delta->text;
    CHECK(text == expected);
    CHECK(answer_of(talk, nullptr) == expected);
    CHECK(first_position(talk) == first_position(twin));
    talk.request().messages.pop_back();
  }
}

}  // namespace test_conversation_adapters
