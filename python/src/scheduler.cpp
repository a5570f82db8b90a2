// tessera.Scheduler: many requests on one engine, driven by a thread of the library; and tessera.Request, which reads
// an answer.
#include <algorithm>
#include <chrono>
#include <limits>
#include <list>
#include <map>
#include <shared_mutex>

#include <nanobind/stl/map.h>

#include "boxes.hpp"
#include "names.hpp"
#include "ready_queue.hpp"

namespace tessera::python {

namespace {

using std::chrono::nanoseconds;
constexpr nanoseconds kSlice = std::chrono::milliseconds(20);  // how long a call holds a request while it waits

struct SchedulerBox {
  std::shared_ptr<EngineBox> engine;
  Scheduler scheduler;
  Driver driver;
  bool driven = false;
  std::shared_mutex mutex;  // held by calls of the scheduler; exclusively while it is destroyed
  std::atomic<bool> closed = false;

  // Ends the driver's thread and all requests. Called without the GIL. The thread ends first, without the lock: its
  // callbacks may ask for figures.
  void close() {
    if (closed.exchange(true)) return;
    driver = Driver();
    const std::scoped_lock lock(mutex);
    scheduler = Scheduler();
  }
  ~SchedulerBox() { close(); }
};
using SchedulerHandle = Handle<SchedulerBox>;

struct RequestBox {
  std::shared_ptr<SchedulerBox> scheduler;
  FailurePtr failure;
  std::mutex mutex;  // guards `handle` but for cancel()
  RequestHandle handle;
  std::uint32_t samples = 1;
};
using RequestPtr = Handle<RequestBox>;

// One of the texts of a request, whole.
struct Sample {
  std::string text;
  Tokens tokens;
  FinishReason finish = FinishReason::none;
  std::int32_t stop_string = -1;
  std::vector<float> logprobs;
  std::vector<std::vector<std::pair<Token, float>>> top;
};

// Schedulers that are not closed, for the interpreter's end.
std::mutex live_mutex;
std::list<std::weak_ptr<SchedulerBox>>& live_schedulers() {
  static auto* live = new std::list<std::weak_ptr<SchedulerBox>>();
  return *live;
}

PolicyPtr policy_named(const std::string& name) {
  static constexpr Named<PolicyPtr (*)()> kPolicies[] = {
      {"first_come", first_come},      {"priority", by_priority}, {"shortest", [] { return shortest_first(); }},
      {"deadline", earliest_deadline}, {"fair", fair_by_tenant},  {"prefix", [] { return prefix_first(); }}};
  return value_named("policy", name, kPolicies)();
}

SchedulerHandle make_scheduler(const EngineHandle& engine, const std::string& policy, std::uint32_t max_running,
                               std::uint32_t rows, double step_seconds, std::size_t max_waiting, std::size_t max_unread,
                               const std::map<std::string, double>& weights, double headroom, bool driver) {
  refuse_in_callback("Scheduler()");
  SchedulerOptions options;
  options.policy = policy_named(policy);
  options.limits.max_running = max_running;
  options.limits.rows = rows;
  options.limits.seconds = step_seconds;
  options.limits.headroom = headroom;
  options.max_waiting = max_waiting;
  options.max_unread = max_unread;
  options.weights = weights;
  auto box = std::make_shared<SchedulerBox>();
  box->engine = engine.box();
  box->driven = driver;
  take(unlocked([&]() -> Status {
    auto made = Scheduler::create(engine->engine, options);
    if (!made) return made.error();
    box->scheduler = *std::move(made);
    if (driver) {
      auto started = Driver::start(box->scheduler);
      if (!started) return started.error();
      box->driver = *std::move(started);
    }
    return {};
  }));
  const std::scoped_lock lock(live_mutex);
  auto& live = live_schedulers();
  live.remove_if([](const std::weak_ptr<SchedulerBox>& one) { return one.expired(); });
  live.push_back(box);
  return SchedulerHandle(std::move(box));
}

RequestPtr submit(const SchedulerHandle& self, const TextOrTokens& prompt, const std::optional<SamplerHandle>& sampler,
                  std::optional<std::size_t> max_tokens,
                  const std::optional<std::variant<std::string, std::vector<std::string>>>& stop,
                  const std::optional<Tokens>& stop_tokens, bool ignore_eos, std::uint32_t logprobs,
                  std::uint32_t samples, std::int32_t priority, std::optional<double> deadline, bool refuse_if_late,
                  const std::string& tenant, const std::string& salt, const std::optional<SessionHandle>& session,
                  bool keep_session, const std::optional<DrafterHandle>& drafter, bool special, bool show_control,
                  const nb::object& on_ready, const std::optional<ReadyHandle>& ready_queue, std::uint64_t ready_key) {
  refuse_in_callback("Scheduler.submit()");
  auto box = std::make_shared<RequestBox>();
  box->scheduler = self.box();
  box->failure = std::make_shared<Failure>();
  box->samples = samples;
  Request request;
  request.generate = generate_options(max_tokens, stop, stop_tokens, ignore_eos, logprobs, show_control);
  request.generate.speculate = speculation(drafter);
  request.samples = samples;
  request.priority = priority;
  if (deadline) request.deadline = *deadline;
  request.if_late = refuse_if_late ? IfLate::refuse : IfLate::run;
  request.tenant = tenant;
  request.session_options.kv.salt = salt;
  request.session_at_end = keep_session ? SessionAtEnd::keep : SessionAtEnd::drop;
  if (ready_queue) {
    request.on_ready = [queue = (*ready_queue)->state, ready_key] { queue->push(ready_key); };
  } else if (!on_ready.is_none()) {
    request.on_ready = [call = PyRef(on_ready)] {
      const Entered entered;
      if (!entered) return;
      try {
        call.get()();
      } catch (nb::python_error& error) {
        error.discard_as_unraisable(call.get());
      } catch (...) {
      }
    };
  }
  std::optional<Use::Claim> claim;
  if (session) claim.emplace((*session)->use.change("session"));
  auto handle = unlocked([&]() -> Result<RequestHandle> {
    const bool begins = !session || (*session)->session.tokens().empty();
    auto tokens = tokens_of(prompt, self->engine->engine.tokenizer(), begins, special);
    if (!tokens) return tokens.error();
    request.prompt = *std::move(tokens);
    if (sampler) {  // in its first state, with a place of its own for exceptions
      auto fresh = (*sampler)->spec.build(self->engine.get(), box->failure);
      if (!fresh) return fresh.error();
      request.sampler = *std::move(fresh);
    }
    const std::shared_lock lock(self->mutex);
    if (self->closed) return Error(ErrorCode::invalid_state, "the scheduler is closed: make another one");
    if (session) {
      (*session)->latest = nullptr;
      request.session = std::move((*session)->session);
    }
    return self->scheduler.submit(std::move(request));
  });
  box->handle = take(std::move(handle), *box->failure);
  return RequestPtr(std::move(box));
}

enum class Reading : std::int32_t { piece, waiting, paused, ended };

// Waits for a piece, at most `slice`. Called without the GIL. `piece` is set for Reading::piece.
Reading read_slice(RequestBox& box, nanoseconds slice, std::optional<RequestPiece>& piece) {
  const std::scoped_lock lock(box.mutex);
  const RequestState before = box.handle.state();  // taken first: a request may end between the two calls
  piece = slice.count() == 0 ? box.handle.try_next() : box.handle.next(slice);
  if (piece) return Reading::piece;
  if (before == RequestState::ended) return Reading::ended;
  return before == RequestState::paused ? Reading::paused : Reading::waiting;
}

// Throws the error with which the request has failed.
void check(const RequestPtr& self) {
  Status status = unlocked([&] {
    const std::scoped_lock lock(self->mutex);
    return self->handle.status();
  });
  take(std::move(status), *self->failure);
}

// Returns the next piece; nullopt at the end, or when the timeout has passed (then `late` is true).
std::optional<PyPiece> next(const RequestPtr& self, std::optional<double> timeout, bool& late) {
  refuse_in_callback("Request.next()");
  late = false;
  const auto end =
      std::chrono::steady_clock::now() +
      std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(std::min(timeout.value_or(1e9), 1e9)));
  for (;;) {
    std::optional<RequestPiece> piece;
    const auto left =
        timeout ? std::max(nanoseconds(0), nanoseconds(end - std::chrono::steady_clock::now())) : nanoseconds::max();
    Reading reading = Reading::waiting;
    {
      const Unlocked released;
      do {  // the GIL is only taken for a piece and for signals
        reading = read_slice(*self, std::min(kSlice, left), piece);
      } while (reading == Reading::waiting && !on_main_thread() &&
               (!timeout || std::chrono::steady_clock::now() < end));
      if (reading == Reading::paused) std::this_thread::sleep_for(std::min<nanoseconds>(kSlice, left));
    }
    if (reading == Reading::piece) return PyPiece{piece->sample, std::move(piece->piece)};
    if (reading == Reading::ended) {
      check(self);
      return std::nullopt;
    }
    check_signals();
    if (timeout && std::chrono::steady_clock::now() >= end) {
      late = true;
      return std::nullopt;
    }
  }
}

std::optional<PyPiece> try_next(const RequestPtr& self) {
  refuse_in_callback("Request.try_next()");
  std::optional<RequestPiece> piece;
  unlocked([&] { return read_slice(*self, nanoseconds(0), piece); });
  if (!piece) return std::nullopt;
  return PyPiece{piece->sample, std::move(piece->piece)};
}

std::vector<Sample> result(const RequestPtr& self) {
  std::vector<Sample> all(self->samples);
  bool late = false;
  while (auto next_one = next(self, std::nullopt, late)) {
    Sample& sample = all[std::min<std::size_t>(next_one->sample, all.size() - 1)];
    Piece& piece = next_one->piece;
    sample.text += piece.text;
    sample.tokens.push_back(piece.token);
    sample.logprobs.push_back(piece.logprob);
    if (!piece.top.empty()) {
      auto& top = sample.top.emplace_back();
      for (const TokenLogprob& one : piece.top) top.emplace_back(one.token, one.logprob);
    }
    if (piece.finish != FinishReason::none) {
      sample.finish = piece.finish;
      sample.stop_string = piece.stop_string;
    }
  }
  return all;
}

template <class Get>
auto locked(const RequestPtr& self, Get&& get) {
  return unlocked([&] {
    const std::scoped_lock lock(self->mutex);
    return get(self->handle);
  });
}

nb::dict histogram_dict(const Histogram& h) {
  nb::dict d;
  d["count"] = h.count();
  d["mean"] = h.mean();
  d["p50"] = h.percentile(0.5);
  d["p90"] = h.percentile(0.9);
  d["p99"] = h.percentile(0.99);
  d["max"] = h.max();
  return d;
}

// Calls a function of the scheduler without the GIL. A closed scheduler is an empty one, whose functions are safe.
template <class Call>
auto called(const SchedulerHandle& self, Call&& call) {
  return unlocked([&] {
    const std::shared_lock lock(self->mutex);
    return call(self->scheduler);
  });
}

nb::dict figures(const SchedulerHandle& self) {
  const SchedulerFigures f = called(self, [](Scheduler& s) { return s.figures(); });
  nb::dict d;
#define TESSERA_FIGURE(name) d[#name] = f.name
  TESSERA_FIGURE(submitted), TESSERA_FIGURE(finished), TESSERA_FIGURE(cancelled), TESSERA_FIGURE(failed),
      TESSERA_FIGURE(late);
  TESSERA_FIGURE(refused_busy), TESSERA_FIGURE(refused_size), TESSERA_FIGURE(refused_late);
  TESSERA_FIGURE(running), TESSERA_FIGURE(waiting), TESSERA_FIGURE(steps), TESSERA_FIGURE(tokens),
      TESSERA_FIGURE(prompt_tokens);
  TESSERA_FIGURE(reused_tokens), TESSERA_FIGURE(recomputed_tokens), TESSERA_FIGURE(drafted), TESSERA_FIGURE(accepted);
  TESSERA_FIGURE(suspended), TESSERA_FIGURE(recomputed), TESSERA_FIGURE(out_of_room);
#undef TESSERA_FIGURE
#define TESSERA_FIGURE(name) d[#name] = histogram_dict(f.name)
  TESSERA_FIGURE(queue), TESSERA_FIGURE(time_to_first_token), TESSERA_FIGURE(inter_token),
      TESSERA_FIGURE(per_output_token);
  TESSERA_FIGURE(end_to_end), TESSERA_FIGURE(step), TESSERA_FIGURE(planning), TESSERA_FIGURE(rows);
#undef TESSERA_FIGURE
  nb::dict tenants;
  for (const auto& [name, tenant] : f.tenants) {
    nb::dict one;
    one["weight"] = tenant.weight;
    one["service"] = tenant.service;
    one["requests"] = tenant.requests;
    tenants[nb::str(name.data(), name.size())] = one;
  }
  d["tenants"] = tenants;
  return d;
}

nb::dict figures(const RequestPtr& self) {
  const RequestFigures f = locked(self, [](RequestHandle& h) { return h.figures(); });
  const auto time = [](double value) -> nb::object { return value < 0.0 ? nb::none() : nb::object(nb::float_(value)); };
  nb::dict d;
  d["submitted"] = f.submitted;
  d["scheduled"] = time(f.scheduled);
  d["first_token"] = time(f.first_token);
  d["ended"] = time(f.ended);
  d["prompt_tokens"] = f.prompt_tokens;
  d["reused_tokens"] = f.reused_tokens;
  d["computed_tokens"] = f.computed_tokens;
  d["tokens"] = f.tokens;
  d["drafted"] = f.drafted;
  d["accepted"] = f.accepted;
  d["recomputed_tokens"] = f.recomputed_tokens;
  d["preemptions"] = f.preemptions;
  d["late"] = f.late;
  return d;
}

std::string state_name(RequestState state) {
  static constexpr Named<RequestState> kStates[] = {{"waiting", RequestState::waiting},
                                                    {"running", RequestState::running},
                                                    {"paused", RequestState::paused},
                                                    {"ended", RequestState::ended}};
  return std::string(name_of(state, kStates));
}

void drain(const SchedulerHandle& self, bool wait) {
  refuse_in_callback("Scheduler.drain()");
  called(self, [](Scheduler& s) { s.drain(); });
  if (!wait) return;
  if (!self->driven)
    raise(ErrorCode::invalid_state,
          "a scheduler without a driver does not go on by itself: call step() until it is idle");
  while (!called(self, [](Scheduler& s) { return s.idle(); })) {
    unlocked([&] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); });
    check_signals();
  }
}

void bind_request(nb::module_& m) {
  nb::class_<Sample>(m, "Sample", "One of the texts of a request, whole: Request.result() returns them.")
      .def(
          "__init__",
          [](Sample* self, std::string text, Tokens tokens, const std::optional<std::string>& finish,
             std::optional<int> stop_string) {
            new (self) Sample();
            self->text = std::move(text);
            self->tokens = std::move(tokens);
            self->stop_string = stop_string.value_or(-1);
            for (const FinishReason reason : {FinishReason::max_tokens, FinishReason::end_of_generation,
                                              FinishReason::stop_token, FinishReason::stop_string}) {
              if (finish && *finish == to_string(reason)) self->finish = reason;
            }
          },
          nb::arg("text"), nb::arg("tokens"), nb::arg("finish_reason") = nb::none(),
          nb::arg("stop_string") = nb::none())
      .def_ro("text", &Sample::text)
      .def_ro("tokens", &Sample::tokens)
      .def_ro("logprobs", &Sample::logprobs, "ln p of each token, if asked for.")
      .def_ro("top", &Sample::top, "The likeliest tokens at each place, if asked for: (token, logprob).")
      .def_prop_ro(
          "finish_reason", [](const Sample& self) { return finish_name(self.finish); },
          nb::sig("def finish_reason(self) -> str | None"))
      .def_prop_ro(
          "stop_string",
          [](const Sample& self) -> std::optional<int> {
            return self.stop_string < 0 ? std::nullopt : std::optional(self.stop_string);
          },
          "Number of the stop string that ended the text, or None.")
      .def("__repr__", [](const Sample& self) {
        return "<tessera.Sample of " + std::to_string(self.tokens.size()) +
               " tokens: " + nb::repr(nb::str(self.text.data(), self.text.size())).c_str() + ">";
      });

  nb::class_<RequestPtr>(
      m, "Request", nb::is_weak_referenceable(),
      R"(Reads the answer to a request: an iterator of Piece, which ends with the answer and raises the error of a failed request.

    for piece in scheduler.submit("Once upon a time", max_tokens=50):
        print(piece, end="")

A request that is closed or destroyed before its end is cancelled. Any thread may use it; two threads that read share the pieces.)")
      .def(
          "__iter__", [](nb::handle self) { return self; }, nb::sig("def __iter__(self) -> Request"))
      .def("__next__",
           [](const RequestPtr& self) {
             bool late = false;
             auto piece = next(self, std::nullopt, late);
             if (!piece) throw nb::stop_iteration();
             return *std::move(piece);
           })
      .def(
          "next",
          [](const RequestPtr& self, std::optional<double> timeout) {
            bool late = false;
            return next(self, timeout, late);
          },
          nb::arg("timeout") = nb::none(),
          "Returns the next piece and waits for it, at most `timeout` seconds. None: the answer has ended (state is "
          "\"ended\"), or the time is over.\n"
          "Raises the error of a request that failed.")
      .def("try_next", &try_next, "Returns a piece that is ready, or None. Does not wait.")
      .def(
          "read",
          [](const RequestPtr& self) {
            std::string text;
            bool late = false;
            while (auto piece = next(self, std::nullopt, late)) {
              if (piece->sample == 0) text += piece->piece.text;
            }
            return text;
          },
          "Waits for the end and returns the rest of the first sample's text.")
      .def("result", &result, "Waits for the end and returns all samples.")
      .def(
          "check", [](const RequestPtr& self) { check(self); }, "Raises the error of a request that has failed.")
      .def(
          "cancel", [](const RequestPtr& self) { unlocked([&] { self->handle.cancel(); }); },
          "Ends the request at the next step. Reading then raises Cancelled.")
      .def(
          "pause", [](const RequestPtr& self) { locked(self, [](RequestHandle& h) { h.pause(); }); },
          "The request gets no rows until resume().")
      .def("resume", [](const RequestPtr& self) { locked(self, [](RequestHandle& h) { h.resume(); }); })
      .def(
          "close", [](const RequestPtr& self) { unlocked([&] { self->handle.cancel(); }); },
          "Cancels the request if it has not ended.")
      .def(
          "__enter__", [](nb::handle self) { return self; }, nb::sig("def __enter__(self) -> Request"))
      .def(
          "__exit__", [](const RequestPtr& self, nb::args) { unlocked([&] { self->handle.cancel(); }); },
          nb::sig("def __exit__(self, *args: object) -> None"))
      .def_prop_ro("id", [](const RequestPtr& self) { return self->handle.id(); })
      .def_prop_ro(
          "state",
          [](const RequestPtr& self) { return state_name(locked(self, [](RequestHandle& h) { return h.state(); })); },
          "\"waiting\", \"running\", \"paused\" or \"ended\".")
      .def_prop_ro(
          "finish_reason",
          [](const RequestPtr& self) {
            return finish_name(locked(self, [](RequestHandle& h) { return h.finish_reason(); }));
          },
          nb::sig("def finish_reason(self) -> str | None"), "Why the first sample has ended; None while it goes on.")
      .def_prop_ro(
          "figures", [](const RequestPtr& self) { return figures(self); },
          nb::sig("def figures(self) -> dict[str, float | int | bool | None]"))
      .def(
          "take_session",
          [](const RequestPtr& self, std::uint32_t sample) {
            auto session = locked(self, [&](RequestHandle& h) { return h.take_session(sample); });
            if (!session) {
              raise(ErrorCode::invalid_state,
                    "there is no session to take: the request has not ended, was submitted without keep_session=True, "
                    "or its session was taken already");
            }
            return SessionHandle(std::make_shared<SessionBox>(self->scheduler->engine, *std::move(session)));
          },
          nb::arg("sample") = 0, "Returns the session of a request that has ended (keep_session=True), to go on from.")
      .def("__repr__", [](const RequestPtr& self) {
        return "<tessera.Request " + std::to_string(self->handle.id()) + ", " +
               state_name(locked(self, [](RequestHandle& h) { return h.state(); })) + ">";
      });
}

}  // namespace

void stop_drivers() {
  begin_ending();
  std::list<std::weak_ptr<SchedulerBox>> all;
  {
    const std::scoped_lock lock(live_mutex);
    all.swap(live_schedulers());
  }
  const Unlocked released;
  for (const auto& one : all) {
    if (const auto box = one.lock()) box->close();
  }
  close_ready_queues();
}

void bind_scheduler(nb::module_& m) {
  bind_ready_queue(m);
  bind_request(m);
  nb::class_<SchedulerHandle>(m, "Scheduler", nb::is_weak_referenceable(),
                              R"(Runs many requests on one engine, batched, on a thread of its own.

    with tessera.Scheduler(engine) as scheduler:
        requests = [scheduler.submit(prompt, max_tokens=50) for prompt in prompts]
        for request in requests:
            print(request.read())

A request's tokens are those that it would get alone, whatever runs beside it. policy: "first_come", "priority", "shortest", "deadline", "fair"
(by tenant) or "prefix". max_running: requests at once. max_waiting: more are refused (Busy). max_unread: a request with so many unread pieces
waits for its reader. weights: of tenants. driver=False: no thread; step(), or the reading of a request, drives. Any thread may submit.)")
      .def(
          "__init__",
          [](SchedulerHandle* self, const EngineHandle& engine, const std::string& policy, std::uint32_t max_running,
             std::uint32_t rows, double step_seconds, std::size_t max_waiting, std::size_t max_unread,
             const std::map<std::string, double>& weights, double headroom, bool driver) {
            new (self) SchedulerHandle(make_scheduler(engine, policy, max_running, rows, step_seconds, max_waiting,
                                                      max_unread, weights, headroom, driver));
          },
          nb::arg("engine"), nb::kw_only(), nb::arg("policy") = "first_come", nb::arg("max_running") = 64,
          nb::arg("rows") = 512, nb::arg("step_seconds") = 0.05, nb::arg("max_waiting") = 1024,
          nb::arg("max_unread") = 256, nb::arg("weights") = nb::dict(), nb::arg("headroom") = 0.25,
          nb::arg("driver") = true,
          nb::sig("def __init__(self, engine: Engine, *, policy: str = 'first_come', max_running: int = 64, rows: int "
                  "= 512, step_seconds: float = 0.05, "
                  "max_waiting: int = 1024, max_unread: int = 256, weights: dict[str, float] = {}, headroom: float = "
                  "0.25, driver: bool = True) -> None"))
      .def("submit", &submit, nb::arg("prompt"), nb::kw_only(), nb::arg("sampler") = nb::none(),
           nb::arg("max_tokens") = nb::none(), nb::arg("stop") = nb::none(), nb::arg("stop_tokens") = nb::none(),
           nb::arg("ignore_eos") = false, nb::arg("logprobs") = 0, nb::arg("samples") = 1, nb::arg("priority") = 0,
           nb::arg("deadline") = nb::none(), nb::arg("refuse_if_late") = false, nb::arg("tenant") = "",
           nb::arg("salt") = "", nb::arg("session") = nb::none(), nb::arg("keep_session") = false,
           nb::arg("drafter") = nb::none(), nb::arg("special") = false, nb::arg("show_control") = false,
           nb::arg("on_ready") = nb::none(), nb::arg("ready_queue") = nb::none(), nb::arg("ready_key") = 0,
           nb::sig("def submit(self, prompt: str | collections.abc.Sequence[int], *, sampler: Sampler | None = None, "
                   "max_tokens: int | None = None, "
                   "stop: str | collections.abc.Sequence[str] | None = None, stop_tokens: "
                   "collections.abc.Sequence[int] | None = None, "
                   "ignore_eos: bool = False, logprobs: int = 0, samples: int = 1, priority: int = 0, deadline: float "
                   "| None = None, "
                   "refuse_if_late: bool = False, tenant: str = '', salt: str = '', session: Session | None = None, "
                   "keep_session: bool = False, "
                   "drafter: Drafter | None = None, special: bool = False, show_control: bool = False, "
                   "on_ready: collections.abc.Callable[[], object] | None = None, ready_queue: ReadyQueue | None = "
                   "None, ready_key: int = 0) -> Request"),
           R"(Submits a request; does not wait. Without a sampler it takes the likeliest token.

samples: answers to the prompt, which is computed once. deadline: seconds from now to the last token. session: the session to go on from; the
scheduler takes it. keep_session: Request.take_session() gives the session back at the end. on_ready(): called on the scheduler's thread when there
is something to read, and not again until try_next() has returned None; it must not call the scheduler or the request.)")
      .def(
          "cancel",
          [](const SchedulerHandle& self, std::uint64_t id) {
            take(called(self, [&](Scheduler& s) { return s.cancel(id); }));
          },
          nb::arg("id"), "Cancels a request by its id.")
      .def(
          "step",
          [](const SchedulerHandle& self) {
            refuse_in_callback("Scheduler.step()");
            if (self->driven)
              raise(ErrorCode::invalid_state,
                    "the scheduler has a driver, which calls step(): make it with driver=False to drive it yourself");
            return take(interruptible([&](const std::stop_token&) {
              const std::shared_lock lock(self->mutex);
              return self->scheduler.step();
            }));
          },
          "Computes one step (driver=False). Returns False if there is nothing to do.")
      .def("drain", &drain, nb::kw_only(), nb::arg("wait") = true,
           "Refuses further requests, and waits until those that were submitted have ended.")
      .def(
          "close",
          [](const SchedulerHandle& self) {
            refuse_in_callback("Scheduler.close()"), unlocked([&] { self->close(); });
          },
          "Cancels all requests and ends the scheduler's thread.")
      .def(
          "__enter__", [](nb::handle self) { return self; }, nb::sig("def __enter__(self) -> Scheduler"))
      .def(
          "__exit__",
          [](const SchedulerHandle& self, nb::args) {
            refuse_in_callback("Scheduler.close()"), unlocked([&] { self->close(); });
          },
          nb::sig("def __exit__(self, *args: object) -> None"))
      .def_prop_ro(
          "idle", [](const SchedulerHandle& self) { return called(self, [](Scheduler& s) { return s.idle(); }); },
          "Whether there is no request.")
      .def_prop_ro("closed", [](const SchedulerHandle& self) { return self->closed.load(); })
      .def_prop_ro(
          "expected_wait",
          [](const SchedulerHandle& self) { return called(self, [](Scheduler& s) { return s.expected_wait(); }); },
          "Estimate of the seconds until a request that is submitted now begins.")
      .def_prop_ro(
          "figures", [](const SchedulerHandle& self) { return figures(self); },
          nb::sig("def figures(self) -> dict[str, typing.Any]"),
          "Counts and times since the scheduler was made; times are distributions, in seconds.")
      .def_prop_ro("engine", [](const SchedulerHandle& self) { return EngineHandle(self->engine); })
      .def("__repr__", [](const SchedulerHandle& self) {
        if (self->closed) return std::string("<tessera.Scheduler closed>");
        return "<tessera.Scheduler " +
               std::string(called(self, [](Scheduler& s) { return s.idle(); }) ? "idle" : "busy") + ">";
      });
}

}  // namespace tessera::python
