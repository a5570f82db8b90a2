// tessera.Scheduler: serves many requests on one engine. A thread of the library drives it.
#include <chrono>
#include <list>
#include <map>
#include <thread>

#include <nanobind/stl/map.h>

#include "adapters.hpp"
#include "calls.hpp"
#include "ready_queue.hpp"
#include "scheduler.hpp"
#include "types/names.hpp"

namespace tessera::python {

namespace {

// Schedulers that are not closed. The interpreter's end closes them.
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
                  const std::string& tenant, const std::string& salt, const std::optional<AdapterUses>& adapters,
                  const std::optional<SessionHandle>& session,
                  bool keep_session, const std::optional<DrafterHandle>& drafter, bool special, bool show_control,
                  const nb::object& on_ready, const std::optional<ReadyHandle>& ready_queue, std::uint64_t ready_key) {
  refuse_in_callback("Scheduler.submit()");
  auto box = std::make_shared<RequestBox>();
  box->scheduler = self.box();
  box->failure = std::make_shared<Failure>();
  box->samples = samples;
  check_callable(on_ready, "Scheduler.submit()", "on_ready");
  Request request;
  request.generate = generate_options(max_tokens, stop, stop_tokens, ignore_eos, logprobs, show_control);
  request.generate.speculate = speculation(drafter);
  request.samples = samples;
  request.priority = priority;
  if (deadline) request.deadline = *deadline;
  request.if_late = refuse_if_late ? IfLate::refuse : IfLate::run;
  request.tenant = tenant;
  request.session_options.kv.salt = salt;
  if (adapters) request.adapters = adapters->list;
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
    if (sampler) {  // builds the sampler in its first state; its exceptions go to the request
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
                              R"(Runs many requests on one engine, batched, on a thread of its own. Any thread may submit.

    with tessera.Scheduler(engine) as scheduler:
        requests = [scheduler.submit(prompt, max_tokens=50) for prompt in prompts]
        for request in requests:
            print(request.read())

A request gets the tokens that it would get alone, whatever other requests run.

- policy: which request is served first. "first_come": in order of arrival. "priority": by the request's priority, the lowest number first.
  "shortest": the least remaining work. "deadline": the earliest deadline. "fair": the tenant that was served least. "prefix": the largest share of
  tokens in the prefix index.
- max_running: the most requests that are computed at once.
- max_waiting: the most requests that wait. Further ones are refused (Busy).
- max_unread: a request with this many unread pieces is not computed further until its reader reads.
- rows: the most tokens of a step. step_seconds: seconds that a step may take while requests decode.
- weights: the weight of each tenant (policy "fair"); default 1.
- headroom: 0 to 1. KV pages are kept free for this share of the tokens that running requests may still draw.
- driver: False: the scheduler has no thread. Your program calls step(), or reads a request, which also calls it.)")
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
           nb::arg("salt") = "", nb::arg("adapters") = nb::none(), nb::arg("session") = nb::none(), nb::arg("keep_session") = false,
           nb::arg("drafter") = nb::none(), nb::arg("special") = false, nb::arg("show_control") = false,
           nb::arg("on_ready") = nb::none(), nb::arg("ready_queue") = nb::none(), nb::arg("ready_key") = 0,
           nb::sig("def submit(self, prompt: str | collections.abc.Sequence[int], *, sampler: Sampler | None = None, "
                   "max_tokens: int | None = None, "
                   "stop: str | collections.abc.Sequence[str] | None = None, stop_tokens: "
                   "collections.abc.Sequence[int] | None = None, "
                   "ignore_eos: bool = False, logprobs: int = 0, samples: int = 1, priority: int = 0, deadline: float "
                   "| None = None, "
                   "refuse_if_late: bool = False, tenant: str = '', salt: str = '', adapters: Adapter | "
                   "collections.abc.Sequence[Adapter | tuple[Adapter, float] | tuple[Adapter, float, int | None]] | None = None, session: Session | None = None, "
                   "keep_session: bool = False, "
                   "drafter: Drafter | None = None, special: bool = False, show_control: bool = False, "
                   "on_ready: collections.abc.Callable[[], object] | None = None, ready_queue: ReadyQueue | None = "
                   "None, ready_key: int = 0) -> Request"),
           R"(Submits a request and returns at once. Options of Session.generate() have the same meaning here. samples: the number of answers to the
prompt, which is computed once. priority: lower is served first (policy "priority"). deadline: seconds from now to the last token.
refuse_if_late=True: raises TooLate if the request is not expected to end by its deadline. tenant: the user to whom the request belongs. salt:
requests share computed pages only if their salt is the same. adapters: see Adapter; None: those of `session`, or none. session: a session from which
the request goes on; it belongs to the scheduler then, and the object `session` is empty. keep_session=True: at the end Request.take_session() returns
the session. special=True: names of control tokens in the prompt count as these tokens. on_ready(): called on the scheduler's thread when there is
something to read, and not again until try_next() has returned None. It must not call the scheduler or the request.)")
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
          "Computes one step. Returns False if there is nothing to do. Only with driver=False.")
      .def("drain", &drain, nb::kw_only(), nb::arg("wait") = true,
           "Refuses further requests. wait=True: returns when all submitted requests have ended. False: returns at once.")
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
          "True if there is no request.")
      .def_prop_ro("closed", [](const SchedulerHandle& self) { return self->closed.load(); })
      .def_prop_ro(
          "expected_wait",
          [](const SchedulerHandle& self) { return called(self, [](Scheduler& s) { return s.expected_wait(); }); },
          "Estimate of the seconds until a request that is submitted now would begin.")
      .def_prop_ro(
          "figures",
          [](const SchedulerHandle& self) {
            return figures_dict(called(self, [](Scheduler& s) { return s.figures(); }));
          },
          nb::sig("def figures(self) -> dict[str, typing.Any]"),
          R"(A dict of counts and times since the scheduler was made. Numbers of requests: running, waiting (now); submitted, finished, cancelled, failed, late;
refused_busy, refused_size, refused_late. Numbers of preemptions: suspended (the pages were written to the kv_file), recomputed (the pages were freed),
out_of_room (a step found no pages). Numbers of tokens: prompt_tokens, reused_tokens, tokens, recomputed_tokens, drafted, accepted. steps: number of
steps. Distributions of times in seconds: queue, time_to_first_token, inter_token, per_output_token, end_to_end, step, planning. rows: the distribution
of rows in a step. A distribution has count, mean, p50, p90, p95, p99 and max. cost_error: the mean error of the expected times. tenants: weight,
service and requests of each tenant.)")
      .def_prop_ro("engine", [](const SchedulerHandle& self) { return EngineHandle(self->engine); })
      .def("__repr__", [](const SchedulerHandle& self) {
        if (self->closed) return std::string("<tessera.Scheduler closed>");
        return "<tessera.Scheduler " +
               std::string(called(self, [](Scheduler& s) { return s.idle(); }) ? "idle" : "busy") + ">";
      });
}

}  // namespace tessera::python
