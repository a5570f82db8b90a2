// Callbacks of hosts: when they are called, that drop() comes exactly once, that what they throw does not cross the
// ABI; stops and cancels from other threads; and handles that are freed in any order.
#include <atomic>
#include <stdexcept>
#include <thread>

#include "capi/c_rig.hpp"

namespace test_c_callbacks {

using namespace tessera;
using namespace tessera::test;

namespace {

const std::string& model() {
  static const std::string path = (golden_dir() / "llama-gqa.gguf").string();
  return path;
}

struct Rig {
  CEngine engine = c_engine(model());
  std::vector<Token> tokens = {1, 2, 3, 4, 5, 6, 7, 8};
};
Rig& rig() {
  static Rig one;
  return one;
}

void count_drop(void* user) { ++*static_cast<int*>(user); }

template <class Options>
Options dropping(int& drops, const char* json = nullptr) {
  auto options = options_of<Options>(json);
  options.user = &drops;
  options.drop = count_drop;
  return options;
}

CScheduler c_scheduler(const tessera_scheduler_options* options = nullptr) {
  return made<CScheduler>(
      [&](auto out, auto error) { return tessera_scheduler_create(rig().engine.get(), options, out, error); });
}
CRequest submit(const CScheduler& scheduler, const tessera_submit_options& options) {
  return made<CRequest>([&](auto out, auto error) {
    return tessera_scheduler_submit(scheduler.get(), rig().tokens.data(), rig().tokens.size(), nullptr, &options, out,
                                    error);
  });
}

}  // namespace

TEST_CASE("drop() is called once, at the end of the handle's life or with the error") {
  int drops = 0;
  tessera_engine* engine = nullptr;
  auto options = dropping<tessera_engine_options>(drops, "{\"threads\": 1}");
  options.log = [](void*, std::int32_t, const char*, std::size_t) {};
  {
    const auto owned = made<CEngine>([&](auto out, auto error) {
      return tessera_engine_load(model().data(), model().size(), &options, out, error);
    });
    CHECK(drops == 0);
  }
  CHECK(drops == 1);
  failure(TESSERA_NOT_FOUND, [&](auto error) { return tessera_engine_load("none.gguf", 9, &options, &engine, error); });
  CHECK(drops == 2);
  options.json = "{\"thread\": 1}", options.json_size = 13;
  failure(TESSERA_INVALID_ARGUMENT,
          [&](auto error) { return tessera_engine_load(model().data(), model().size(), &options, &engine, error); });
  CHECK(drops == 3);
  failure(TESSERA_INVALID_ARGUMENT,
          [&](auto error) { return tessera_engine_load(model().data(), model().size(), &options, nullptr, error); });
  CHECK(drops == 4);

  drops = 0;
  auto sampler = dropping<tessera_sampler_options>(drops);
  sampler.stage = [](void*, const std::int32_t*, float*, std::size_t) -> std::int32_t { return 0; };
  tessera_sampler* sampler_out = nullptr;
  failure(TESSERA_INVALID_ARGUMENT,
          [&](auto error) { return tessera_sampler_create(nullptr, &sampler, &sampler_out, error); });
  CHECK(drops == 1);
  {
    const auto owned = made<CSampler>(
        [&](auto out, auto error) { return tessera_sampler_create(rig().engine.get(), &sampler, out, error); });
    CHECK(drops == 1);
  }
  CHECK(drops == 2);

  drops = 0;
  auto scheduler = dropping<tessera_scheduler_options>(drops);
  scheduler.clock = [](void*) { return 1.0; };
  { const CScheduler owned = c_scheduler(&scheduler); }
  CHECK(drops == 1);

  drops = 0;
  const CScheduler many = c_scheduler();
  auto submitted = dropping<tessera_submit_options>(drops, "{\"max_tokens\": 0, \"samples\": 0}");
  submitted.on_ready = [](void*) {};
  tessera_request* request = nullptr;
  failure(TESSERA_INVALID_ARGUMENT, [&](auto error) {
    return tessera_scheduler_submit(many.get(), rig().tokens.data(), rig().tokens.size(), nullptr, &submitted, &request,
                                    error);
  });
  CHECK(drops == 1);
  auto source = dropping<tessera_source>(drops);
  tessera_session* session = nullptr;
  failure(TESSERA_INVALID_ARGUMENT, [&](auto error) {
    return tessera_session_restore_from(rig().engine.get(), &source, nullptr, 0, &session, error);
  });
  CHECK(drops == 2);
  source.read = [](void*, std::uint64_t, void*, std::size_t) -> std::int32_t { return 1; };
  source.bytes = 1000;
  failure(TESSERA_IO, [&](auto error) {
    return tessera_session_restore_from(rig().engine.get(), &source, nullptr, 0, &session, error);
  });
  CHECK(drops == 3);
  source.drop = [](void* user) {
    count_drop(user);
    throw 1;
  };
  failure(TESSERA_IO, [&](auto error) {
    return tessera_session_restore_from(rig().engine.get(), &source, nullptr, 0, &session, error);
  });
  CHECK(drops == 4);
}

TEST_CASE("a callback that throws is callback_failed, and the handle is as it was") {
  auto load = options_of<tessera_engine_options>();
  load.progress = [](void*, std::uint64_t, std::uint64_t) -> std::int32_t { throw std::runtime_error("no"); };
  tessera_engine* engine = nullptr;
  failure(TESSERA_CALLBACK_FAILED,
          [&](auto error) { return tessera_engine_load(model().data(), model().size(), &load, &engine, error); });
  auto source = options_of<tessera_source>();
  source.bytes = 1 << 20;
  source.read = [](void*, std::uint64_t, void*, std::size_t) -> std::int32_t { throw std::runtime_error("no"); };
  failure(TESSERA_CALLBACK_FAILED,
          [&](auto error) { return tessera_engine_load_source(&source, nullptr, &engine, error); });

  const CSession session = c_session(rig().engine);
  auto append_options = options_of<tessera_append_options>();
  append_options.progress = [](void*, std::size_t, std::size_t) -> std::int32_t { throw 1; };
  failure(TESSERA_CALLBACK_FAILED, [&](auto error) {
    return tessera_session_append(session.get(), rig().tokens.data(), rig().tokens.size(), &append_options, error);
  });
  CHECK(tessera_session_position(session.get()) == 0);
  append_options.progress = [](void*, std::size_t, std::size_t) -> std::int32_t { return 1; };
  failure(TESSERA_CANCELLED, [&](auto error) {
    return tessera_session_append(session.get(), rig().tokens.data(), rig().tokens.size(), &append_options, error);
  });
  append(session, rig().tokens);
  failure(TESSERA_CALLBACK_FAILED, [&](auto error) {
    return tessera_session_save_to(
        session.get(), [](void*, const void*, std::size_t) -> std::int32_t { throw 1; }, nullptr, error);
  });
  failure(TESSERA_IO, [&](auto error) {
    return tessera_session_save_to(
        session.get(), [](void*, const void*, std::size_t) -> std::int32_t { return 5; }, nullptr, error);
  });

  for (const bool throws : {false, true}) {
    auto options = options_of<tessera_sampler_options>();
    options.stage = throws ? [](void*, const std::int32_t*, float*, std::size_t) -> std::int32_t { throw 1; }
                           : [](void*, const std::int32_t*, float*, std::size_t) -> std::int32_t { return 1; };
    const auto sampler = made<CSampler>(
        [&](auto out, auto error) { return tessera_sampler_create(rig().engine.get(), &options, out, error); });
    const auto generation = made<CGeneration>([&](auto out, auto error) {
      return tessera_session_generate(session.get(), sampler.get(), nullptr, out, error);
    });
    const tessera_piece* piece = nullptr;
    failure(TESSERA_CALLBACK_FAILED,
            [&](auto error) { return tessera_generation_next(generation.get(), &piece, error); });
    CHECK(piece == nullptr);
  }
}

TEST_CASE("an executor that leaves out tasks, runs some twice, or throws gives the same bits") {
  const CSession expected = c_session(rig().engine);
  append(expected, rig().tokens);
  using Run = void (*)(void*, std::size_t, void (*)(void*, std::size_t), void*);
  const Run runs[] = {[](void*, std::size_t, void (*)(void*, std::size_t), void*) {},
                      [](void*, std::size_t n, void (*task)(void*, std::size_t), void* context) {
                        for (int twice = 0; twice < 2; ++twice) {
                          for (std::size_t i = 0; i <= n; ++i) task(context, i);
                        }
                      },
                      [](void*, std::size_t, void (*task)(void*, std::size_t), void* context) {
                        task(context, 0);
                        throw 1;
                      },
                      [](void*, std::size_t n, void (*task)(void*, std::size_t), void* context) {
                        std::thread other([&] {
                          for (std::size_t i = 0; i < n; i += 2) task(context, i);
                        });
                        for (std::size_t i = 1; i < n; i += 2) task(context, i);
                        other.join();
                      }};
  for (const Run run : runs) {
    auto options = options_of<tessera_engine_options>();
    options.parallel_for = run;
    options.concurrency = 2;
    const auto engine = made<CEngine>([&](auto out, auto error) {
      return tessera_engine_load(model().data(), model().size(), &options, out, error);
    });
    const CSession session = c_session(engine);
    append(session, rig().tokens);
    CHECK(logits_of(session) == logits_of(expected));
  }
  auto options = options_of<tessera_engine_options>();
  options.parallel_for = runs[0];
  tessera_engine* engine = nullptr;
  CHECK_THAT(failure(TESSERA_INVALID_ARGUMENT,
                     [&](auto error) {
                       return tessera_engine_load(model().data(), model().size(), &options, &engine, error);
                     }),
             Catch::Matchers::ContainsSubstring("concurrency"));
}

TEST_CASE("a stop and a cancel from another thread end a generation and a request") {
  const auto stop = made<CStop>([&](auto out, auto error) { return tessera_stop_create(out, error); });
  const CSession session = c_session(rig().engine, "{\"window\": 20}");  // a sequence without end
  append(session, rig().tokens);
  const CSampler sampler = c_sampler(rig().engine, nullptr);
  auto options = options_of<tessera_generate_options>("{\"end_of_generation\": \"ignore\"}");
  options.stop = stop.get();
  const auto generation = made<CGeneration>([&](auto out, auto error) {
    return tessera_session_generate(session.get(), sampler.get(), &options, out, error);
  });
  std::atomic<int> pieces = 0;
  std::thread stopper([&] {
    while (pieces < 10) std::this_thread::yield();
    tessera_stop_request(stop.get());
  });
  const tessera_piece* piece = nullptr;
  tessera_error* error = nullptr;
  while (tessera_generation_next(generation.get(), &piece, &error) == TESSERA_OK && piece != nullptr) ++pieces;
  stopper.join();
  CHECK(tessera_error_code(CError(error).get()) == TESSERA_CANCELLED);
  CHECK(tessera_generation_finish_reason(generation.get()) == TESSERA_FINISH_CANCELLED);

  const CScheduler scheduler = c_scheduler();
  succeed([&](auto e) { return tessera_scheduler_start(scheduler.get(), e); });
  for (const bool by_id : {false, true}) {
    const auto endless =
        options_of<tessera_submit_options>("{\"end_of_generation\": \"ignore\", \"session\": {\"window\": 20}}");
    const CRequest request = submit(scheduler, endless);
    pieces = 0;
    std::thread canceller([&] {
      while (pieces < 5) std::this_thread::yield();
      if (by_id)
        succeed(
            [&](auto e) { return tessera_scheduler_cancel(scheduler.get(), tessera_request_id(request.get()), e); });
      else
        tessera_request_cancel(request.get());
    });
    error = nullptr;
    while (tessera_request_next(request.get(), TESSERA_WAIT_FOREVER, &piece, &error) == TESSERA_OK && piece != nullptr)
      ++pieces;
    canceller.join();
    CHECK(tessera_error_code(CError(error).get()) == TESSERA_CANCELLED);
    CHECK(tessera_request_state(request.get()) == TESSERA_REQUEST_ENDED);
  }
}

TEST_CASE("on_ready wakes a reader that never waits, and on_event tells a request's life in order") {
  struct Seen {
    std::atomic<int> readies = 0;
    std::vector<std::int32_t> events;
  } seen;
  auto options = options_of<tessera_scheduler_options>();
  options.user = &seen;
  options.on_event = [](void* user, std::int32_t event, std::uint64_t, double) {
    static_cast<Seen*>(user)->events.push_back(event);
  };
  const CScheduler scheduler = c_scheduler(&options);
  auto with = options_of<tessera_submit_options>("{\"max_tokens\": 6, \"end_of_generation\": \"ignore\"}");
  with.user = &seen;
  with.on_ready = [](void* user) { ++static_cast<Seen*>(user)->readies; };
  const CRequest request = submit(scheduler, with);
  int pieces = 0;
  for (std::int32_t worked = 1; worked != 0;) {  // the host's own loop: step, then read what is ready
    succeed([&](auto error) { return tessera_scheduler_step(scheduler.get(), &worked, error); });
    if (seen.readies.exchange(0) == 0) continue;
    for (const tessera_piece* piece = nullptr;;) {
      succeed([&](auto error) { return tessera_request_try_next(request.get(), &piece, error); });
      if (piece == nullptr) break;
      ++pieces;
    }
  }
  CHECK(pieces == 6);
  CHECK(seen.events == std::vector<std::int32_t>{TESSERA_EVENT_QUEUED, TESSERA_EVENT_SCHEDULED,
                                                 TESSERA_EVENT_FIRST_TOKEN, TESSERA_EVENT_FINISHED});

  with.on_ready = [](void*) { throw 1; };
  const CRequest thrower = submit(scheduler, with);
  std::int32_t code = TESSERA_OK, worked = 1;
  while (code == TESSERA_OK && worked != 0) code = tessera_scheduler_step(scheduler.get(), &worked, nullptr);
  CHECK(code == TESSERA_CALLBACK_FAILED);
}

TEST_CASE("functions that would wait for the step refuse to be called from its callbacks, and say so") {
  struct Seen {
    tessera_scheduler* scheduler = nullptr;
    std::vector<std::string> texts;
    void call() {
      const auto is_refused = [&](auto&& function) {
        texts.push_back(failure(TESSERA_INVALID_STATE, [&](auto error) { return function(scheduler, error); }));
      };
      is_refused(tessera_scheduler_start);
      is_refused(tessera_scheduler_stop);
      is_refused(tessera_scheduler_wait_until_idle);
      is_refused([](auto* of, auto* error) {
        std::int32_t worked = 0;
        return tessera_scheduler_step(of, &worked, error);
      });
    }
  } seen;
  auto options = options_of<tessera_scheduler_options>();
  options.user = &seen;
  options.on_event = [](void* user, std::int32_t event, std::uint64_t, double) {
    if (event == TESSERA_EVENT_FINISHED) static_cast<Seen*>(user)->call();
  };
  const CScheduler scheduler = c_scheduler(&options);
  seen.scheduler = scheduler.get();
  auto with = options_of<tessera_submit_options>("{\"max_tokens\": 1}");
  with.user = &seen;
  with.on_ready = [](void* user) { static_cast<Seen*>(user)->call(); };
  const CRequest request = submit(scheduler, with);
  for (std::int32_t worked = 1; worked != 0;)
    succeed([&](auto error) { return tessera_scheduler_step(scheduler.get(), &worked, error); });
  CHECK(seen.texts.size() >= 8);
  for (const std::string& text : seen.texts)
    CHECK_THAT(text, Catch::Matchers::ContainsSubstring("was called from on_event or on_ready"));
}

TEST_CASE("handles may be freed in any order") {
  CEngine engine = c_engine(model());
  CSession session = c_session(engine);
  append(session, rig().tokens);
  CSampler sampler = c_sampler(engine, "{\"temperature\": 1}");
  const auto options = options_of<tessera_generate_options>("{\"max_tokens\": 4, \"end_of_generation\": \"ignore\"}");
  auto generation = made<CGeneration>([&](auto out, auto error) {
    return tessera_session_generate(session.get(), sampler.get(), &options, out, error);
  });
  CScheduler scheduler = made<CScheduler>(
      [&](auto out, auto error) { return tessera_scheduler_create(engine.get(), nullptr, out, error); });
  const CRequest request = submit(scheduler, options_of<tessera_submit_options>("{\"max_tokens\": 4}"));
  constexpr std::string_view kChat = R"({"messages": [{"role": "user", "content": "a"}]})",
                             kAnswer = R"({"max_tokens": 3})";
  CConversation talk = made<CConversation>([&](auto out, auto error) {
    return tessera_conversation_create(engine.get(), kChat.data(), kChat.size(), nullptr, 0, out, error);
  });
  const auto answer = made<CAnswer>([&](auto out, auto error) {
    return tessera_conversation_answer(talk.get(), nullptr, kAnswer.data(), kAnswer.size(), nullptr, out, error);
  });
  engine.reset();
  session.reset();
  sampler.reset();
  talk.reset();
  scheduler.reset();
  const tessera_piece* piece = nullptr;
  int pieces = 0;
  for (;;) {
    succeed([&](auto error) { return tessera_generation_next(generation.get(), &piece, error); });
    if (piece == nullptr) break;
    ++pieces;
  }
  CHECK(pieces == 4);
  for (piece = nullptr;;) {
    succeed([&](auto error) { return tessera_answer_next(answer.get(), &piece, error); });
    if (piece == nullptr) break;
  }
  failure(TESSERA_CANCELLED,
          [&](auto error) { return tessera_request_next(request.get(), TESSERA_WAIT_FOREVER, &piece, error); });
}

TEST_CASE("a session that a scheduler refuses stays with the caller") {
  const CScheduler scheduler = c_scheduler();
  const CSession session = c_session(rig().engine);
  append(session, rig().tokens);
  tessera_scheduler_drain(scheduler.get());
  tessera_request* request = nullptr;
  failure(TESSERA_INVALID_STATE, [&](auto error) {
    return tessera_scheduler_submit(scheduler.get(), nullptr, 0, session.get(), nullptr, &request, error);
  });
  CHECK(tessera_session_position(session.get()) == rig().tokens.size());
  append(session, {1});

  const CScheduler other = c_scheduler();
  const CSampler sampler = c_sampler(rig().engine, nullptr);
  auto generation = made<CGeneration>([&](auto out, auto error) {
    return tessera_session_generate(session.get(), sampler.get(), nullptr, out, error);
  });
  CHECK_THAT(failure(TESSERA_INVALID_STATE,
                     [&](auto error) {
                       return tessera_scheduler_submit(other.get(), nullptr, 0, session.get(), nullptr, &request,
                                                       error);
                     }),
             Catch::Matchers::ContainsSubstring("tessera_generation_free()"));
  generation.reset();
  const auto taken = made<CRequest>([&](auto out, auto error) {
    return tessera_scheduler_submit(other.get(), nullptr, 0, session.get(), nullptr, out, error);
  });
  CHECK(tessera_session_position(session.get()) == 0);
}

}  // namespace test_c_callbacks
