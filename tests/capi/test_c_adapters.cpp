// Adapters in C: what sessions, requests and conversations compute with them is what C++ computes; and what goes wrong.
#include <fstream>

#include "capi/c_rig.hpp"
#include "engine/made_adapter.hpp"

namespace test_c_adapters {

using namespace tessera;
using namespace tessera::test;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Rig {
  AdapterFolder folder;
  std::filesystem::path path = golden_dir() / "llama-gqa.gguf";
  ModelFile file = must(ModelFile::open(path));
  CEngine c = c_engine(path);
  Engine engine = must(Engine::load(path, {.threads = 2}));
  std::filesystem::path first = folder.write("first", file, {.rank = 3, .seed = 1});
  std::filesystem::path second = folder.write("second", file, {.rank = 5, .dtype = DType::f16, .seed = 2});
  CAdapter c_first = c_adapter(c, first), c_second = c_adapter(c, second);
  Adapter cpp_first = must(engine.adapter(first)), cpp_second = must(engine.adapter(second));
  std::vector<Token> tokens = {1, 5, 9, 13, 17, 21, 25, 29};
};
Rig& rig() {
  static Rig one;
  return one;
}

// A list that keeps what it refers to.
struct List {
  std::vector<const tessera_adapter*> adapters;
  std::vector<float> scales;
  std::vector<std::uint64_t> from;

  [[nodiscard]] tessera_adapter_list of() const {
    auto list = options_of<tessera_adapter_list>();
    list.adapters = adapters.data();
    list.scales = scales.empty() ? nullptr : scales.data();
    list.from = from.empty() ? nullptr : from.data();
    list.count = adapters.size();
    return list;
  }
};

void use(const CSession& session, const List& list) {
  const auto given = list.of();
  succeed([&](auto error) { return tessera_session_use_adapters(session.get(), &given, error); });
}

std::vector<float> logits_with(std::vector<AdapterUse> uses) {
  Session session = must(rig().engine.session({.adapters = std::move(uses)}));
  const Logits logits = must(session.append(rig().tokens));
  return {logits.values.begin(), logits.values.end()};
}

std::string info_of(const CSession& session) {
  return string_of(made<CText>([&](auto out, auto error) { return tessera_session_info(session.get(), out, error); }));
}

std::vector<Token> read_all(const CRequest& request) {
  std::vector<Token> tokens;
  for (const tessera_piece* piece = nullptr;;) {
    succeed([&](auto error) { return tessera_request_next(request.get(), TESSERA_WAIT_FOREVER, &piece, error); });
    if (piece == nullptr) return tokens;
    tokens.push_back(tessera_piece_token(piece));
  }
}

}  // namespace

TEST_CASE("an adapter tells its name, bytes, rank and matrices") {
  const auto adapter = rig().c_first.get();
  CHECK(std::string_view(tessera_adapter_name(adapter)) == "first");
  CHECK(std::string_view(tessera_adapter_base_name(adapter)) == rig().cpp_first.base_name());
  CHECK(tessera_adapter_bytes(adapter) == rig().cpp_first.bytes());
  CHECK(tessera_adapter_rank(adapter) == 3);
  const Token* tokens = nullptr;
  std::size_t count = 7;
  succeed([&](auto error) { return tessera_adapter_invocation(adapter, &tokens, &count, error); });
  CHECK(count == 0);
  const auto text = made<CText>([&](auto out, auto error) { return tessera_adapter_info(adapter, out, error); });
  const Json json = must(Json::parse(string_of(text)));
  CHECK(*json.find("name") == Json("first"));
  CHECK(*json.find("rank") == Json(std::int64_t{3}));
  CHECK(*json.find("matrices") == Json(static_cast<std::int64_t>(rig().cpp_first.matrices())));
  CHECK(json.find("content")->string()->size() == 32);
  CHECK(json.find("invocation")->elements()->empty());
}

TEST_CASE("sessions with adapters have the logits of C++, also when they change them and after the adapter is freed") {
  CAdapter own = c_adapter(rig().c, rig().second);
  const CSession session = c_session(rig().c);
  use(session,
      {.adapters = {rig().c_first.get(), own.get()}, .scales = {0.5f, -1.0f}, .from = {TESSERA_FROM_DEFAULT, 4}});
  own.reset();
  append(session, rig().tokens);
  CHECK(logits_of(session) == logits_with({{rig().cpp_first, 0.5f}, {rig().cpp_second, -1.0f, 4}}));
  const Json info = must(Json::parse(info_of(session)));
  const Json::Array& listed = *info.find("adapters")->elements();
  REQUIRE(listed.size() == 2);
  CHECK(*listed[1].find("name") == Json("second"));
  CHECK(*listed[1].find("from") == Json(std::int64_t{4}));
  CHECK(*listed[0].find("scale") == Json(0.5));

  use(session, {.adapters = {rig().c_first.get()}, .scales = {0.5f}, .from = {}});
  CHECK(tessera_session_position(session.get()) == 4);  // the second adapter began here
  append(session, {});
  CHECK(logits_of(session) == logits_with({{rig().cpp_first, 0.5f}}));
  succeed([&](auto error) { return tessera_session_use_adapters(session.get(), nullptr, error); });
  append(session, {});
  CHECK(logits_of(session) == logits_with({}));
  CHECK(must(Json::parse(info_of(session))).find("adapters")->elements()->empty());
}

TEST_CASE("requests with different adapters and none, in one batch, give what each gives alone") {
  const auto scheduler = made<CScheduler>(
      [&](auto out, auto error) { return tessera_scheduler_create(rig().c.get(), nullptr, out, error); });
  const std::vector<List> lists = {
      {},
      {.adapters = {rig().c_first.get()}, .scales = {}, .from = {}},
      {.adapters = {rig().c_second.get()}, .scales = {2.0f}, .from = {}},
      {.adapters = {rig().c_first.get(), rig().c_second.get()}, .scales = {1.0f, 0.25f}, .from = {}}};
  const std::vector<std::vector<AdapterUse>> uses = {
      {}, {{rig().cpp_first}}, {{rig().cpp_second, 2.0f}}, {{rig().cpp_first}, {rig().cpp_second, 0.25f}}};
  std::vector<CRequest> requests;
  for (const List& list : lists) {
    const auto given = list.of();
    auto submit = options_of<tessera_submit_options>(R"({"max_tokens": 6, "end_of_generation": "ignore"})");
    submit.adapters = &given;
    requests.push_back(made<CRequest>([&](auto out, auto error) {
      return tessera_scheduler_submit(scheduler.get(), rig().tokens.data(), rig().tokens.size(), nullptr, &submit, out,
                                      error);
    }));
  }
  std::vector<std::vector<Token>> all;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    INFO(i);
    Session session = must(rig().engine.session({.adapters = uses[i]}));
    must(session.append(rig().tokens));
    Sampler sampler = sampling::chain().greedy().build();
    std::vector<Token> expected;
    for (const auto& piece : session.generate(sampler, {.max_tokens = 6, .end_of_generation = EndOfGeneration::ignore}))
      expected.push_back(must(piece).token);
    all.push_back(read_all(requests[i]));
    CHECK(all.back() == expected);
  }
  CHECK(all[0] != all[2]);
}

TEST_CASE("a request goes on with its session's adapters, unless it has a list of its own") {
  const auto scheduler = made<CScheduler>(
      [&](auto out, auto error) { return tessera_scheduler_create(rig().c.get(), nullptr, out, error); });
  const auto tokens_of_request = [&](const List* with) {
    const CSession session = c_session(rig().c);
    use(session, {.adapters = {rig().c_second.get()}, .scales = {2.0f}, .from = {}});
    append(session, rig().tokens);
    auto submit = options_of<tessera_submit_options>(R"({"max_tokens": 6, "end_of_generation": "ignore"})");
    const auto given = with != nullptr ? with->of() : tessera_adapter_list{};
    if (with != nullptr) submit.adapters = &given;
    return read_all(made<CRequest>([&](auto out, auto error) {
      return tessera_scheduler_submit(scheduler.get(), nullptr, 0, session.get(), &submit, out, error);
    }));
  };
  const List same{.adapters = {rig().c_second.get()}, .scales = {2.0f}, .from = {}}, none;
  const auto inherited = tokens_of_request(nullptr);
  CHECK(inherited == tokens_of_request(&same));
  CHECK(inherited != tokens_of_request(&none));
}

TEST_CASE("an adapter with an invocation waits for it, and a position of the caller's comes first") {
  const std::vector<std::uint32_t> invocation = {13, 17};
  const auto in_layers = [](std::string_view name) { return name.starts_with("blk."); };
  const auto path = rig().folder.write("invoked", rig().file,
                                       {.rank = 2, .seed = 7, .takes = in_layers, .invocation = invocation});
  const CAdapter c = c_adapter(rig().c, path);
  const Adapter cpp = must(rig().engine.adapter(path));
  const Token* tokens = nullptr;
  std::size_t count = 0;
  succeed([&](auto error) { return tessera_adapter_invocation(c.get(), &tokens, &count, error); });
  REQUIRE(count == 2);
  CHECK((tokens[0] == 13 && tokens[1] == 17));
  const CSession session = c_session(rig().c);
  use(session, {.adapters = {c.get()}, .scales = {}, .from = {TESSERA_FROM_DEFAULT}});
  const auto from_of = [&] {
    return *must(Json::parse(info_of(session))).find("adapters")->elements()->at(0).find("from");
  };
  CHECK(from_of() == Json());
  append(session, rig().tokens);
  CHECK(from_of() == Json(std::int64_t{3}));
  CHECK(logits_of(session) == logits_with({{cpp}}));
  CHECK(logits_of(session) == logits_with({{cpp, 1.0f, 3}}));
  use(session, {.adapters = {c.get()}, .scales = {}, .from = {6}});
  CHECK(tessera_session_position(session.get()) == 3);
  append(session, {});
  CHECK(logits_of(session) == logits_with({{cpp, 1.0f, 6}}));
}

TEST_CASE("a conversation changes its adapters and reads its messages again") {
  Conversation talk = must(Conversation::create(rig().engine));
  talk.request().messages = {{.role = "user", .content = "Hello there"}};
  const auto c = made<CConversation>([&](auto out, auto error) {
    const std::string json = talk.request().to_json().dump();
    return tessera_conversation_create(rig().c.get(), json.data(), json.size(), nullptr, 0, out, error);
  });
  std::vector<std::string> texts;
  for (const bool with : {false, true, false}) {
    INFO(with);
    const List list{.adapters = with ? std::vector<const tessera_adapter*>{rig().c_first.get()}
                                     : std::vector<const tessera_adapter*>{},
                    .scales = {},
                    .from = {}};
    const auto given = list.of();
    succeed([&](auto error) { return tessera_conversation_use_adapters(c.get(), &given, error); });
    const std::vector<AdapterUse> uses = with ? std::vector<AdapterUse>{{rig().cpp_first}} : std::vector<AdapterUse>{};
    must(talk.use_adapters(uses));
    Sampler sampler = sampling::chain().greedy().build();
    Answer answer = must(talk.answer(sampler, {.max_tokens = 6}));
    const auto c_answer = made<CAnswer>([&](auto out, auto error) {
      return tessera_conversation_answer(c.get(), nullptr, "{\"max_tokens\": 6}", 17, nullptr, out, error);
    });
    CHECK_THAT(failure(TESSERA_INVALID_STATE,
                       [&](auto error) { return tessera_conversation_use_adapters(c.get(), &given, error); }),
               ContainsSubstring("answer"));
    CHECK(!talk.use_adapters(uses));
    std::string expected, text;
    while (const auto delta = answer.next()) expected += delta->text;
    for (const tessera_piece* piece = nullptr;;) {
      succeed([&](auto error) { return tessera_answer_next(c_answer.get(), &piece, error); });
      if (piece == nullptr) break;
      text += tessera_piece_text(piece, nullptr);
    }
    CHECK(text == expected);
    texts.push_back(text);
    must(talk.session().verify());
    talk.request().messages.resize(1);
    const std::string again = talk.request().to_json().dump();
    succeed([&](auto error) { return tessera_conversation_set(c.get(), again.data(), again.size(), error); });
  }
  CHECK(texts[0] != texts[1]);
  CHECK(texts[0] == texts[2]);
}

TEST_CASE("adapters are merged into the weights when an engine is loaded") {
  const auto quoted = [](const std::filesystem::path& path) { return Json(path.string()).dump(); };
  const std::string one = "{\"merge\": [" + quoted(rig().first) + ", {\"path\": " + quoted(rig().second) + ", \"scale\": -0.5}]}";
  const CEngine merged = c_engine(rig().path, one.c_str());
  const CSession session = c_session(merged);
  append(session, rig().tokens);
  const Engine expected = must(Engine::load(rig().path, {.merge = {{.path = rig().first}, {.path = rig().second, .scale = -0.5f}}, .threads = 2}));
  Session twin = must(expected.session());
  const Logits logits = must(twin.append(rig().tokens));
  CHECK(logits_of(session) == std::vector<float>(logits.values.begin(), logits.values.end()));
  CHECK(logits_of(session) != logits_with({}));
  for (const char* wrong : {R"({"merge": "x"})", R"({"merge": [3]})", R"({"merge": [{"scale": 1}, {"file": "x"}]})", R"({"merge": [{"path": "x", "scale": "y"}]})"}) {
    INFO(wrong);
    const auto options = options_of<tessera_engine_options>(wrong);
    const std::string path = rig().path.string();
    tessera_engine* engine = nullptr;
    CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT, [&](auto error) { return tessera_engine_load(path.data(), path.size(), &options, &engine, error); }),
               ContainsSubstring("merge"));
  }
}

TEST_CASE("an adapter that is missing, damaged or another model's, and a scale that is no number, are errors") {
  const auto load = [](const std::string& path, std::int32_t code, const char* json = "{}") {
    const CEngine engine = c_engine(rig().path, json);
    tessera_adapter* adapter = nullptr;
    std::string text = failure(code, [&](auto error) {
      return tessera_adapter_load(engine.get(), path.data(), path.size(), nullptr, &adapter, error);
    });
    CHECK(adapter == nullptr);
    return text;
  };
  CHECK_THAT(load("/nowhere/x.gguf", TESSERA_NOT_FOUND), ContainsSubstring("/nowhere/x.gguf"));
  CHECK(!load((source_dir() / "README.md").string(), TESSERA_CORRUPT_FILE).empty());
  const ModelFile other = must(ModelFile::open(golden_dir() / "qwen2moe.gguf"));
  CHECK_THAT(load(rig().folder.write("other", other, {.rank = 2}).string(), TESSERA_UNSUPPORTED),
             ContainsSubstring("qwen2"));
  CHECK_THAT(load(rig().first.string(), TESSERA_OVER_BUDGET, R"({"adapter_budget": 1000})"),
             ContainsSubstring("budget"));
  const CStop stop = made<CStop>([](auto out, auto error) { return tessera_stop_create(out, error); });
  tessera_stop_request(stop.get());
  auto options = options_of<tessera_adapter_options>();
  options.stop = stop.get();
  tessera_adapter* adapter = nullptr;
  const std::string third = rig().folder.write("third", rig().file, {.rank = 2, .seed = 9}).string();
  static_cast<void>(failure(TESSERA_CANCELLED, [&](auto error) {
    return tessera_adapter_load(rig().c.get(), third.data(), third.size(), &options, &adapter, error);
  }));

  const CSession session = c_session(rig().c);
  for (const float scale : {NAN, INFINITY}) {
    const List list{.adapters = {rig().c_first.get(), rig().c_first.get()}, .scales = {1.0f, scale}, .from = {}};
    const auto given = list.of();
    CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT,
                       [&](auto error) { return tessera_session_use_adapters(session.get(), &given, error); }),
               ContainsSubstring("adapters.scales[1]"));
  }
  const CEngine second = c_engine(rig().path);
  const CSession foreign = c_session(second);
  const List list{.adapters = {rig().c_first.get()}, .scales = {}, .from = {}};
  const auto given = list.of();
  CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT,
                     [&](auto error) { return tessera_session_use_adapters(foreign.get(), &given, error); }),
             ContainsSubstring("another engine"));
}

TEST_CASE("an engine that was loaded from a source gets the source again for its adapters") {
  std::ifstream in(rig().path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  auto source = options_of<tessera_source>();
  source.bytes = bytes.size();
  source.read = [](void* user, std::uint64_t offset, void* to, std::size_t n) -> std::int32_t {
    std::memcpy(to, static_cast<const char*>(user) + offset, n);
    return 0;
  };
  int dropped = 0;
  source.user = const_cast<char*>(bytes.data());
  const auto engine =
      made<CEngine>([&](auto out, auto error) { return tessera_engine_load_source(&source, nullptr, out, error); });
  struct Reading {
    const char* bytes;
    int* dropped;
  } reading{bytes.data(), &dropped};
  source.user = &reading;
  source.read = [](void* user, std::uint64_t offset, void* to, std::size_t n) -> std::int32_t {
    std::memcpy(to, static_cast<Reading*>(user)->bytes + offset, n);
    return 0;
  };
  source.drop = [](void* user) { ++*static_cast<Reading*>(user)->dropped; };
  auto options = options_of<tessera_adapter_options>();
  options.base = &source;
  const std::string path = rig().first.string();
  const auto adapter = made<CAdapter>([&](auto out, auto error) {
    return tessera_adapter_load(engine.get(), path.data(), path.size(), &options, out, error);
  });
  CHECK(dropped == 1);
  CHECK(tessera_adapter_rank(adapter.get()) == 3);
  source.read = nullptr;
  tessera_adapter* none = nullptr;
  static_cast<void>(failure(TESSERA_INVALID_ARGUMENT, [&](auto error) {
    return tessera_adapter_load(engine.get(), path.data(), path.size(), &options, &none, error);
  }));
  CHECK(dropped == 2);
}

// TESSERA_TEST_FOLDER: writes stories-adapter.gguf of tests/data there.
TEST_CASE("the adapter of tests/data", "[.write]") {
  const char* folder = std::getenv("TESSERA_TEST_FOLDER");
  REQUIRE(folder != nullptr);
  const ModelFile file = must(ModelFile::open(story_model()));
  write_adapter(
      std::filesystem::path(folder) / "stories-adapter.gguf", file,
      {.rank = 2, .dtype = DType::f16, .alpha = 4.0f, .seed = 1, .size = 0.3f, .takes = [](std::string_view name) {
         return name.find("attn_q") != name.npos || name.find("attn_v") != name.npos;
       }});
}

}  // namespace test_c_adapters
