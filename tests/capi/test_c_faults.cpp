// Every function, while each of its allocations fails once: an error of code out_of_memory, nothing leaked, and the
// same call then succeeds. TESSERA_TEST_ALLOCATIONS: how many allocations of each function fail, one in each try;
// "all": every one.
#include "counted_new.hpp"

#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "capi/c_rig.hpp"
#include "engine/made_adapter.hpp"
#include "sanitized.hpp"

namespace test_c_faults {

using namespace tessera;
using namespace tessera::test;

namespace {

std::int64_t failures_wanted(std::int64_t of) {
  const char* given = std::getenv("TESSERA_TEST_ALLOCATIONS");
  if (given == nullptr) return tests::kSanitized ? 6 : 40;
  return std::string_view(given) == "all" ? of : std::strtoll(given, nullptr, 10);
}

// Whether one allocation fails, or every second time all from one on. The latter is not for calls that wait until there
// is memory again.
enum class Shortages { both, one_allocation };

// Calls `call` again and again, with another allocation that fails in each try; `undo` after each try that succeeded.
void fail_allocations(const char* function, const std::function<std::int32_t(tessera_error**)>& call,
                      const std::function<void()>& undo, Shortages shortages = Shortages::both) {
  INFO(function);
  std::int64_t made = 0;
  for (int warm = 0; warm < 2; ++warm) {  // caches that stay are filled
    counted::Scope scope;
    const std::int32_t code = call(nullptr);
    scope.stop();
    made = counted::count;
    REQUIRE(code == TESSERA_OK);
    undo();
  }
  const std::int64_t stride = std::max<std::int64_t>(made / std::max<std::int64_t>(failures_wanted(made), 1), 1);
  std::int64_t survived = 0;
  for (std::int64_t k = 0; k < made; k += stride) {
    CAPTURE(k);
    tessera_error* error = nullptr;
    counted::Scope scope(k, k % 2 == 0 || shortages == Shortages::one_allocation ? counted::Failure::once
                                                                                 : counted::Failure::from_then_on);
    const std::int32_t code = call(&error);
    scope.stop();
    if (code == TESSERA_OK) {
      ++survived;
      undo();
    } else {
      INFO(tessera_error_text(error));
      CHECK(code == TESSERA_OUT_OF_MEMORY);
      CHECK(tessera_error_code(error) == code);
      CHECK(*tessera_error_text(error) != 0);
    }
    tessera_error_free(error);
    if (counted::live != 0) FAIL(counted::live << " bytes are leaked");
  }
  INFO(made << " allocations, " << survived << " can be done without");
  // A template is looked at without memory for some of its questions; a scheduler's step is computed again after one failure.
  CHECK(survived <= 8 + made / (shortages == Shortages::both ? 8 : 4));
  CHECK(call(nullptr) == TESSERA_OK);
  undo();
}

struct Rig {
  std::string path = (golden_dir() / "llama-gqa.gguf").string();
  CEngine engine = c_engine(path, "{\"threads\": 1}");
  std::vector<Token> tokens = {1, 2, 3, 4, 5, 6, 7, 8};
};
Rig& rig() {
  static Rig one;
  return one;
}

const CEngine& ranker() {
  static const CEngine one = c_engine(golden_dir() / "encoders/bert-rank", "{\"threads\": 1}");
  return one;
}

// A function that makes a handle, which is freed after each success.
template <class Owner, class Call>
void fail_making(const char* function, Call call) {
  typename Owner::pointer handle = nullptr;
  fail_allocations(
      function,
      [&](tessera_error** error) {
        const std::int32_t code = call(&handle, error);
        return code != TESSERA_OK && handle != nullptr ? -1 : code;  // no handle after an error
      },
      [&] { Owner(std::exchange(handle, nullptr)); });
}

}  // namespace

TEST_CASE("functions of an engine") {
  const auto load = options_of<tessera_engine_options>("{\"threads\": 1}");
  const auto e = [] { return rig().engine.get(); };
  fail_making<CEngine>("load", [&](auto out, auto error) {
    return tessera_engine_load(rig().path.data(), rig().path.size(), &load, out, error);
  });
  fail_making<CText>("plan", [&](auto out, auto error) {
    return tessera_plan(rig().path.data(), rig().path.size(), &load, out, error);
  });
  fail_making<CText>("engine_plan", [&](auto out, auto error) { return tessera_engine_plan(e(), out, error); });
  fail_making<CText>("explain", [&](auto out, auto error) { return tessera_engine_explain(e(), out, error); });
  fail_making<CText>("metadata", [&](auto out, auto error) { return tessera_engine_metadata(e(), out, error); });
  fail_making<CText>("figures", [&](auto out, auto error) { return tessera_engine_figures(e(), out, error); });
  fail_making<CTokens>("encode",
                       [&](auto out, auto error) { return tessera_encode(e(), "hello", 5, 0, 0, out, error); });
  fail_making<CText>(
      "decode", [&](auto out, auto error) { return tessera_decode(e(), rig().tokens.data(), 8, 1, 1, out, error); });
  fail_making<CDetokenizer>("detokenizer",
                            [&](auto out, auto error) { return tessera_detokenizer_create(e(), 0, 0, out, error); });
  fail_making<CStop>("stop", [&](auto out, auto error) { return tessera_stop_create(out, error); });
  fail_making<CGrammar>("grammar", [&](auto out, auto error) {
    return tessera_grammar_create(e(), TESSERA_GRAMMAR_JSON, nullptr, 0, nullptr, 0, out, error);
  });
  const auto sampler = options_of<tessera_sampler_options>(
      R"({"temperature": 0.5, "penalties": {"presence": 1}, "logit_bias": {"3": 1}, "dry": {}})");
  fail_making<CSampler>("sampler",
                        [&](auto out, auto error) { return tessera_sampler_create(e(), &sampler, out, error); });
  const auto scheduler = options_of<tessera_scheduler_options>(R"({"policy": "fair_by_tenant", "weights": {"a": 2}})");
  fail_making<CScheduler>("scheduler",
                          [&](auto out, auto error) { return tessera_scheduler_create(e(), &scheduler, out, error); });
}

TEST_CASE("functions of a session") {
  const CSession session = c_session(rig().engine);
  append(session, rig().tokens);
  const auto s = session.get();
  fail_making<CSession>("session", [&](auto out, auto error) {
    return tessera_session_create(rig().engine.get(), "{\"context\": 64}", 15, out, error);
  });
  fail_allocations(
      "append", [&](auto error) { return tessera_session_append(s, rig().tokens.data(), 2, nullptr, error); },
      [&] { succeed([&](auto error) { return tessera_session_truncate(s, 8, error); }); });
  std::vector<float> scores(2);
  fail_allocations(
      "score",
      [&](auto error) {
        succeed([&](auto e) { return tessera_session_append(s, nullptr, 0, nullptr, e); });
        return tessera_session_score(s, rig().tokens.data(), 2, scores.data(), nullptr, error);
      },
      [&] { succeed([&](auto error) { return tessera_session_truncate(s, 8, error); }); });
  fail_making<CSession>("fork", [&](auto out, auto error) { return tessera_session_fork(s, out, error); });
  fail_making<CSession>("copy", [&](auto out, auto error) { return tessera_session_copy(s, nullptr, 0, out, error); });
  fail_making<CText>("info", [&](auto out, auto error) { return tessera_session_info(s, out, error); });
  fail_making<CText>("verify", [&](auto out, auto error) { return tessera_session_verify(s, nullptr, out, error); });
  std::vector<std::byte> bytes(1 << 20);
  struct Sink {
    std::byte* at;
  } sink{bytes.data()};
  fail_allocations(
      "save_to",
      [&](auto error) {
        sink.at = bytes.data();
        return tessera_session_save_to(
            s,
            [](void* user, const void* data, std::size_t n) -> std::int32_t {
              auto& to = *static_cast<Sink*>(user);
              std::memcpy(to.at, data, n);
              to.at += n;
              return 0;
            },
            &sink, error);
      },
      [] {});
  auto source = options_of<tessera_source>();
  source.bytes = static_cast<std::uint64_t>(sink.at - bytes.data());
  source.user = bytes.data();
  source.read = [](void* user, std::uint64_t offset, void* to, std::size_t n) -> std::int32_t {
    std::memcpy(to, static_cast<std::byte*>(user) + offset, n);
    return 0;
  };
  fail_making<CSession>("restore_from", [&](auto out, auto error) {
    return tessera_session_restore_from(rig().engine.get(), &source, nullptr, 0, out, error);
  });
  std::vector<float> embedding(tessera_engine_embedding_size(rig().engine.get()));
  fail_allocations(
      "embed",
      [&](auto error) {
        return tessera_embed(rig().engine.get(), rig().tokens.data(), 8, nullptr, 0, embedding.data(), embedding.size(),
                             error);
      },
      [] {});
  const char* const texts[] = {"a cat", "a dog sleeps"};
  const std::size_t sizes[] = {5, 12};
  fail_making<COutputs>("embed_texts", [&](auto out, auto error) {
    return tessera_embed_texts(rig().engine.get(), texts, sizes, 2, nullptr, 0, out, error);
  });
  std::vector<float> of_documents(2);
  fail_allocations(
      "rerank",
      [&](auto error) {
        return tessera_rerank(ranker().get(), "cat", 3, texts, sizes, 2, nullptr, 0, of_documents.data(), error);
      },
      [] {});
}

TEST_CASE("functions of adapters") {
  const AdapterFolder folder;
  const ModelFile base = must(ModelFile::open(rig().path));
  const std::string path = folder.write("one", base, {.rank = 2}).string();
  const auto e = rig().engine.get();
  fail_making<CAdapter>("adapter_load", [&](auto out, auto error) {
    return tessera_adapter_load(e, path.data(), path.size(), nullptr, out, error);
  });
  const CAdapter adapter = c_adapter(rig().engine, path);
  fail_making<CText>("adapter_info",
                     [&](auto out, auto error) { return tessera_adapter_info(adapter.get(), out, error); });
  const tessera_adapter* const adapters[] = {adapter.get()};
  auto list = options_of<tessera_adapter_list>();
  list.adapters = adapters;
  list.count = 1;
  const CSession session = c_session(rig().engine);
  append(session, rig().tokens);
  const auto s = session.get();
  const auto none = [&](auto error) { return tessera_session_use_adapters(s, nullptr, error); };
  fail_allocations(
      "session_use_adapters", [&](auto error) { return tessera_session_use_adapters(s, &list, error); },
      [&] { succeed(none); });
  succeed([&](auto error) { return tessera_session_use_adapters(s, &list, error); });
  fail_allocations(
      "append with adapters", [&](auto error) { return tessera_session_append(s, rig().tokens.data(), 2, nullptr, error); },
      [&] { succeed([&](auto error) { return tessera_session_truncate(s, 8, error); }); });
  fail_making<CText>("info", [&](auto out, auto error) { return tessera_session_info(s, out, error); });
  fail_making<CSession>("fork", [&](auto out, auto error) { return tessera_session_fork(s, out, error); });
  const auto talk = made<CConversation>([&](auto out, auto error) {
    return tessera_conversation_create(e, nullptr, 0, nullptr, 0, out, error);
  });
  fail_allocations(
      "conversation_use_adapters",
      [&](auto error) { return tessera_conversation_use_adapters(talk.get(), &list, error); },
      [&] { succeed([&](auto error) { return tessera_conversation_use_adapters(talk.get(), nullptr, error); }); });
  const auto scheduler = made<CScheduler>(
      [&](auto out, auto error) { return tessera_scheduler_create(e, nullptr, out, error); });
  auto submit = options_of<tessera_submit_options>("{\"max_tokens\": 2}");
  submit.adapters = &list;
  fail_making<CRequest>("submit with adapters", [&](auto out, auto error) {
    return tessera_scheduler_submit(scheduler.get(), rig().tokens.data(), 8, nullptr, &submit, out, error);
  });
}

TEST_CASE("functions that write") {
  const CSession session = c_session(rig().engine);
  append(session, rig().tokens);
  const auto options = options_of<tessera_generate_options>(
      R"({"max_tokens": 3, "stop": ["zz"], "end_of_generation": "ignore", "logprobs": 1})");
  const CSampler sampler = c_sampler(rig().engine, "{\"temperature\": 1}");
  fail_making<CSampler>("clone",
                        [&](auto out, auto error) { return tessera_sampler_clone(sampler.get(), out, error); });
  fail_making<CGeneration>("generate", [&](auto out, auto error) {
    const std::int32_t code = tessera_session_generate(session.get(), sampler.get(), &options, out, error);
    if (code != TESSERA_OK) return code;
    for (const tessera_piece* piece = nullptr;;) {  // an error of its first piece is one of next()
      const std::int32_t next = tessera_generation_next(*out, &piece, error);
      if (next == TESSERA_OK && piece != nullptr) continue;
      if (next != TESSERA_OK) CGeneration(std::exchange(*out, nullptr));
      return next;
    }
  });
  const CScheduler scheduler = made<CScheduler>(
      [&](auto out, auto error) { return tessera_scheduler_create(rig().engine.get(), nullptr, out, error); });
  const auto submit =
      options_of<tessera_submit_options>(R"({"max_tokens": 2, "sampler": {"temperature": 1}, "tenant": "a"})");
  CRequest request;
  fail_allocations(
      "submit",
      [&](auto error) {
        tessera_request* handle = nullptr;
        const std::int32_t code =
            tessera_scheduler_submit(scheduler.get(), rig().tokens.data(), 8, nullptr, &submit, &handle, error);
        counted::Pause pause;
        CRequest owned(handle);
        if (handle != nullptr) {  // the scheduler forgets it before memory is counted
          owned.reset();
          std::int32_t worked = 1;
          while (worked != 0) succeed([&](auto e) { return tessera_scheduler_step(scheduler.get(), &worked, e); });
        }
        return code;
      },
      [] {});
  constexpr std::string_view kChat = R"({"messages": [{"role": "user", "content": "a"}]})";
  fail_making<CTokens>("render", [&](auto out, auto error) {
    return tessera_render_chat(rig().engine.get(), kChat.data(), kChat.size(), nullptr, 0, out, nullptr, error);
  });
  fail_making<CConversation>("conversation", [&](auto out, auto error) {
    return tessera_conversation_create(rig().engine.get(), kChat.data(), kChat.size(), nullptr, 0, out, error);
  });
  const auto talk = made<CConversation>([&](auto out, auto error) {
    return tessera_conversation_create(rig().engine.get(), kChat.data(), kChat.size(), nullptr, 0, out, error);
  });
  fail_making<CText>("get", [&](auto out, auto error) { return tessera_conversation_get(talk.get(), out, error); });
  fail_making<CTokens>("prompt",
                       [&](auto out, auto error) { return tessera_conversation_prompt(talk.get(), out, error); });
  fail_allocations(
      "set", [&](auto error) { return tessera_conversation_set(talk.get(), kChat.data(), kChat.size(), error); },
      [&] { succeed([&](auto error) { return tessera_conversation_set(talk.get(), nullptr, 0, error); }); });
}

TEST_CASE("functions that load from callbacks, compute several sessions, answer, and search") {
  std::ifstream file(rig().path, std::ios::binary);
  std::string model((std::istreambuf_iterator<char>(file)), {});
  REQUIRE_FALSE(model.empty());
  auto source = options_of<tessera_source>();
  source.bytes = model.size();
  source.user = model.data();
  source.read = [](void* user, std::uint64_t offset, void* to, std::size_t n) -> std::int32_t {
    std::memcpy(to, static_cast<char*>(user) + offset, n);
    return 0;
  };
  const auto load = options_of<tessera_engine_options>("{\"threads\": 1}");
  fail_making<CEngine>("load_source",
                       [&](auto out, auto error) { return tessera_engine_load_source(&source, &load, out, error); });

  const CSession one = c_session(rig().engine), two = c_session(rig().engine);
  append(one, rig().tokens);
  append(two, rig().tokens);
  tessera_session* const sessions[] = {one.get(), two.get()};
  const std::size_t counts[] = {1, 2};
  fail_making<COutputs>("forward", [&](auto out, auto error) {
    const std::int32_t code = tessera_forward(rig().engine.get(), sessions, counts, 2, rig().tokens.data(),
                                              TESSERA_WANT_LOGITS, nullptr, out, error);
    const counted::Pause pause;
    // One session may have failed while the other one went on: both are at their 8 tokens again before the next try.
    for (tessera_session* session : sessions) succeed([&](auto e) { return tessera_session_truncate(session, 8, e); });
    return code;
  });

  constexpr std::string_view kChat = R"({"messages": [{"role": "user", "content": "a"}]})";
  constexpr std::string_view kAnswer = R"({"max_tokens": 3, "sampler": {"temperature": 1}, "stop": ["zz"]})";
  const auto new_scheduler = [] {
    return made<CScheduler>(
        [](auto out, auto error) { return tessera_scheduler_create(rig().engine.get(), nullptr, out, error); });
  };
  for (const bool beside_requests : {false, true}) {
    fail_allocations(
        beside_requests ? "answer beside requests" : "answer",
        [&](auto error) {
          counted::Pause pause;  // both keep memory for the next answer, and are new in each try
          const CScheduler scheduler = beside_requests ? new_scheduler() : nullptr;
          const auto talk = made<CConversation>([&](auto out, auto e) {
            return tessera_conversation_create(rig().engine.get(), kChat.data(), kChat.size(), nullptr, 0, out, e);
          });
          tessera_answer* handle = nullptr;
          const auto run = [&] {
            std::int32_t code = tessera_conversation_answer(talk.get(), scheduler.get(), kAnswer.data(), kAnswer.size(),
                                                            nullptr, &handle, error);
            for (const tessera_piece* piece = nullptr; code == TESSERA_OK;) {
              code = tessera_answer_next(handle, &piece, error);
              if (piece == nullptr) break;
            }
            return code;
          };
          const std::int32_t code = pause.counting(run);
          CAnswer(std::exchange(handle, nullptr));
          return code;
        },
        [] {}, beside_requests ? Shortages::one_allocation : Shortages::both);
  }

  const auto search = options_of<tessera_submit_options>(R"({"beams": {"beams": 2, "max_tokens": 2}})");
  fail_making<CText>("take_beams", [&](auto out, auto error) {
    counted::Pause pause;
    const CScheduler scheduler = new_scheduler();
    tessera_request* handle = nullptr;
    const auto run = [&] {
      std::int32_t code =
          tessera_scheduler_submit(scheduler.get(), rig().tokens.data(), 8, nullptr, &search, &handle, error);
      for (std::int32_t worked = 1; worked != 0 && code == TESSERA_OK;)
        code = tessera_scheduler_step(scheduler.get(), &worked, error);
      const tessera_piece* piece = nullptr;
      if (code == TESSERA_OK)
        code = tessera_request_next(handle, 0, &piece, error);  // the error of a request that failed
      if (code == TESSERA_OK) code = tessera_request_take_beams(handle, out, error);
      return code;
    };
    const std::int32_t code = pause.counting(run);
    const CRequest request(handle);
    return code;
  });
}

}  // namespace test_c_faults
