// tessera_scheduler: serves many requests on one engine. A thread of the scheduler or the host drives it.
#include "scheduler.hpp"

#include <limits>
#include <string>

#include "values/describe.hpp"
#include "values/tables.hpp"
#include "values/values.hpp"

namespace tessera::c {

namespace {

constexpr std::string_view kBatchings[] = {"continuous", "dynamic", "fixed"};
constexpr std::string_view kPolicies[] = {"first_come",        "by_priority",    "shortest_first",
                                          "earliest_deadline", "fair_by_tenant", "prefix_first"};

struct SchedulerAsked {
  SchedulerOptions options;
  std::size_t policy = 0;
  std::optional<double> aging;
};

constexpr Key<SchedulerAsked> kSchedulerKeys[] = {
    {"policy", "text",
     "who is served next: \"first_come\", \"by_priority\", \"shortest_first\", \"earliest_deadline\", "
     "\"fair_by_tenant\", \"prefix_first\"; default "
     "\"first_come\"",
     [](SchedulerAsked& to, const Value& v) { to.policy = v.choice(kPolicies); }},
    {"aging", "number",
     "how much a second of waiting counts: \"shortest_first\": as this many tokens of work less (default 20); \"prefix_first\": as a "
     "share of reused tokens that is greater by this number (default 0.1); 0: nothing",
     [](SchedulerAsked& to, const Value& v) { to.aging = v.number(0); }},
    {"max_running", "integer", "requests at once, 1 or more; default 64",
     [](SchedulerAsked& to, const Value& v) { to.options.limits.max_running = v.integer<std::uint32_t>(1); }},
    {"max_waiting", "integer", "requests that may wait; more are refused (busy); 0: none waits; default 1024",
     [](SchedulerAsked& to, const Value& v) { to.options.max_waiting = v.integer<std::size_t>(); }},
    {"max_unread", "integer", "a request with this many unread pieces is not computed further; 1 or more; default 256",
     [](SchedulerAsked& to, const Value& v) { to.options.max_unread = v.integer<std::size_t>(1); }},
    {"step_seconds", "number", "seconds that a step may take while requests decode, above 0; default 0.05",
     [](SchedulerAsked& to, const Value& v) { to.options.limits.seconds = v.positive(); }},
    {"step_rows", "integer", "tokens of a step at most, 1 or more; default 512",
     [](SchedulerAsked& to, const Value& v) { to.options.limits.rows = v.integer<std::uint32_t>(1); }},
    {"batching", "\"continuous\", \"dynamic\", \"fixed\"", "when requests join a batch; default \"continuous\"",
     [](SchedulerAsked& to, const Value& v) { to.options.limits.batching = v.one_of<Batching>(kBatchings); }},
    {"max_wait", "number", "dynamic batching: seconds that a request waits for others; default 0.1",
     [](SchedulerAsked& to, const Value& v) { to.options.limits.max_wait = v.number(0); }},
    {"headroom", "number", "share of the tokens still to be drawn for which room is kept, 0 to 1; default 0.25",
     [](SchedulerAsked& to, const Value& v) { to.options.limits.headroom = v.number(0, 1); }},
    {"first_share", "number",
     "share of a step's prompt rows that the first prompt gets even if shorter prompts go before it, above 0 to 1; "
     "default 0.25",
     [](SchedulerAsked& to, const Value& v) { to.options.limits.first_share = v.positive(1); }},
    {"prompt_price", "number", "fair_by_tenant: price of a token of a prompt; 0: free; default 1",
     [](SchedulerAsked& to, const Value& v) { to.options.prices.prompt = v.number(0); }},
    {"output_price", "number", "fair_by_tenant: price of a drawn token; 0: free; default 2",
     [](SchedulerAsked& to, const Value& v) { to.options.prices.output = v.number(0); }},
    {"weights", "object", "weights of tenants, by name, above 0; default 1 each",
     [](SchedulerAsked& to, const Value& v) {
       const Json::Object* members = v.json().members();
       if (members == nullptr) v.refuse("must be an object of weights by tenant: {\"acme\": 2}");
       for (const auto& [name, weight] : *members)
         to.options.weights[name] = Value(weight, v.path() + "." + name).positive();
     }},
};

PolicyPtr policy_of(const SchedulerAsked& asked) {
  switch (asked.policy) {
    case 1:
      return by_priority();
    case 2:
      return asked.aging ? shortest_first(*asked.aging) : shortest_first();
    case 3:
      return earliest_deadline();
    case 4:
      return fair_by_tenant();
    case 5:
      return asked.aging ? prefix_first(*asked.aging) : prefix_first();
    default:
      return first_come();
  }
}

SchedulerOptions options_of(const tessera_scheduler_options& given, const SharedDrop& drop) {
  SchedulerAsked asked;
  read_options<SchedulerAsked>(given.json, given.json_size, "options.json", kSchedulerKeys, asked);
  if (asked.aging && asked.policy != 2 && asked.policy != 5) {
    fail(ErrorCode::invalid_argument, "is for the policies \"shortest_first\" and \"prefix_first\"", "aging");
  }
  asked.options.policy = policy_of(asked);
  if (given.clock != nullptr)
    asked.options.clock = [clock = given.clock, user = given.user, drop] { return clock(user); };
  if (given.on_event != nullptr) {
    asked.options.on_event = [on_event = given.on_event, user = given.user, drop](const RequestEvent& event) {
      const InCallback scope;
      on_event(user, static_cast<std::int32_t>(event.kind), event.request, event.time);
    };
  }
  return std::move(asked.options);
}

}  // namespace

thread_local int InCallback::depth_ = 0;

void InCallback::refuse(std::string_view function) {
  if (depth_ == 0) return;
  fail(ErrorCode::invalid_state,
       "was called from on_event or on_ready, which may not call the scheduler: wake another thread, and call it there",
       function);
}

std::vector<Table> scheduler_tables() {
  std::vector<Table> tables{table_of<SchedulerAsked>("Scheduler", kSchedulerKeys)};
  for (Table& table : request_tables()) tables.push_back(std::move(table));
  return tables;
}

}  // namespace tessera::c

using namespace tessera::c;

int32_t tessera_scheduler_create(const tessera_engine* engine, const tessera_scheduler_options* options,
                                 tessera_scheduler** scheduler, tessera_error** error) {
  return call(error, [&] {
    clear(scheduler);
    const auto given = read_struct(options, "options");
    const SharedDrop drop = share({given.user, given.drop});
    tessera_scheduler*& made = out(scheduler, "scheduler");
    const EngineStatePtr& state = need(engine, "engine").state;
    made = new tessera_scheduler(state, must(tessera::Scheduler::create(state->engine, options_of(given, drop))));
  });
}

int32_t tessera_scheduler_cancel(tessera_scheduler* scheduler, uint64_t id, tessera_error** error) {
  return call(error, [&] { must(need(scheduler, "scheduler").scheduler.cancel(id)); });
}

int32_t tessera_scheduler_figures(const tessera_scheduler* scheduler, tessera_text** json, tessera_error** error) {
  return call(error, [&] {
    tessera_text*& made = out(json, "json");
    const tessera::Scheduler& of = need(scheduler, "scheduler").scheduler;
    tessera::Json described = describe(of.figures());
    described.set("idle", of.idle());
    described.set("expected_wait", real(of.expected_wait()));
    made = new_text(described.dump());
  });
}

void tessera_scheduler_drain(tessera_scheduler* scheduler) {
  if (is_a(scheduler) != nullptr) scheduler->scheduler.drain();
}

int32_t tessera_scheduler_start(tessera_scheduler* scheduler, tessera_error** error) {
  return call(error, [&] {
    tessera_scheduler& of = need(scheduler, "scheduler");
    InCallback::refuse("tessera_scheduler_start()");
    if (of.driver) fail(tessera::ErrorCode::invalid_state, "it was started already", "scheduler");
    of.driver = must(tessera::Driver::start(of.scheduler));
  });
}

int32_t tessera_scheduler_stop(tessera_scheduler* scheduler, tessera_error** error) {
  return call(error, [&] {
    tessera_scheduler& of = need(scheduler, "scheduler");
    InCallback::refuse("tessera_scheduler_stop()");
    if (!of.driver)
      fail(tessera::ErrorCode::invalid_state, "it was not started: tessera_scheduler_start()", "scheduler");
    of.driver.reset();
  });
}

int32_t tessera_scheduler_wait_until_idle(tessera_scheduler* scheduler, tessera_error** error) {
  return call(error, [&] {
    tessera_scheduler& of = need(scheduler, "scheduler");
    InCallback::refuse("tessera_scheduler_wait_until_idle()");
    if (!of.driver)
      fail(tessera::ErrorCode::invalid_state, "it was not started: tessera_scheduler_start()", "scheduler");
    must(of.driver->wait_until_idle());
  });
}

int32_t tessera_scheduler_step(tessera_scheduler* scheduler, int32_t* worked, tessera_error** error) {
  return call(error, [&] {
    int32_t& result = out(worked, "worked");
    tessera_scheduler& of = need(scheduler, "scheduler");
    InCallback::refuse("tessera_scheduler_step()");
    result = must(of.scheduler.step()) ? 1 : 0;
  });
}

double tessera_scheduler_wake_time(const tessera_scheduler* scheduler) {
  return is_a(scheduler) != nullptr ? scheduler->scheduler.wake_time() : std::numeric_limits<double>::infinity();
}

void tessera_scheduler_free(tessera_scheduler* scheduler) { free_handle(scheduler); }
