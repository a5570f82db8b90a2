// Submitting, and what else any thread may ask of a scheduler.
#include <tessera/scheduler/scheduler.hpp>

#include <chrono>
#include <cmath>
#include <limits>

#include <tessera/sampling/chain.hpp>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "engine/load/kv_setup.hpp"
#include "scheduler/scheduler_state.hpp"

namespace tessera {

using detail::guard;
using detail::make_error;
using Lock = std::unique_lock<std::mutex>;

namespace {

constexpr std::uint32_t kMostSamples = 1024;

PageCost page_cost_of(const Engine::State& engine) {
  const KvOptions options = detail::resolve({}, engine.options.kv);
  const auto layout = detail::kv_layout(engine.model.spec, options);
  if (!layout || options.kind != KvKind::paged) return {};
  PageCost cost{.page_tokens = layout->page_tokens, .groups = {}};
  for (const KvGroup& group : layout->groups) {
    // A sequence holds as many states as pages of a short window: the live one, the step's, and its checkpoints.
    const std::uint64_t states = (std::uint64_t{options.checkpoints} + 2) * layout->page_tokens;
    cost.groups.push_back({.page_bytes = group.page_bytes, .window = group.is_recurrent() ? states : group.window});
  }
  return cost;
}

}  // namespace

double Scheduler::State::now() const noexcept {
  if (!options.clock) return steady_seconds();
  call("SchedulerOptions::clock", [this] { last_time = options.clock(); });
  return last_time;
}

void Scheduler::State::note_failed_callback(const Error& error) const noexcept {
  (void)guard([&]() -> Status {
    const Lock lock(callback_mutex);
    if (!failed_callback) failed_callback = error;
    return {};
  });
}

double Scheduler::State::steady_seconds() noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Scheduler::State::State(Engine of, std::shared_ptr<const Engine::State> internals, SchedulerOptions how)
    : engine(std::move(of)), shared(std::move(internals)), options(std::move(how)), page_cost(page_cost_of(*shared)),
      costs_guess(options.costs), costs(options.costs), tenants(options.prices) {
  for (const auto& [name, weight] : options.weights) tenants.set_weight(name, weight);
  if (options.on_kv_event) kv_watch = std::make_unique<detail::KvWatch>(*shared->kv_pools);
}

void Scheduler::State::wake() noexcept {
  look_again();
  {
    const Lock lock(mutex);
    has_news = true;
  }
  changed.notify_all();
}

std::uint64_t Scheduler::State::context_of(const Request& request) const noexcept {
  if (request.session) return request.session->context();
  return request.session_options.context != 0 ? request.session_options.context : shared->plan.context;
}

Status Scheduler::State::check(const Request& request) const {
  if (request.session && request.session->context() == 0) return detail::empty_handle("Session");
  const ModelSpec& spec = shared->model.spec;
  for (const Token token : request.prompt) {
    if (token < 0 || static_cast<std::uint32_t>(token) >= spec.vocab_size) {
      return make_error(ErrorCode::invalid_argument, "token {} is not in the vocabulary of {}", token, spec.vocab_size);
    }
  }
  if (request.session) {
    if (request.session->state_ == nullptr) return detail::empty_handle("Session");
    const detail::Changing use(*request.session->state_->use);  // a Generation has it, or another thread
    TESSERA_TRY_STATUS(use.status());
  }
  const std::size_t before = request.session ? request.session->tokens().size() : 0;
  if (before + request.prompt.size() == 0) {
    return make_error(ErrorCode::invalid_argument, "the prompt is empty, and so is the session: there is nothing to go on from");
  }
  if (request.session && &request.session->engine().plan() != &engine.plan()) {
    return make_error(ErrorCode::invalid_argument, "the request's session belongs to another engine");
  }
  if (request.samples == 0 || request.samples > kMostSamples) {
    return make_error(ErrorCode::invalid_argument, "{} samples; a request has 1 to {}", request.samples, kMostSamples);
  }
  if (!(request.deadline > 0.0)) {
    return make_error(ErrorCode::invalid_argument, "a deadline of {} seconds from now; give a positive number", request.deadline);
  }
  if (!request.adapter.empty()) {
    return make_error(ErrorCode::unsupported, "adapter \"{}\": a request's adapter is not supported yet; leave it empty", request.adapter);
  }
  if (request.sampler) TESSERA_TRY_STATUS(detail::check_sampler(*request.sampler, *shared));
  TESSERA_TRY_STATUS(detail::TextState::check(request.generate));
  const std::uint64_t context = context_of(request);
  if (!request.session && context > shared->plan.context) {
    return make_error(ErrorCode::invalid_argument,
                      "session_options ask for a context of {} tokens, and the engine's is {}: ask for less, or load the engine with a "
                      "larger context",
                      context, shared->plan.context);
  }
  if (before + request.prompt.size() >= context) {
    return make_error(ErrorCode::invalid_argument,
                      "a prompt of {} tokens leaves no room for an answer in a context of {}; shorten it, or give the engine a "
                      "larger context",
                      before + request.prompt.size(), context);
  }
  return request.beams ? check_beams(request, before + request.prompt.size(), context) : Status();
}

Result<std::shared_ptr<RequestHandle::State>> Scheduler::State::submit(Request request) {
  TESSERA_TRY_STATUS(check(request));
  auto active = std::make_unique<detail::Active>();
  auto handle = std::make_shared<RequestHandle::State>();
  const std::uint64_t before = request.session ? request.session->tokens().size() : 0;
  PlannedRequest& planned = active->planned;
  if (request.beams) {
    planned.beams = request.beams->beams;
    request.generate.max_tokens = request.beams->max_tokens;
    request.generate.stop = request.beams->stop;
  }
  planned.prompt = before + request.prompt.size();
  if (request.session) {
    planned.computed = std::min<std::uint64_t>(request.session->position(), planned.prompt - 1);
    planned.suspended = request.session->suspended();
  }
  const std::uint64_t room_left = context_of(request) - planned.prompt, wanted = request.generate.max_tokens;
  plan_drops(*active, request, wanted == 0 ? UINT64_MAX / 4 : wanted);
  const std::uint64_t most = wanted == 0 ? room_left : planned.budget != 0 ? wanted : std::min(wanted, room_left);
  planned.expected = std::max<std::uint64_t>(most, 1) * request.samples;
  planned.priority = request.priority;

  const PageRoom pages = room();
  const std::uint64_t need = std::max(bytes_to_admit(planned, pages.cost, options.limits.headroom), sequence_bytes(planned, pages.cost, planned.prompt + 1));
  const std::uint64_t budget = shared->options.kv_budget;
  if (budget != 0 && need > budget) {
    const Lock lock(mutex);
    ++figures.refused_size;
    return make_error(ErrorCode::invalid_argument,
                      "a prompt of {} tokens and {} tokens to draw need {} bytes of KV pages, of a budget of {}: it can never "
                      "run. Shorten it, or give the engine a larger KV budget",
                      planned.prompt, planned.expected, need, budget);
  }
  handle->scheduler = shared_from_this();
  handle->max_unread = std::max<std::size_t>(options.max_unread, 1);
  handle->on_piece = std::move(request.on_piece);
  handle->on_ready = std::move(request.on_ready);
  handle->tells_progress = request.tells_progress;
  handle->samples.resize(request.samples);
  handle->samples_left = request.samples;
  handle->keeps_sessions = request.session_at_end == SessionAtEnd::keep;
  if (!request.sampler) {
    request.sampler = sampling::chain().greedy().build();
    if (!request.sampler->status()) return detail::out_of_memory_error();  // nothing else can be wrong with it
  }
  active->request = handle;
  active->forks = request.samples - 1;
  active->has_deadline = std::isfinite(request.deadline);
  if (request.generate.stop.stop_possible()) handle->on_stop.emplace(request.generate.stop, RequestHandle::State::WakeScheduler{this});

  const double time = now();
  const Lock lock(mutex);
  if (is_draining || is_closed) return make_error(ErrorCode::invalid_state, "the scheduler is draining: it takes no more requests");
  // Where nobody had to wait, the next step has a place for so many of those who have come since.
  const std::size_t places = waiting_now == 0 && options.limits.max_running > running_now ? options.limits.max_running - running_now : 0;
  const std::size_t before_it = waiting_now + inbox.size();
  if (before_it >= places && before_it - places >= options.max_waiting) {
    ++figures.refused_busy;
    return make_error(ErrorCode::busy, "{} requests wait already; try again in about {:.1f} s", before_it - places,
                      std::max(predicted_wait, 0.1));
  }
  if (active->has_deadline && request.if_late == IfLate::refuse) {
    const double takes = predicted_wait + costs_guess.predict({.rows = static_cast<std::uint32_t>(planned.prompt), .outputs = 1}) +
                         static_cast<double>(planned.expected) * token_guess;
    if (takes > request.deadline) {
      ++figures.refused_late;
      return make_error(ErrorCode::too_late, "it would take about {:.1f} s, and its deadline is {:.1f} s from now", takes,
                        request.deadline);
    }
  }
  planned.id = planned.order = submitted;
  planned.submitted = time;
  planned.deadline = time + request.deadline;
  handle->id = planned.id;
  handle->figures.submitted = time;
  handle->figures.prompt_tokens = planned.prompt - before;
  active->wanted = std::move(request);
  inbox.push_back(std::move(active));  // nothing fails from here on
  ++submitted;
  ++figures.submitted;
  has_news = true;
  return handle;
}

Result<Scheduler> Scheduler::create(const Engine& engine, const SchedulerOptions& options) noexcept {
  return guard([&]() -> Result<Scheduler> {
    if (engine.state_ == nullptr) return detail::empty_handle("Engine");
    SchedulerOptions how = options;
    if (how.policy == nullptr) how.policy = first_come();
    how.limits.rows = std::min(how.limits.rows, engine.state_->options.step_rows);
    if (how.limits.rows == 0 || how.limits.max_running == 0 || !(how.limits.seconds > 0.0) ||
        !(how.limits.headroom >= 0.0 && how.limits.headroom <= 1.0) || !(how.limits.first_share > 0.0 && how.limits.first_share <= 1.0)) {
      return make_error(ErrorCode::invalid_argument,
                        "a step of {} rows and {} seconds, {} requests at once, a headroom of {}, a first share of {}: all but the "
                        "headroom are above zero, the last two at most 1",
                        how.limits.rows, how.limits.seconds, how.limits.max_running, how.limits.headroom, how.limits.first_share);
    }
    for (const auto& [name, weight] : how.weights) {
      if (!(weight > 0.0) || !std::isfinite(weight)) {
        return make_error(ErrorCode::invalid_argument, "tenant \"{}\" has a weight of {}; it must be positive", name, weight);
      }
    }
    return Scheduler(std::make_shared<State>(engine, engine.state_, std::move(how)));
  });
}

Scheduler::Scheduler() noexcept = default;
Scheduler::Scheduler(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
Scheduler::Scheduler(Scheduler&& other) noexcept : state_(std::move(other.state_)), owns_(std::exchange(other.owns_, false)) {}
Scheduler& Scheduler::operator=(Scheduler&& other) noexcept {
  if (this != &other) {
    if (owns_ && state_ != nullptr) state_->close();
    state_ = std::move(other.state_);
    owns_ = std::exchange(other.owns_, false);
  }
  return *this;
}
Scheduler::~Scheduler() {
  if (owns_ && state_ != nullptr) state_->close();
}

Result<RequestHandle> Scheduler::submit(Request request) noexcept {
  return guard([&]() -> Result<RequestHandle> {
    if (state_ == nullptr) return detail::empty_handle("Scheduler");
    auto handle = state_->submit(std::move(request));
    const auto tell = [this](const RequestEvent& event) {
      if (state_->options.on_event) state_->call("SchedulerOptions::on_event", [&] { state_->options.on_event(event); });
    };
    if (!handle) {
      tell({.kind = RequestEvent::Kind::refused, .request = 0, .time = state_->now()});
      return std::move(handle).error();
    }
    state_->changed.notify_all();
    tell({.kind = RequestEvent::Kind::queued, .request = (*handle)->id, .time = state_->now()});
    return RequestHandle(*std::move(handle));
  });
}

Result<bool> Scheduler::step() noexcept {
  return guard([&]() -> Result<bool> {
    if (state_ == nullptr) return detail::empty_handle("Scheduler");
    return state_->step();
  });
}

double Scheduler::wake_time() const noexcept {
  if (state_ == nullptr) return std::numeric_limits<double>::infinity();
  const Lock lock(state_->mutex);
  return state_->wake_time;
}

Status Scheduler::between_steps(const std::function<void()>& work) noexcept {
  return guard([&]() -> Status {
    if (state_ == nullptr) return detail::empty_handle("Scheduler");
    const detail::Turn turn(state_->turns, {});
    detail::call_host("Scheduler::between_steps: work", [&] { work(); });
    return {};
  });
}

Status Scheduler::cancel(std::uint64_t request) noexcept {
  return guard([&]() -> Status {
    if (state_ == nullptr) return detail::empty_handle("Scheduler");
    {
      const Lock lock(state_->mutex);
      state_->cancelled.push_back(request);
    }
    state_->wake();
    return {};
  });
}

void Scheduler::drain() noexcept {
  if (state_ == nullptr) return;
  const Lock lock(state_->mutex);
  state_->is_draining = true;
}

bool Scheduler::idle() const noexcept {
  if (state_ == nullptr) return true;
  const Lock lock(state_->mutex);
  return state_->inbox.empty() && state_->waiting_now == 0 && state_->running_now == 0;
}

double Scheduler::expected_wait() const noexcept {
  if (state_ == nullptr) return 0.0;
  const Lock lock(state_->mutex);
  return state_->predicted_wait;
}

SchedulerFigures Scheduler::figures() const noexcept {
  if (state_ == nullptr) return {};
  SchedulerFigures figures;
  {
    const Lock lock(state_->mutex);
    figures = state_->figures;  // whose tenants are empty
    figures.running = state_->running_now;
    figures.waiting = state_->waiting_now + state_->inbox.size();
  }
  (void)guard([&]() -> Status {
    const Lock lock(state_->tenants_mutex);
    return figures.tenants = state_->tenants.all(), Status();
  });
  return figures;
}

const Engine& Scheduler::engine() const noexcept { return state_ == nullptr ? detail::empty_value<Engine>() : state_->engine; }

}  // namespace tessera
