// Old turns go, and the session is in step with what is left.
#include <stop_token>

#include <tessera/conversation/conversation.hpp>

#include "catch.hpp"
#include "engine/models.hpp"

namespace test_conversation_compaction {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr const char* kRoles =
    "{% for m in messages %}{% if m.content == 'refuse' %}{{ raise_exception('not this') }}{% endif %}"
    "{% if m.role == 'user' and not loop.first and loop.previtem.role == 'user' %}{{ raise_exception('two users') }}{% endif %}"
    "{{ m.role[0] }}:{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}a:{% endif %}";

const Engine& stories() {
  static const Engine engine = load_stories({.threads = 1});
  return engine;
}

// A system's message, and this many turns that are answered.
Conversation told(std::size_t turns, ConversationOptions options = {}) {
  options.chat_template = must(ChatTemplate::parse(kRoles));
  ChatRequest request{.messages = {{.role = "system", .content = "Be kind."}}};
  for (std::size_t i = 0; i < turns; ++i) {
    request.messages.push_back({.role = "user", .content = "Turn " + std::to_string(i) + "?"});
    request.messages.push_back({.role = "assistant", .content = "Yes, the cat sat in the tree."});
  }
  Conversation talk = must(Conversation::create(stories(), std::move(request), std::move(options)));
  must(talk.read());
  return talk;
}

Sampler drawing(std::uint64_t seed = 3) { return sampling::chain().temperature(0.7f).seed(seed).build(); }

void check_in_step(const Conversation& talk) {
  const std::vector<Token> tokens = must(talk.prompt());
  CHECK(std::vector<Token>(talk.session().tokens().begin(), talk.session().tokens().end()) == tokens);
  Session fresh = must(stories().session({.kv = {.prefix = PrefixReuse::off}}));
  const Logits logits = must(fresh.append(tokens));
  CHECK(same_bits(talk.session().logits(), logits.values));
  CHECK(checksums(talk.session()) == checksums(fresh));
}

std::string dumped(const Conversation& talk) { return talk.request().to_json().dump(); }

}  // namespace

TEST_CASE("old turns that are dropped cost a truncation") {
  Conversation talk = told(6);
  const std::vector<Message> before = talk.request().messages;
  const Compaction done = must(talk.drop_old({.keep_turns = 2}));
  CHECK(done.messages == 8);
  REQUIRE(talk.request().messages.size() == 5);
  CHECK(talk.request().messages[0].content == "Be kind.");
  CHECK(talk.request().messages[1].content == "Turn 4?");
  CHECK(talk.request().messages.back().content == before.back().content);
  CHECK(done.tokens_after < done.tokens_before);
  CHECK(done.kept > 0);  // the system's
  CHECK(done.kept < done.tokens_after);
  check_in_step(talk);
  CHECK(must(talk.drop_old({.keep_turns = 2})).messages == 0);
  CHECK(must(talk.drop_old({.keep_turns = 9})).messages == 0);
  CHECK(must(talk.drop_old({.keep_turns = 0})).messages == 4);
  CHECK(talk.request().messages.size() == 1);
}

TEST_CASE("a turn that is not answered yet is one of the last") {
  Conversation talk = told(4);
  talk.request().messages.push_back({.role = "user", .content = "And now?"});
  CHECK(must(talk.drop_old({.keep_turns = 1})).messages == 8);
  CHECK(talk.request().messages.back().content == "And now?");
  check_in_step(talk);
  Sampler sampler = drawing();
  Answer answer = must(talk.answer(sampler, {.max_tokens = 6}));
  while (answer.next()) {}
  must(answer.status());
  CHECK(talk.request().messages.size() == 3);
}

TEST_CASE("a summary is what the model writes when it is asked for one, and stands where the old turns stood") {
  Conversation talk = told(6), asked = told(6);
  const CompactionOptions how{.keep_turns = 2, .question = "Sum up.", .max_tokens = 24};
  Sampler sampler = drawing();
  const Compaction done = must(talk.summarise_old(sampler, how));
  // The same by hand.
  auto& messages = asked.request().messages;
  const std::vector<Message> last(messages.end() - 4, messages.end());
  messages.resize(9);
  messages.push_back({.role = "user", .content = "Sum up."});
  Sampler same = drawing();
  Answer answer = must(asked.answer(same, {.max_tokens = 24}));
  CHECK(answer.prompt().kept + 12 > must(told(4).prompt()).size());  // the question is appended to what was read
  while (answer.next()) {}
  must(answer.status());
  CHECK(done.summary == messages.back().content);
  CHECK_FALSE(done.summary.empty());

  const auto& now = talk.request().messages;
  REQUIRE(now.size() == 7);
  CHECK(now[1].role == "user");
  CHECK(now[1].content == "Sum up.");
  CHECK(now[2].role == "assistant");
  CHECK(now[2].content == done.summary);
  CHECK(now[3].content == "Turn 4?");
  CHECK(done.messages == 8);
  CHECK(talk.request().arguments.empty());  // nothing of how it was asked for stays
  check_in_step(talk);
  CHECK(must(talk.summarise_old(sampler, how)).messages == 0);  // a summary is not summed up by itself
  talk.request().messages.push_back({.role = "user", .content = "More."});
  talk.request().messages.push_back({.role = "assistant", .content = "Yes."});
  CHECK(must(talk.summarise_old(sampler, how)).messages == 4);
  CHECK(talk.request().messages.size() == 7);
  check_in_step(talk);
}

TEST_CASE("a conversation that is longer than the context can be compacted") {
  Conversation talk = told(4);
  const std::size_t before = must(talk.prompt()).size();
  while (talk.prompt()) {
    talk.request().messages.push_back({.role = "user", .content = "Turn?"});
    talk.request().messages.push_back({.role = "assistant", .content = "Yes, the cat sat in the tree."});
  }
  CHECK(must(talk.drop_old({.keep_turns = 3})).tokens_after < before);
  check_in_step(talk);
}

TEST_CASE("a summary that fails leaves messages and session as they were") {
  for (const KvKind kind : {KvKind::paged, KvKind::contiguous}) {
    Conversation talk = told(5, {.session = {.kv = {.kind = kind}}});
    const std::string before = dumped(talk);
    const Snapshot session(talk.session());
    Sampler sampler = drawing();
    std::stop_source stop;
    stop.request_stop();
    const auto stopped = talk.summarise_old(sampler, {.stop = stop.get_token()});
    REQUIRE_FALSE(stopped);
    CHECK(stopped.error().code() == ErrorCode::cancelled);
    CHECK_FALSE(talk.summarise_old(sampler, {.question = "refuse"}));
    CHECK_FALSE(talk.summarise_old(sampler, {.max_tokens = 10, .progress = [](std::size_t, std::size_t) { return false; }}));
    std::size_t drawn = 0;
    Sampler failing = sampling::chain()
                          .stage([&drawn](sampling::Candidates&, const sampling::Context&) -> Status {
                            if (++drawn < 4) return {};
                            return Error(ErrorCode::invalid_state, "enough");
                          })
                          .seed(1)
                          .build();
    const auto failed = talk.summarise_old(failing);
    REQUIRE_FALSE(failed);
    CHECK(failed.error().message() == "enough");
    Sampler silent = sampling::chain().allow({*stories().tokenizer().eos()}).build();
    const auto none = talk.summarise_old(silent);
    REQUIRE_FALSE(none);
    CHECK(none.error().code() == ErrorCode::invalid_state);
    CHECK(dumped(talk) == before);
    if (kind == KvKind::paged) CHECK(Snapshot(talk.session()) == session);
    must(talk.read());
    if (kind == KvKind::paged) check_in_step(talk);
  }
}

}  // namespace test_conversation_compaction
