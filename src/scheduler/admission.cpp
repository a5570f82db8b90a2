// Requests get their sessions, give their pages up, and get them back.
#include <algorithm>

#include "core/error.hpp"
#include "engine/load/kv_setup.hpp"
#include "engine/run/streams.hpp"
#include "engine/session/edit.hpp"
#include "scheduler/scheduler_state.hpp"

namespace tessera {

using detail::Active;
using detail::ActivePtr;
using detail::guard;
using detail::make_error;
using Kind = RequestEvent::Kind;
using Lock = std::unique_lock<std::mutex>;

// A waiting request becomes a running one: it gets a session, or its pages back.
Status Scheduler::State::admit(Active& active, double time) noexcept {
  return guard([&]() -> Status {
    if (!active.decoding) {
      TESSERA_TRY_STATUS(make_session(active));
      tell(Kind::scheduled, active, time);
    } else {
      if (active.session->suspended()) {
        const double begin = steady_seconds();
        TESSERA_TRY_STATUS(active.session->resume());
        learn_file_rate(active.session->kv().bytes(), steady_seconds() - begin);
      } else {
        take_known(active);
      }
      tell(Kind::resumed, active, time);
    }
    active.was_preempted = false;
    active.planned.suspended = false;
    const Lock lock(active.request->mutex);
    active.request->phase = RequestState::running;
    return {};
  });
}

// Of what it gave up, the prefix index may have something still: that need not be computed again.
void Scheduler::State::take_known(Active& active) {
  const std::uint64_t known = active.decoding->reuse_prefix(), lost = std::exchange(active.given_up, 0);
  active.planned.computed = active.session->position();
  const std::uint64_t again = lost - std::min(lost, known);
  {
    const Lock lock(active.request->mutex);
    active.request->figures.recomputed_tokens += again;
  }
  const Lock lock(mutex);
  figures.recomputed_tokens += again;
}

Status Scheduler::State::make_session(Active& active) {
  Request& wanted = active.wanted;
  if (wanted.session) {
    active.session = std::exchange(wanted.session, std::nullopt);
  } else if (!active.session) {
    TESSERA_TRY(active.session, engine.session(wanted.session_options));
  }
  if (!active.sampler) active.sampler = std::exchange(wanted.sampler, std::nullopt);
  auto decoding = std::make_unique<detail::Decoding>(*active.session->state_, *active.sampler, wanted.generate, wanted.prompt);
  TESSERA_TRY_STATUS(decoding->start_drafting(detail::DraftsChosen::by_caller));
  active.decoding = std::move(decoding);  // whole, or none: it is made again then
  const std::uint64_t reused = active.decoding->reuse_prefix();
  PlannedRequest& planned = active.planned;
  active.removed_before = active.session->state_->removed;
  planned.computed = planned.prompt - std::max<std::uint64_t>(active.decoding->rows_wanted(), 1);
  const Lock lock(active.request->mutex);
  active.request->figures.reused_tokens += reused;
  return {};
}

namespace {

bool cannot_be_recomputed(const Active& active, const Session::State& session) noexcept {
  return active.has_earlier_votes || !detail::can_give_pages_up(session);
}

}  // namespace

// The other samples go on from where the prompt is done but for its last token: pages are shared.
void Scheduler::State::fork_samples(std::size_t index) noexcept {
  Active& first = *running[index];
  const std::uint32_t n = std::exchange(first.forks, 0);
  first.planned.expected = std::max<std::uint64_t>(first.planned.expected / (n + 1), 1);
  std::vector<ActivePtr> samples;
  const Status status = guard([&]() -> Status {
    const std::vector<Token> last(first.decoding->rest_of_prompt().begin(), first.decoding->rest_of_prompt().end());
    for (std::uint32_t i = 1; i <= n; ++i) {
      auto sample = std::make_unique<Active>();
      sample->request = first.request;
      sample->sample = i;
      sample->planned = first.planned;
      sample->tenant = first.tenant;
      sample->has_deadline = first.has_deadline;
      sample->probe = first.probe;
      sample->wanted.generate = first.wanted.generate;
      sample->removed_before = first.removed_before;
      sample->passed_bytes = first.passed_bytes;
      TESSERA_TRY(sample->session, first.session->fork());
      TESSERA_TRY(sample->sampler, first.sampler->clone());
      sample->sampler->reseed(first.sampler->seed(), first.sampler->stream() + i);
      sample->decoding = std::make_unique<detail::Decoding>(*sample->session->state_, *sample->sampler, sample->wanted.generate, last);
      TESSERA_TRY_STATUS(sample->decoding->start_drafting(detail::DraftsChosen::by_caller));
      samples.push_back(std::move(sample));
    }
    running.reserve(running.size() + n);
    return {};
  });
  if (!status) {  // the request ends at the next look
    {
      const Lock lock(first.request->mutex);
      first.request->set_error(status.error());
      first.request->samples_left -= n;
    }
    look_again();
    return;
  }
  running.insert(running.begin() + static_cast<std::ptrdiff_t>(index) + 1, std::make_move_iterator(samples.begin()),
                 std::make_move_iterator(samples.end()));
}

// Returns whether the request's pages can be taken and had again with the same bits. Without a file that is: computed again, which ends where tokens
// have been dropped, or are to be dropped before anything else.
bool Scheduler::State::can_give_way(Active& active) noexcept {
  const Session::State& session = *active.session->state_;
  if (session.kv.kind() != KvKind::paged) return false;
  if (!session.shared->options.kv_file.empty()) return true;
  if (cannot_be_recomputed(active, session)) return false;
  // Only what has come since the last look: what was removed meanwhile makes none of the others another one.
  const auto computed = std::span<const Token>(session.tokens).first(session.kv.length());
  std::size_t& plain = active.plain_tokens;
  plain = std::min(plain, computed.size());
  while (plain < computed.size() && computed[plain] >= 0) ++plain;
  return plain == computed.size();
}

// The cheaper of the two: its pages go to the file, or they are given up and computed again.
void Scheduler::State::give_way(Active& active) noexcept {
  give_search_up(active);
  Session::State& session = *active.session->state_;
  const std::uint64_t tokens = session.kv.length(), bytes = session.kv.bytes();
  const auto rows = static_cast<std::uint32_t>(tokens);
  const double again = costs.predict({.rows = rows, .outputs = 1, .keys = tokens * tokens / 2});
  const bool has_file = !shared->options.kv_file.empty();
  const bool must = cannot_be_recomputed(active, session);
  bool suspended = false;
  if (has_file && (must || 2 * static_cast<double>(bytes) / file_rate < again)) {
    suspended = active.session->suspend().has_value();
  }
  if (!suspended && !must) {
    detail::give_pages_up(session);
    active.was_recomputed = true;
    active.planned.computed = 0;
    active.planned.copy_bytes = 0;
    active.planned.drop_bytes = active.passed_bytes;
    active.given_up = tokens;
  }
  active.was_preempted = suspended || !must;
  active.planned.suspended = suspended;
  tell(Kind::preempted, active, now());
  {
    const Lock lock(active.request->mutex);
    active.request->phase = RequestState::waiting;
    ++active.request->figures.preemptions;
  }
  const Lock lock(mutex);
  ++(suspended ? figures.suspended : figures.recomputed);
}

void Scheduler::State::learn_file_rate(std::uint64_t bytes, double seconds) noexcept {
  if (seconds > 0.0 && bytes > 0) file_rate = 0.7 * file_rate + 0.3 * static_cast<double>(bytes) / seconds;
}

// A request whose rows found no pages gives way and waits for some, if others have some, or had in this step; else that is its error.
void Scheduler::State::fail_or_wait(ActivePtr active, const Error& error) noexcept {
  const bool for_pages = error.code() == ErrorCode::cache_full || error.code() == ErrorCode::out_of_memory;
  const bool in_context = !active->session || active->session->tokens().size() + active->wanted.prompt.size() <= active->session->context() ||
                          active->session->position() < active->session->context() || active->session->state_->stream.window != 0;
  const auto has_pages = [](const ActivePtr& one) { return one != nullptr && one->session && one->session->kv().bytes() > 0; };
  const bool others = std::ranges::any_of(running, has_pages) || std::ranges::any_of(held_back, has_pages) ||
                      std::ranges::any_of(waiting.requests(), has_pages) || failed.size() > 1;
  if (!for_pages || !in_context || !others) {
    end(*active, error);
    return;
  }
  {
    const Lock lock(mutex);
    ++figures.out_of_room;
  }
  if (active->planned.budget != 0 && shared->options.kv_file.empty() && active->decoding && !can_give_way(*active)) {
    is_stuck = true;  // the host's own sessions have its pages
    insert_by_order(running, std::move(active));
    return;
  }
  if (active->session && !active->was_preempted && can_give_way(*active)) give_way(*active);
  give_search_up(*active);
  waiting.add(std::move(active));
}

// Seconds until the queue, as it is, has been computed; and of a token.
void Scheduler::State::estimate_wait() noexcept {
  std::uint64_t rows = waiting.rows(), drawing = 0;
  for (const PlannedRequest& one : running_plans) {
    rows += one.needed() > 1 ? one.needed() : 0;
    drawing += one.needed() == 1 ? 1 : 0;
  }
  const auto decoding = static_cast<std::uint32_t>(drawing);
  token_guess = costs.predict({.rows = decoding + 1, .outputs = decoding + 1, .keys = 0});
  const std::uint32_t chunk = options.limits.rows;
  const double row = costs.predict({.rows = chunk, .outputs = 1, .keys = 0}) / chunk;
  predicted_wait = static_cast<double>(rows) * row;
  if (running_now < options.limits.max_running || running_plans.empty()) return;
  // A place has to become free as well.
  std::uint64_t least = UINT64_MAX;
  for (const PlannedRequest& one : running_plans) least = std::min(least, one.remaining());
  predicted_wait += static_cast<double>(least) * token_guess * (1.0 + static_cast<double>(waiting.size()) / static_cast<double>(running_plans.size()));
}

}  // namespace tessera
