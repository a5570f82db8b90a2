// Random rounds of a scheduler: requests of every kind, drafters that lie, sessions given in, little room, allocations
// that fail, and handles that are paused, cancelled and destroyed. Whatever happens, every request ends, who ends well
// has the tokens that it has alone, the others the first ones of them, and all pages come back. TESSERA_TEST_ROUNDS:
// how many rounds; TESSERA_TEST_FIRST: the first one's number.
#include "counted_new.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <random>
#include <thread>

#include <unistd.h>

#include "engine/faulty_memory.hpp"
#include "engine/made_adapter.hpp"
#include "sanitized.hpp"
#include "scheduler/asked.hpp"

namespace test_scheduler_random {

using namespace tessera;
using namespace tessera::test;

namespace {

std::size_t number(const char* variable, std::size_t otherwise) {
  const char* given = std::getenv(variable);
  return given == nullptr ? otherwise : std::strtoull(given, nullptr, 10);
}

struct AdapterWish {
  std::size_t adapter = 0;
  float scale = 1.0f;
  std::uint64_t from = 0;
};

struct Rig {
  Rig() {
    ample.emplace(load({}));
    EngineOptions counting;
    counting.kv.budget = {.tokens = 160, .choice = TokenChoice::snapkv};
    ample_counting.emplace(load(counting));
    draft.emplace(load({}));
    const std::uint64_t page = 16 * must(ample->session()).kv().layout().bytes_per_token();
    engines.push_back(load({}));
    engines.push_back(load({.kv_budget = 9 * page}));
    engines.push_back(load({.kv_budget = 14 * page}));
    EngineOptions filed{.kv_budget = 9 * page};
    filed.kv_file = std::filesystem::temp_directory_path() / ("tessera-random-" + std::to_string(::getpid()));
    filed.kv_file_bytes = 400 * page;
    engines.push_back(load(std::move(filed)));
    engines.push_back(load(std::move(counting)));  // the last one
  }
  Engine load(EngineOptions options) {
    options.kv.page_tokens = 16;
    options.context = 256;
    options.threads = 2;
    options.step_rows = 24;
    options.memory = &memory;
    const ModelFile file = must(ModelFile::open(golden_dir() / "llama-long.gguf"));
    Engine engine = must(Engine::load(file, options));
    for (std::uint32_t i = 0; i < 16; ++i) {
      const MadeAdapter how{.rank = 1 + 3 * (i % 4), .dtype = i % 3 == 0 ? DType::f16 : DType::f32, .alpha = 4.0f, .seed = i + 1,
                            .takes = [i](std::string_view tensor) { return i % 2 == 0 || tensor.find("attn") != tensor.npos; }};
      const std::string name = "adapter" + std::to_string(i);
      adapters[&engine.plan()].push_back(must(engine.adapter(folder.write(name, file, how))));
    }
    return engine;
  }
  [[nodiscard]] std::vector<AdapterUse> uses(const Engine& engine, std::vector<AdapterWish> wishes) const {
    std::vector<AdapterUse> list;
    for (const AdapterWish& wish : wishes) list.push_back({adapters.at(&engine.plan())[wish.adapter], wish.scale, wish.from});
    return list;
  }

  FaultyMemory memory;
  AdapterFolder folder;
  std::map<const Plan*, std::vector<Adapter>> adapters;  // of each engine, the same ones
  std::optional<Engine> ample, ample_counting, draft;
  std::vector<Engine> engines;
};

class Round {
 public:
  Round(const Rig& rig, std::uint32_t seed)
      : rig_(rig),
        random_(seed),
        engine_(rig.engines[seed % rig.engines.size()]),
        counts_(&engine_ == &rig.engines.back()),
        is_ample_(counts_ || &engine_ == &rig.engines.front()),
        has_driver_(seed % 8 >= 6),
        kinds_(request_kinds()) {}

  void run() {
    SchedulerOptions options{.policy = policies()[any(6)],
                             .limits = {.rows = static_cast<std::uint32_t>(4 + any(21)),
                                        .max_running = static_cast<std::uint32_t>(1 + any(8)),
                                        .headroom = any(2) == 0 ? 0.0 : 0.5},
                             .max_unread = 1 + any(12)};
    if (any(3) == 0) options.on_event = [this](const RequestEvent&) { ++events_; };
    scheduler_.emplace(must(Scheduler::create(engine_, options)));
    if (has_driver_) driver_.emplace(must(Driver::start(*scheduler_)));
    const std::size_t total = 2 + any(6);
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t step = 0; asked_.size() < total || !all_ended(); ++step) {
      REQUIRE(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));  // or a request would never end
      if (asked_.size() < total && any(2) == 0) submit();
      if (has_driver_)
        std::this_thread::sleep_for(std::chrono::microseconds(any(200)));
      else
        this->step();
      look(step);
    }
    if (driver_) must(driver_->wait_until_idle());
    if (!driver_ && !scheduler_->idle()) must(scheduler_->step());  // what was only left to be noted
    CHECK(scheduler_->idle());
    const SchedulerFigures figures = scheduler_->figures();
    CHECK(figures.finished + figures.cancelled + figures.failed == figures.submitted);
    for (const Wanted& one : asked_) check(one);
    driver_.reset();
    scheduler_.reset();
    asked_.clear();
    for (const Engine* engine : {&engine_, &*rig_.draft}) {
      engine->trim();
      CHECK(engine->kv_figures().used_bytes == 0);
    }
  }

 private:
  struct Wanted {
    Asked asked;
    Came came = {};
    std::optional<RequestHandle> handle = {};
    bool is_cancelled = false, is_refused = false, is_gone = false, reads_slowly = false;
  };

  [[nodiscard]] std::size_t any(std::size_t below) { return random_() % below; }
  static std::vector<PolicyPtr> policies() {
    return {first_come(), by_priority(), shortest_first(), earliest_deadline(), fair_by_tenant(), prefix_first()};
  }
  [[nodiscard]] bool all_ended() const {
    return std::ranges::all_of(asked_,
                               [](const Wanted& one) { return one.is_refused || one.is_gone || one.came.has_ended; });
  }
  // Allocations of any thread are counted: not where a driver's thread runs beside this one.
  [[nodiscard]] std::int64_t to_fail() {
    return !has_driver_ && any(3) == 0 ? static_cast<std::int64_t>(any(any(2) == 0 ? 20 : 300)) : -1;
  }
  [[nodiscard]] counted::Failure how() { return any(8) == 0 ? counted::Failure::from_then_on : counted::Failure::once; }

  SpeculateOptions drafts() {
    const std::uint32_t vocab = engine_.spec().vocab_size;
    std::shared_ptr<const Drafter> drafter;
    switch (any(8)) {
      case 0:
        drafter = must(ngram_drafter({.shortest = 1}));
        break;
      case 1:
        drafter = must(suffix_drafter());
        break;
      case 2:
        drafter = must(lookahead_drafter({.ngram = 2}));
        break;
      case 3:
        drafter = must(model_drafter(*rig_.draft));
        break;
      case 4:
        drafter = must(early_exit_drafter(1));
        break;
      case 5:
        drafter = liar(vocab);
        break;
      case 6:
        drafter = bush(vocab);
        break;
      default:
        drafter = must(forced_drafter());
        break;
    }
    return {.drafter = std::move(drafter),
            .max_drafts = static_cast<std::uint32_t>(1 + any(6)),
            .length = any(4) == 0 ? DraftLength::by_goodput : DraftLength::longest,
            .branches = static_cast<std::uint32_t>(1 + any(3))};
  }

  std::function<std::vector<AdapterUse>(const Engine&)> some_adapters(std::size_t prompt) {
    std::vector<AdapterWish> wishes(1 + any(2));
    for (AdapterWish& wish : wishes) {
      wish = {.adapter = any(16), .scale = 0.25f * static_cast<float>(any(9)) - 1.0f, .from = any(3) == 0 ? any(prompt + 4) : 0};
    }
    return [this, wishes](const Engine& engine) { return rig_.uses(engine, wishes); };
  }

  Asked wish() {
    Asked asked{.what = "request " + std::to_string(asked_.size()), .kind = kinds_[any(kinds_.size())]};
    const std::vector<Token> some = make_tokens(any(3), 9, engine_.spec().vocab_size);
    const bool has_budget = counts_ ? any(2) == 0 : is_ample_ && any(8) == 0;
    const std::size_t n = has_budget ? 120 + any(40) : 1 + any(50);
    for (std::size_t i = 0; i < n; ++i)
      asked.prompt.push_back(any(6) == 0 ? static_cast<Token>(any(50)) : some[i % some.size()]);
    asked.kind.options.max_tokens = 1 + any(14);
    if (any(4) == 0) asked.kind.options.logprobs = static_cast<std::uint32_t>(1 + any(3));
    if (any(6) == 0) asked.kind.options.stop_tokens = {static_cast<Token>(any(engine_.spec().vocab_size))};
    if (any(6) == 0)
      asked.kind.options.stop_strings = {std::string(1, static_cast<char>('a' + any(26))), "no such text"};
    if (is_ample_ && any(3) == 0) asked.given = any(n);
    asked.by_callback = !has_driver_ && any(8) == 0;
    if (has_budget) {
      // What is dropped at a prompt's end is gone from the history of its first draw in a session alone, and not yet in
      // a step: no sampler that looks at the history.
      asked.kind.sampler = kinds_[any(3)].sampler;
      asked.kind.name = "with a budget";
      asked.kv.budget = {.tokens = static_cast<std::uint32_t>(128 + any(16)),
                         .choice = counts_ && any(2) == 0 ? TokenChoice::snapkv : TokenChoice::window};
    } else if (!counts_ && any(5) == 0) {
      asked.beams = static_cast<std::uint32_t>(1 + any(3));
      asked.kind.options = {.max_tokens = 1 + any(8), .end_of_generation = EndOfGeneration::ignore};
      asked.by_callback = false;
      if (any(2) == 0) asked.adapters = some_adapters(n);
      return asked;
    }
    if (any(2) == 0) asked.adapters = some_adapters(n);
    if (any(4) == 0) asked.samples = static_cast<std::uint32_t>(1 + any(3));
    if (any(2) == 0) asked.speculate = drafts();
    return asked;
  }

  void submit() {
    Wanted& one = asked_.emplace_back(Wanted{.asked = wish()});
    one.reads_slowly = any(4) == 0;
    Request request = request_of(engine_, one.asked, one.came);
    request.priority = static_cast<std::int32_t>(any(3));
    request.deadline = 0.1 + static_cast<double>(any(100)) / 50.0;
    request.tenant = std::to_string(any(40));
    const counted::Scope scope(to_fail(), how());
    auto handle = scheduler_->submit(std::move(request));
    const counted::Pause pause;
    one.is_refused = !handle;
    if (handle) return (void)one.handle.emplace(*std::move(handle));
    const ErrorCode code = handle.error().code();
    // What can never fit, or there was no memory.
    if (code != ErrorCode::invalid_argument && code != ErrorCode::cache_full &&
        (code != ErrorCode::out_of_memory || counted::failed == 0))
      FAIL(handle.error().text());
  }

  void step() {
    const std::int64_t fail = to_fail();
    const counted::Scope scope(fail, how());
    const auto more = scheduler_->step();
    const counted::Pause pause;
    if (!more && (more.error().code() != ErrorCode::out_of_memory || counted::failed == 0)) FAIL(more.error().text());
    if (more && !*more)
      std::this_thread::sleep_for(std::chrono::microseconds(50));  // pages on their way to the file are not free yet
  }

  void look(std::size_t step) {
    for (Wanted& one : asked_) {
      if (!one.handle || one.came.has_ended) continue;
      if (any(60) == 0) {
        if (any(2) == 0)
          one.handle->cancel();
        else
          (void)scheduler_->cancel(one.handle->id());
        one.is_cancelled = true;
      }
      if (any(40) == 0) one.handle->pause();
      if (any(6) == 0 || step > 400) one.handle->resume();
      if (any(80) == 0) {
        one.is_gone = true;
        one.handle.reset();
        continue;
      }
      if (one.reads_slowly && any(6) != 0) continue;
      one.came.take(*one.handle);
    }
    if (any(30) == 0) (void)scheduler_->figures();
  }

  void check(const Wanted& one) const {
    if (one.is_refused || one.is_gone) return;
    INFO("prompt of " << one.asked.prompt.size() << ", " << one.asked.given << " of them given, " << one.asked.kind.name
                      << ", " << one.asked.kind.options.max_tokens << " tokens, samples " << one.asked.samples
                      << ", beams " << one.asked.beams << ", budget " << one.asked.kv.budget.tokens << ", drafter "
                      << (one.asked.speculate.drafter != nullptr));
    check_came(one.asked, one.came, alone(counts_ ? *rig_.ample_counting : *rig_.ample, one.asked));
    if (!one.came.error) return;
    const ErrorCode code = one.came.error->code();
    const bool may =
        (code == ErrorCode::cancelled && one.is_cancelled) || (code == ErrorCode::out_of_memory && !has_driver_);
    if (!may) FAIL_CHECK(one.came.error->text());
  }

  const Rig& rig_;
  std::mt19937 random_;
  const Engine& engine_;
  bool counts_, is_ample_, has_driver_;
  std::vector<RequestKind> kinds_;
  std::atomic<std::uint64_t> events_ = 0;
  std::deque<Wanted> asked_;  // they stay where they are
  std::optional<Scheduler> scheduler_;
  std::optional<Driver> driver_;
};

}  // namespace

TEST_CASE("random rounds with allocations that fail: everybody ends, with their own tokens", "[scheduler]") {
  const Rig rig;
  const std::size_t first = number("TESSERA_TEST_FIRST", 0),
                    rounds = number("TESSERA_TEST_ROUNDS", tests::kSanitized ? 60 : 300);
  for (std::size_t round = first; round < first + rounds; ++round) {
    INFO("round " << round);
    Round(rig, static_cast<std::uint32_t>(round)).run();
  }
}

}  // namespace test_scheduler_random
