// Every allocation of a scheduler's rounds fails once, for requests of every kind: the round goes on, who survives has
// the tokens that it has alone, who does not has the first ones of them and an error that says out_of_memory, everybody
// ends, and no page is lost. TESSERA_TEST_ALLOCATIONS: how many allocations of each round fail, one in each try; "all":
// each of them.
#include "counted_new.hpp"

#include <chrono>
#include <cstdlib>
#include <thread>

#include <unistd.h>

#include "engine/faulty_memory.hpp"
#include "sanitized.hpp"
#include "scheduler/asked.hpp"

namespace test_request_faults {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr std::size_t kTokens = 10, kMostSteps = 4000;

// What is done to requests while they run.
enum class Disturb { nothing, pause_and_cancel };

struct Scene {
  std::string name;
  std::vector<Asked> asked;
  std::uint32_t pages = 0;  // of the engine's budget; 0: as many as are wanted
  bool has_file = false;
  bool counts = false;  // what rows attend to, for budgets of tokens
  Disturb disturb = Disturb::nothing;
};

class Rig {
 public:
  explicit Rig(const Scene& scene = {}) : counts_(scene.counts), ample_(load({})), draft_(load({})) {
    EngineOptions options;
    const std::uint64_t page = 16 * must(ample_.session()).kv().layout().bytes_per_token();
    options.kv_budget = page * scene.pages;
    if (scene.has_file) {
      options.kv_file = std::filesystem::temp_directory_path() / ("tessera-faults-" + std::to_string(::getpid()));
      options.kv_file_bytes = 400 * page;
    }
    engine_.emplace(load(std::move(options)));
  }

  Engine load(EngineOptions options) {
    options.kv.page_tokens = 16;
    if (counts_) options.kv.budget = {.tokens = 160, .choice = TokenChoice::snapkv};
    options.context = 256;
    options.threads = 1;
    options.step_rows = 24;
    options.memory = &memory_;
    return must(Engine::load(golden_dir() / "llama-long.gguf", options));
  }
  // Nothing is known of earlier rounds, and all pages are back.
  void check_all_free() {
    for (const Engine* engine : {&*engine_, &draft_}) {
      engine->trim();
      CHECK(engine->kv_figures().used_bytes == 0);
    }
  }

 private:
  FaultyMemory memory_;
  bool counts_;

 public:
  Engine ample_, draft_;
  std::optional<Engine> engine_;
};

// A prompt that repeats itself, so that drafters find something.
std::vector<Token> prompt(std::uint64_t seed, std::size_t n, const Engine& engine) {
  const std::vector<Token> some = make_tokens(seed, 7, engine.spec().vocab_size);
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < n; ++i) tokens.push_back(some[i % some.size()]);
  return tokens;
}

Asked plain(const Engine& engine, std::uint64_t seed, std::size_t n = 20) {
  static const std::vector<RequestKind> kinds = request_kinds();
  Asked asked{.what = "request " + std::to_string(seed) + " of a tenant with a long name",
              .prompt = prompt(seed, n, engine),
              .kind = kinds[seed % 6]};
  asked.kind.options.max_tokens = kTokens;
  return asked;
}

std::vector<Scene> scenes(const Rig& rig) {
  const Engine& engine = rig.ample_;
  std::vector<Scene> scenes;
  // Two of the kind, and a plain one beside them.
  const auto add = [&](std::string name, auto&& change) -> Scene& {
    Scene& scene = scenes.emplace_back(
        Scene{.name = std::move(name), .asked = {plain(engine, 1), plain(engine, 2, 27), plain(engine, 4)}});
    change(scene.asked[0]);
    change(scene.asked[1]);
    return scene;
  };
  const auto drafts = [](std::shared_ptr<const Drafter> drafter, std::uint32_t branches = 1) {
    return [drafter = std::move(drafter), branches](Asked& asked) {
      asked.speculate = {.drafter = drafter, .max_drafts = 4, .length = DraftLength::longest, .branches = branches};
    };
  };
  const auto nothing = [](Asked&) {};
  const std::uint32_t vocab = engine.spec().vocab_size;
  add("plain", nothing);
  add("log-probabilities", [](Asked& asked) { asked.kind.options.logprobs = 3; });
  add("stop strings", [&](Asked& asked) {
    const std::string text = alone(engine, asked)[0].text;
    asked.kind.options.stop_strings = {"no such text", text.substr(text.size() * 2 / 3, 2)};
  });
  add("by callback", [](Asked& asked) { asked.by_callback = true; });
  add("n-gram drafts", drafts(must(ngram_drafter({.shortest = 1}))));
  add("suffix drafts", drafts(must(suffix_drafter())));
  add("suffix drafts with branches", drafts(must(suffix_drafter()), 3));
  add("lookahead drafts", drafts(must(lookahead_drafter({.ngram = 2}))));
  add("a model's drafts", drafts(must(model_drafter(rig.draft_))));
  add("a model's drafts with branches", drafts(must(model_drafter(rig.draft_)), 3));
  add("early exit", drafts(must(early_exit_drafter(1))));
  add("a liar's drafts", drafts(liar(vocab)));
  add("a liar's trees", drafts(bush(vocab), 3));
  add("samples", [](Asked& asked) { asked.samples = 3; });
  add("samples with drafts", [&](Asked& asked) {
    asked.samples = 2;
    drafts(must(suffix_drafter()), 2)(asked);
  });
  add("beams", [](Asked& asked) { asked.beams = 3; });
  const auto grammar = [](Asked& asked) {
    asked.kind = request_kinds()[7];
    asked.kind.options.max_tokens = kTokens;
  };
  add("a grammar", grammar);
  add("a grammar with drafts", [&](Asked& asked) {
    grammar(asked);
    drafts(must(ngram_drafter({.shortest = 1})))(asked);
  });
  for (const TokenChoice choice : {TokenChoice::window, TokenChoice::snapkv}) {
    add("a budget of tokens", [&](Asked& asked) {
      asked.prompt = prompt(asked.prompt.size(), 140, engine);
      asked.kv.budget = {.tokens = 128, .choice = choice};
    }).counts = true;
  }
  add("sessions given in", [](Asked& asked) { asked.given = 17; });
  add("little room", nothing).pages = 5;
  add("little room for samples", [](Asked& asked) { asked.samples = 2; }).pages = 7;
  add("little room for beams", [](Asked& asked) { asked.beams = 2; }).pages = 9;
  add("little room for drafts", drafts(must(suffix_drafter()), 3)).pages = 6;
  Scene& suspended = add("little room and a file", nothing);
  suspended.pages = 5;
  suspended.has_file = true;
  add("paused and cancelled", nothing).disturb = Disturb::pause_and_cancel;
  return scenes;
}

void disturb(std::vector<std::optional<RequestHandle>>& handles, std::size_t step) {
  if (handles[0] && step == 2) handles[0]->pause();
  if (handles[0] && step == 6) handles[0]->resume();
  if (handles[1] && step == 4) handles[1]->cancel();
}

// What the requests give where the fail-th allocation fails; how many have failed is what counted::failed says.
std::vector<Came> play(Rig& rig, const Scene& scene, std::int64_t fail) {
  const Engine& engine = *rig.engine_;
  std::vector<Came> came(scene.asked.size());
  {
    Scheduler scheduler = must(Scheduler::create(engine, {.policy = fair_by_tenant(), .limits = {.rows = 16}}));
    std::vector<Request> requests;
    for (std::size_t i = 0; i < scene.asked.size(); ++i)
      requests.push_back(request_of(engine, scene.asked[i], came[i]));
    std::vector<std::optional<RequestHandle>> handles(requests.size());
    std::size_t steps = 0;
    const auto step = [&] {
      const auto more = scheduler.step();
      if (!more && more.error().code() != ErrorCode::out_of_memory) FAIL(more.error().message());
      if (scene.disturb != Disturb::nothing) disturb(handles, steps);
      if (more && !*more)
        std::this_thread::sleep_for(std::chrono::microseconds(50));  // pages are on their way to the file
      return ++steps < kMostSteps && !scheduler.idle();
    };
    {
      const counted::Scope scope(fail);
      for (std::size_t i = 0; i < requests.size(); ++i) {
        auto handle = scheduler.submit(std::move(requests[i]));
        if (handle)
          handles[i].emplace(*std::move(handle));
        else
          came[i].error = handle.error();
      }
      while (step()) {
      }
      if (fail >= 0) (void)scheduler.figures();
    }
    for (bool more = !scheduler.idle(); more;) more = step();
    REQUIRE(scheduler.idle());
    for (std::size_t i = 0; i < handles.size(); ++i) {
      if (!handles[i]) continue;
      came[i].take(*handles[i]);
      CHECK(came[i].has_ended);
    }
    const SchedulerFigures figures = scheduler.figures();
    CHECK(figures.submitted == figures.finished + figures.cancelled + figures.failed);
  }
  rig.check_all_free();
  return came;
}

std::size_t failures_wanted(std::size_t of) {
  const char* given = std::getenv("TESSERA_TEST_ALLOCATIONS");
  if (given == nullptr) return tests::kSanitized ? 6 : 16;
  return std::string_view(given) == "all" ? of : std::strtoull(given, nullptr, 10);
}

}  // namespace

TEST_CASE("any allocation may fail while requests of any kind are served", "[scheduler]") {
  Rig ample;
  for (const Scene& scene : scenes(ample)) {
    INFO(scene.name);
    std::optional<Rig> own;
    if (scene.pages != 0 || scene.counts) own.emplace(scene);
    Rig& rig = own ? *own : ample;
    std::vector<std::vector<Told>> expected;
    for (const Asked& asked : scene.asked) expected.push_back(alone(rig.ample_, asked));
    std::size_t allocations = 0;
    for (int i = 0; i < 2; ++i) {  // the first one fills tables that stay
      const std::vector<Came> came = play(rig, scene, -1);
      allocations = static_cast<std::size_t>(counted::count);
      for (std::size_t of = 0; of < came.size(); ++of) {
        if (came[of].error && scene.disturb == Disturb::nothing)
          FAIL(scene.asked[of].what << ": " << came[of].error->text());
        check_came(scene.asked[of], came[of], expected[of]);
      }
    }
    const std::size_t wanted = failures_wanted(allocations);
    const std::size_t stride = std::max<std::size_t>(allocations / std::max<std::size_t>(wanted, 1), 1);
    std::size_t tries = 0, ended_by_it = 0;
    for (std::size_t fail = scene.name.size() % stride;; fail += stride) {  // another place in each scene
      CAPTURE(fail);
      const std::vector<Came> came = play(rig, scene, static_cast<std::int64_t>(fail));
      if (counted::failed == 0) break;
      ++tries;
      for (std::size_t of = 0; of < came.size(); ++of) {
        check_came(scene.asked[of], came[of], expected[of]);
        if (!came[of].error) continue;
        const bool is_cancelled = scene.disturb != Disturb::nothing && came[of].error->code() == ErrorCode::cancelled;
        if (!is_cancelled && came[of].error->code() != ErrorCode::out_of_memory)
          FAIL_CHECK(scene.asked[of].what << ": " << came[of].error->text());
        ++ended_by_it;
      }
    }
    if (std::getenv("TESSERA_TEST_FIGURES") != nullptr) {
      WARN(scene.name << ": " << allocations << " allocations, " << tries << " failed, " << ended_by_it
                      << " requests ended by that");
    }
    CHECK(tries > 2);
  }
}

TEST_CASE("next() without a driver returns while every step fails, and nothing is lost", "[scheduler]") {
  Rig rig;
  const Engine& engine = rig.ample_;
  const Asked asked = plain(engine, 1);
  const std::vector<Told> expected = alone(engine, asked);
  for (const std::size_t pieces_before : {0u, 3u}) {
    INFO(pieces_before);
    Scheduler scheduler = must(Scheduler::create(engine));
    RequestHandle handle = must(scheduler.submit({.prompt = asked.prompt, .sampler = asked.kind.sampler(engine), .generate = asked.kind.options}));
    std::vector<Token> tokens;
    const auto read = [&](const RequestPiece& piece) { tokens.push_back(piece.piece.token); };
    while (tokens.size() < pieces_before) read(handle.next().value());
    for (int again = 0; again < 2; ++again) {
      std::optional<RequestPiece> piece;
      {
        const counted::Scope all_fail(0, counted::Failure::from_then_on);
        piece = handle.next();
      }
      if (piece) {  // drawn before a step needed memory
        read(*piece);
        continue;
      }
      CHECK(handle.drive_status().error().code() == ErrorCode::out_of_memory);
      CHECK(handle.status().error().code() == ErrorCode::out_of_memory);
      CHECK(handle.state() != RequestState::ended);
    }
    while (const auto piece = handle.next()) {
      CHECK(handle.drive_status());
      read(*piece);
    }
    must(handle.status());
    CHECK(handle.state() == RequestState::ended);
    CHECK(tokens == expected[0].tokens);
  }
}

}  // namespace test_request_faults
