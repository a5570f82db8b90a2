// A conversation's session holds what its messages render to, whatever happened to them.
#include <random>
#include <set>

#include <tessera/conversation/conversation.hpp>
#include <tessera/extend/grammar/cache.hpp>

#include "catch.hpp"
#include "engine/models.hpp"

namespace test_conversation {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr const char* kRoles =
    "{% for m in messages %}{% if m.content == 'refuse' %}{{ raise_exception('not this') }}{% endif %}"
    "{{ m.role[0] }}:{{ m.content }}{% if m.tool_calls %}{{ m.tool_calls|tojson }}{% endif %}\n{% endfor %}"
    "{% if add_generation_prompt %}a:{% endif %}";
// Reasoning is begun by the template, and not shown again.
constexpr const char* kThinking =
    "{% for m in messages %}{{ m.role[0] }}: {{ m.content }}\n{% endfor %}a: <think>{{ '\\n' }}";

const Engine& stories() {
  static const Engine engine = load_stories({.threads = 2});
  return engine;
}

Conversation begin(const char* source, ChatRequest request = {}, ConversationOptions options = {}) {
  options.chat_template = must(ChatTemplate::parse(source));
  return must(Conversation::create(stories(), std::move(request), std::move(options)));
}

Sampler drawing(std::uint64_t seed) { return sampling::chain().temperature(0.9f).seed(seed).build(); }

// Draws the tokens of a text, one after the other, and then the end.
Sampler saying(const std::string& text, std::size_t from) {
  std::vector<Token> script = must(stories().tokenizer().encode(text, {.bos = Bos::never}));
  script.push_back(*stories().tokenizer().eos());
  return sampling::chain()
      .stage([script, from](sampling::Candidates& candidates, const sampling::Context& context) {
        const Token wanted = script.at(static_cast<std::size_t>(context.position) - from);
        candidates.remove_if([wanted](const sampling::Candidate& candidate) { return candidate.token != wanted; });
      })
      .seed(1)
      .build();
}

struct Heard {
  std::string text, reasoning, arguments;
  std::vector<std::string> calls;
  std::size_t ended = 0;
};

Heard hear(Answer& answer) {
  Heard heard;
  while (auto delta = answer.next()) {
    const OutputDelta& d = *delta;
    switch (d.kind) {
      case OutputDelta::Kind::text: heard.text += d.text; break;
      case OutputDelta::Kind::reasoning: heard.reasoning += d.text; break;
      case OutputDelta::Kind::call_begin: heard.calls.push_back(d.name + " " + d.id); break;
      case OutputDelta::Kind::call_arguments: heard.arguments += d.text; break;
      case OutputDelta::Kind::call_end: ++heard.ended; break;
    }
  }
  must(answer.status());
  return heard;
}

// That the session is what a new one is after reading everything.
void check_in_step(const Conversation& talk) {
  const std::vector<Token> tokens = must(talk.prompt());
  CHECK(std::vector<Token>(talk.session().tokens().begin(), talk.session().tokens().end()) == tokens);
  Session fresh = must(stories().session({.kv = {.prefix = PrefixReuse::off}}));
  const Logits logits = must(fresh.append(tokens));
  CHECK(same_bits(talk.session().logits(), logits.values));
  CHECK(checksums(talk.session()) == checksums(fresh));
  CHECK_FALSE(talk.session().edited());
}

}  // namespace

TEST_CASE("twenty turns with edits and undos: the logits are those of reading everything anew") {
  std::mt19937 random(5);
  Conversation talk = begin(kRoles, {.messages = {{.role = "system", .content = "Be kind."}}});
  std::vector<Message>& messages = talk.request().messages;
  std::size_t turns = 0, kept = 0, all = 0;
  while (turns < 20) {
    switch (messages.size() > 3 ? random() % 6 : 0) {
      case 3:  // an undo
        messages.resize(messages.size() - 2);
        break;
      case 4:  // an edit somewhere
        messages[1 + random() % (messages.size() - 1)].content = "The dog ran.";
        break;
      case 5:  // a turn is taken out
        messages.erase(messages.begin() + 1, messages.begin() + 3);
        break;
      default: break;
    }
    if (messages.back().role == "user") messages.pop_back();
    messages.push_back({.role = "user", .content = "Say " + std::to_string(random() % 100)});
    const ReadSummary read = must(talk.read());
    check_in_step(talk);
    kept += read.kept;
    all += read.tokens;
    Sampler sampler = drawing(turns);
    Answer answer = must(talk.answer(sampler, {.max_tokens = 8}));
    CHECK(answer.prompt().kept == read.tokens);  // read() has read it
    const Heard heard = hear(answer);
    CHECK(messages.back().role == "assistant");
    CHECK(messages.back().content == heard.text);
    ++turns;
  }
  CHECK(messages.size() > 10);
  CHECK(2 * kept > all);  // and most of it was not read again
}

TEST_CASE("a new turn is appended, and a dropped one is not read again") {
  Conversation talk = begin(kRoles, {.messages = {{.role = "user", .content = "One day"}}});
  Sampler first = sampling::chain().greedy().build();  // whose words are cut as the tokenizer cuts them
  Answer answer = must(talk.answer(first, {.max_tokens = 12}));
  hear(answer);
  const std::size_t before = talk.session().tokens().size();
  talk.request().messages.push_back({.role = "user", .content = "And then?"});
  const ReadSummary turn = must(talk.read());
  CHECK(turn.kept + 2 >= before);  // but for where the text's end and the line end may be one token
  talk.request().messages.resize(1);
  const ReadSummary undone = must(talk.read());
  CHECK(undone.kept == undone.tokens);
  check_in_step(talk);
}

TEST_CASE("reasoning that a template drops costs a truncation, not a new prompt") {
  Conversation talk = begin(kThinking, {.messages = {{.role = "user", .content = "Once there was a small cat."}}});
  const std::size_t asked = must(talk.prompt()).size();
  Sampler sampler = saying("Hm.</think>Yes.", asked);
  Answer answer = must(talk.answer(sampler));
  const Heard heard = hear(answer);
  CHECK(heard.reasoning == "Hm.");
  CHECK(heard.text == "Yes.");
  CHECK(answer.finish_reason() == FinishReason::end_of_generation);
  CHECK(talk.request().messages.back().reasoning == "Hm.");
  talk.request().messages.push_back({.role = "user", .content = "Why?"});
  const ReadSummary read = must(talk.read());
  CHECK(read.kept + 8 >= asked);
  CHECK(read.kept < asked);
  check_in_step(talk);
}

TEST_CASE("calls stream, have ids, and are answered") {
  ConversationOptions options{.output_format = must(find_output_format("hermes"))};
  Conversation talk = begin(kRoles, {.messages = {{.role = "user", .content = "Add."}}}, options);
  for (const char* id : {"call00001", "call00002"}) {
    Sampler sampler = saying("So. <tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}}</tool_call>", must(talk.prompt()).size());
    Answer answer = must(talk.answer(sampler));
    const Heard heard = hear(answer);
    CHECK(heard.text == "So.");
    REQUIRE(heard.calls.size() == 1);
    CHECK(heard.calls[0] == std::string("add ") + id);
    CHECK(heard.arguments == "{\"a\": 1}");
    CHECK(heard.ended == 1);
    const Message& made = talk.request().messages.back();
    REQUIRE(made.tool_calls.size() == 1);
    CHECK(made.tool_calls[0].id == id);
    talk.request().messages.push_back({.role = "tool", .content = "2", .tool_call_id = id});
    must(talk.read());
    check_in_step(talk);
  }
}

TEST_CASE("a call that is asked for comes, in the format's way and of the schema") {
  const char* tool = R"({"type": "function", "function": {"name": "pet", "parameters": {"type": "object", "properties":
    {"kind": {"type": "string", "enum": ["cat", "dog"]}, "loud": {"type": "boolean"}}, "required": ["kind", "loud"],
    "additionalProperties": false}}})";
  for (const char* format : {"hermes", "qwen-xml", "llama-json", "pythonic", "mistral-args", "gemma", "kimi", "deepseek-dsml"}) {
    INFO(format);
    Conversation talk = begin(kRoles, {.messages = {{.role = "user", .content = "A pet!"}}, .tools = {*Json::parse(tool)}},
                              {.output_format = must(find_output_format(format))});
    for (std::uint64_t seed = 0; seed < 2; ++seed) {
      Sampler sampler = sampling::chain()
                            .stage(sampling::GrammarStage{must(talk.tool_matcher({.use = ToolUse::at_once, .name = "pet", .max_calls = 1}))})
                            .temperature(2.0f)
                            .seed(seed)
                            .build();
      Answer answer = must(talk.answer(sampler));
      const Heard heard = hear(answer);
      CHECK(answer.finish_reason() == FinishReason::end_of_generation);
      CHECK(heard.ended == 1);
      const Message made = talk.request().messages.back();
      REQUIRE(made.tool_calls.size() == 1);
      CHECK(made.tool_calls[0].name == "pet");
      const Json& arguments = made.tool_calls[0].arguments;
      REQUIRE(arguments.find("kind") != nullptr);
      CHECK((*arguments.find("kind") == Json("cat") || *arguments.find("kind") == Json("dog")));
      REQUIRE(arguments.find("loud") != nullptr);
      CHECK(arguments.find("loud")->boolean() != nullptr);
      talk.request().messages.pop_back();
    }
    CHECK_FALSE(talk.tool_matcher({.name = "pot"}));
  }
}

TEST_CASE("a tool whose schema cannot be held takes nothing from the others, and the conversation names it") {
  const char* pet = R"({"type": "function", "function": {"name": "pet", "parameters": {"type": "object", "properties": {"kind": {"enum": ["cat", "dog"]}},
    "required": ["kind"], "additionalProperties": false}}})";
  const char* list = R"({"type": "function", "function": {"name": "list", "parameters": {"type": "object", "properties":
    {"l": {"type": "array", "uniqueItems": true, "items": {"enum": [1, 2]}, "maxItems": 3}}, "required": ["l"], "additionalProperties": false}}})";
  for (const char* format : {"hermes", "qwen-xml", "pythonic", "gemma"}) {
    INFO(format);
    Conversation talk = begin(kRoles, {.messages = {{.role = "user", .content = "A pet!"}}, .tools = {*Json::parse(list), *Json::parse(pet)}},
                              {.output_format = must(find_output_format(format))});
    CHECK(talk.tool_warnings().empty());
    std::set<std::string> called;
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      const Matcher matcher = must(talk.tool_matcher({.use = ToolUse::at_once, .max_calls = 1}));
      REQUIRE(talk.tool_warnings().size() == 1);  // also when the grammar was kept
      CHECK(talk.tool_warnings()[0].find("'list'") != std::string::npos);
      CHECK(talk.tool_warnings()[0].find("uniqueItems") != std::string::npos);
      Sampler sampler = sampling::chain().stage(sampling::GrammarStage{matcher}).temperature(3.0f).seed(seed).build();
      Answer answer = must(talk.answer(sampler));
      (void)hear(answer);
      const Message made = talk.request().messages.back();
      talk.request().messages.pop_back();
      REQUIRE(made.tool_calls.size() == 1);
      called.insert(made.tool_calls[0].name);
      const Json& arguments = made.tool_calls[0].arguments;
      if (made.tool_calls[0].name == "list") {
        REQUIRE(arguments.find("l") != nullptr);
        CHECK(arguments.find("l")->elements()->size() <= 3);  // the rest of its schema is held
      } else {
        REQUIRE(arguments.find("kind") != nullptr);
        CHECK((*arguments.find("kind") == Json("cat") || *arguments.find("kind") == Json("dog")));
      }
    }
    CHECK(called == std::set<std::string>{"list", "pet"});
    CHECK(talk.tool_matcher({.name = "pet"}));
    CHECK(talk.tool_warnings().empty());  // a tool that is not on offer is nobody's concern
  }
}

TEST_CASE("a matcher is kept for equal options alone") {
  const char* tool = R"({"type": "function", "function": {"name": "count", "parameters": {"type": "object", "properties":
    {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false}}})";
  Conversation talk = begin(kRoles, {.messages = {{.role = "user", .content = "Count!"}}, .tools = {*Json::parse(tool)}},
                            {.output_format = must(find_output_format("hermes"))});
  const std::string call = "<tool_call>\n{\"name\": \"count\", \"arguments\": {\"n\": " + std::string(60, '7') + "}}\n</tool_call>";
  const std::vector<Token> tokens = must(stories().tokenizer().encode(call, {.bos = Bos::never}));
  const auto allowed = [&](JsonNumbers numbers) {
    Matcher matcher = must(talk.tool_matcher({.use = ToolUse::at_once, .json = {.space = JsonSpace::blank, .numbers = numbers}}));
    return must(matcher.check(tokens));
  };
  const std::size_t plain = allowed(JsonNumbers::plain), any = allowed(JsonNumbers::any);
  CHECK(plain < any);
  CHECK(allowed(JsonNumbers::plain) == plain);

  // No two options have the same key.
  std::set<std::string> keys;
  const JsonSchemaOptions options[] = {{},
                                       {.space = JsonSpace::blank},
                                       {.order = static_cast<JsonOrder>(1)},
                                       {.numbers = JsonNumbers::plain},
                                       {.formats = JsonFormats::annotation},
                                       {.unsupported = static_cast<JsonUnsupported>(1)}};
  for (const JsonSchemaOptions& one : options) {
    keys.insert(one.key());
    keys.insert(ToolGrammarOptions{.json = one}.key());
    keys.insert(GrammarSource{.kind = GrammarSource::Kind::json_schema, .text = "{}", .options = one}.key());
  }
  keys.insert(ToolGrammarOptions{.use = ToolUse::at_once}.key());
  keys.insert(ToolGrammarOptions{.name = "1 1"}.key());
  keys.insert(ToolGrammarOptions{.name = "1", .max_calls = 1}.key());
  keys.insert(ToolGrammarOptions{.starts_in_reasoning = true}.key());
  CHECK(keys.size() == 3 * std::size(options) + 4);
}

TEST_CASE("an answer that is stopped is one; one that is left, or fails, is none") {
  Conversation talk = begin(kRoles, {.messages = {{.role = "user", .content = "One day"}}});
  std::stop_source stop;
  Sampler sampler = drawing(3);
  {
    Answer answer = must(talk.answer(sampler, {.stop = stop.get_token()}));
    std::string text;
    while (text.size() < 10) text += answer.next().value().text;
    stop.request_stop();
    text += hear(answer).text;
    CHECK(answer.finish_reason() == FinishReason::cancelled);
    CHECK(talk.request().messages.size() == 2);
    CHECK(talk.request().messages.back().content == text);
  }
  talk.request().messages.push_back({.role = "user", .content = "On."});
  {
    Answer left = must(talk.answer(sampler, {.max_tokens = 20}));
    REQUIRE(left.next());
  }
  CHECK(talk.request().messages.size() == 3);
  std::size_t drawn = 0;
  Sampler failing = sampling::chain()
                        .stage([&drawn](sampling::Candidates&, const sampling::Context&) -> Status {
                          if (++drawn < 4) return {};
                          return Error(ErrorCode::invalid_state, "enough");
                        })
                        .seed(1)
                        .build();
  Answer answer = must(talk.answer(failing));
  while (answer.next()) {}
  CHECK(answer.status().error().message() == "enough");
  CHECK_FALSE(answer.next());
  CHECK(answer.status().error().message() == "enough");  // it stays
  CHECK(answer.finish_reason() == FinishReason::error);
  CHECK(talk.request().messages.size() == 3);
  must(talk.read());
  check_in_step(talk);
}

TEST_CASE("an error leaves messages and session as they were") {
  Conversation talk = begin(kRoles, {.messages = {{.role = "user", .content = "One day there was a cat."}}});
  Sampler sampler = drawing(4);
  Answer told = must(talk.answer(sampler, {.max_tokens = 10}));
  hear(told);
  const Snapshot before(talk.session());
  const auto fails = [&](ErrorCode code, const ReadOptions& options = {}) {
    const auto read = talk.read(options);
    REQUIRE_FALSE(read);
    CHECK(read.error().code() == code);
    const auto answer = talk.answer(sampler, {.stop = options.stop, .progress = options.progress});
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code() == code);
    CHECK(Snapshot(talk.session()) == before);
  };
  const ChatRequest good = talk.request();
  talk.request().messages.push_back({.role = "user", .content = "refuse"});
  fails(ErrorCode::invalid_argument);
  CHECK(talk.request().messages.size() == 3);
  std::string longer;
  for (int i = 0; i < 600; ++i) longer += "cat ";
  talk.request().messages.back().content = longer;
  fails(ErrorCode::cache_full);
  // An edit far in front, which would truncate, and a stop meanwhile.
  talk.request() = good;
  talk.request().messages[0].content = "Two dogs.";
  std::stop_source stop;
  stop.request_stop();
  fails(ErrorCode::cancelled, {.stop = stop.get_token()});
  fails(ErrorCode::cancelled, {.progress = [](std::size_t, std::size_t) { return false; }});
  Sampler wrong = sampling::chain().top_p(7.0f).build();
  CHECK_FALSE(talk.answer(wrong));
  CHECK(Snapshot(talk.session()) == before);
  must(talk.read());
  check_in_step(talk);
  talk.request().messages.clear();
  talk.request().add_generation_prompt = false;
  CHECK_FALSE(talk.prompt());
}

TEST_CASE("a contiguous session is kept in step too") {
  ConversationOptions options{.session = {.kv = {.kind = KvKind::contiguous}}};
  Conversation talk = begin(kRoles, {.messages = {{.role = "user", .content = "One"}}}, options);
  Sampler sampler = drawing(4);
  Answer answer = must(talk.answer(sampler, {.max_tokens = 10}));
  hear(answer);
  talk.request().messages.back().content = "Two";
  talk.request().messages.push_back({.role = "user", .content = "Three"});
  must(talk.read());
  const std::vector<Token> tokens = must(talk.prompt());
  Session fresh = must(stories().session(options.session));
  CHECK(same_bits(talk.session().logits(), must(fresh.append(tokens)).values));
}

TEST_CASE("a model without a template goes on from the messages' texts, and the conversation says so") {
  Conversation talk = must(Conversation::create(
      stories(), {.messages = {{.role = "user", .content = "One day"}, {.role = "assistant", .content = " Tim ran."},
                               {.role = "user", .parts = {{.text = "<|endoftext|>He"}}}}}));
  CHECK_FALSE(talk.has_template());
  CHECK(talk.output_format().name == "think");
  const Tokenizer& tokenizer = stories().tokenizer();
  std::vector<Token> expected = must(tokenizer.encode("One day Tim ran.\n<|endoftext|>He", {.bos = Bos::never}));
  expected.insert(expected.begin(), *tokenizer.bos());
  CHECK(must(talk.prompt()) == expected);
}

TEST_CASE("what a conversation cannot be made of is told") {
  const auto stream = Conversation::create(stories(), {}, {.session = {.stream = {.window = 16}}});
  REQUIRE_FALSE(stream);
  CHECK(stream.error().code() == ErrorCode::unsupported);
  const Engine mute = load_stories({.tokenizer = TokenizerUse::none, .threads = 1});
  CHECK_FALSE(Conversation::create(mute));
  OutputFormat broken{.name = "broken", .regions = {{.kind = RegionKind::text, .open = {""}}}};
  CHECK_FALSE(Conversation::create(stories(), {}, {.output_format = broken}));
}

TEST_CASE("tools are told in words where the template prints none, and calls are read") {
  const Json tool = *Json::parse(R"({"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}})");
  Conversation talk = begin(kThinking, {.messages = {{.role = "user", .content = "Hi"}}, .tools = {tool}});
  const std::string told = must(stories().tokenizer().decode(must(talk.prompt())));
  CHECK(told.find("\"f\"") != std::string::npos);
  Sampler sampler = saying("</think><tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", must(talk.prompt()).size());
  auto answer = talk.answer(sampler);
  REQUIRE(answer);
  const Heard heard = hear(*answer);
  CHECK(heard.calls == std::vector<std::string>{"f call00001"});
  CHECK(heard.ended == 1);
  CHECK(talk.request().tools.size() == 1);  // the host's request stays as it is
}

TEST_CASE("tools are told in the user's words where the template drops the system's message, or refuses it") {
  const Json tool = *Json::parse(R"({"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}})");
  for (const char* drops : {"{% for m in messages %}{% if m.role != 'system' %}{{ m.role[0] }}: {{ m.content }}\n{% endif %}{% endfor %}a:",
                            "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}{{ m.role[0] }}: {{ m.content }}\n{% endfor %}a:"}) {
    Conversation talk = begin(drops, {.messages = {{.role = "user", .content = "Hi"}, {.role = "assistant", .content = "b"}, {.role = "user", .content = "c"}}, .tools = {tool}});
    const std::string told = must(stories().tokenizer().decode(must(talk.prompt())));
    CHECK(told.find("u: You may call one or more functions") == 0);
    CHECK(told.ends_with("</tool_call>\n\nHi\na: b\nu: c\na:"));
  }
}

TEST_CASE("an engine's template has the special tokens of its tokenizer, and its metadata says what to call", "[conversation]") {
  const auto file = must(ModelFile::open((source_dir() / "models/tessera-stories.gguf").string()));
  const auto of_file = must(SpecialTexts::from_settings(file.settings()));
  REQUIRE(of_file.bos);
  const ChatTemplate model = must(chat_template_of(stories()));
  CHECK(model.source() == plain_chat_template());  // the stories have none
  CHECK(model.source() == must(Conversation::create(stories())).chat_template().source());
  for (const ChatTemplate& form : {model, must(chat_template_of(stories(), "{{ eos_token }}"))}) {
    CHECK(form.special_texts().bos == of_file.bos);
    CHECK(form.special_texts().eos == of_file.eos);
    CHECK(form.special_texts().pad == of_file.pad);
    CHECK(form.special_texts().unk == of_file.unk);
  }
  CHECK(must(must(chat_template_of(stories(), "{{ eos_token }}")).render(ChatRequest{})).text() == *of_file.eos);
  CHECK(chat_template_of(stories(), "{% if").error().code() == ErrorCode::invalid_argument);
  CHECK(chat_template_of(Engine()).error().code() == ErrorCode::invalid_state);

  const auto of_metadata = SpecialTexts::from_settings(stories().metadata());
  REQUIRE_FALSE(of_metadata);
  CHECK(of_metadata.error().code() == ErrorCode::not_found);
  CHECK(of_metadata.error().text().find("call chat_template_of(engine)") != std::string::npos);
}

}  // namespace test_conversation
