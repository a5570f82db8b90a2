// RequestHandle: a request as its caller sees it.
#include <thread>
#include <utility>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "scheduler/scheduler_state.hpp"

namespace tessera {

using Lock = std::unique_lock<std::mutex>;

void RequestHandle::State::WakeScheduler::operator()() const noexcept { scheduler->inbox.wake(); }

RequestHandle::RequestHandle(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
RequestHandle::RequestHandle() noexcept = default;
RequestHandle::RequestHandle(RequestHandle&&) noexcept = default;
RequestHandle& RequestHandle::operator=(RequestHandle&& other) noexcept {
  if (this != &other) {
    if (state_ != nullptr) cancel();
    state_ = std::move(other.state_);
  }
  return *this;
}
RequestHandle::~RequestHandle() {
  if (state_ != nullptr) cancel();
}

std::optional<RequestPiece> RequestHandle::try_next() noexcept {
  if (state_ == nullptr) return std::nullopt;
  std::optional<RequestPiece> next;
  bool was_full = false;
  {
    const Lock lock(state_->mutex);
    if (!state_->unread.empty()) {
      was_full = state_->unread.size() >= state_->max_unread;
      next.emplace(std::move(state_->unread.front()));
      state_->unread.pop_front();
    } else {
      state_->awaits_news = true;
    }
  }
  if (was_full) state_->scheduler->inbox.wake();
  return next;
}

// Limit of consecutive failed steps, after which next() returns instead of trying again.
constexpr std::uint32_t kMostFailedSteps = 64;

std::optional<RequestPiece> RequestHandle::next(std::chrono::nanoseconds timeout) noexcept {
  using Clock = std::chrono::steady_clock;
  if (state_ != nullptr) {
    const Lock lock(state_->mutex);
    if (std::exchange(state_->not_driven, {})) state_->failed_steps = 0;
  }
  const auto begin = Clock::now();
  const bool for_ever = timeout == std::chrono::nanoseconds::max();
  for (;;) {
    if (auto piece = try_next()) return piece;
    if (state_ == nullptr) return std::nullopt;
    const auto spent = Clock::now() - begin;
    if (!for_ever && spent >= timeout) return std::nullopt;
    const bool driven = state_->scheduler->inbox.has_driver();
    {
      Lock lock(state_->mutex);
      if (!state_->unread.empty()) continue;  // a piece has arrived since try_next()
      if (state_->waits_for_nobody()) return std::nullopt;
      if (driven) {
        // A driver makes the steps. Waits only in short slices: if the driver stops meanwhile, this call must make the steps itself.
        const auto slice = std::chrono::milliseconds(100);
        state_->changed.wait_for(lock, for_ever || timeout - spent > slice ? slice : timeout - spent,
                                 [&] { return !state_->unread.empty() || state_->waits_for_nobody(); });
        continue;
      }
    }
    const Result<bool> more = detail::guard([&] { return state_->scheduler->step(); });
    state_->failed_steps = more ? 0 : state_->failed_steps + 1;
    if (more && *more) continue;
    if (auto piece = try_next()) return piece;
    const bool may_wake = !more || state_->scheduler->inbox.outlook().wake_time < std::numeric_limits<double>::infinity();
    {
      const Lock lock(state_->mutex);
      if (state_->waits_for_nobody()) continue;
      if (!more && state_->failed_steps >= kMostFailedSteps) {
        state_->not_driven = more.error();
        return std::nullopt;
      }
      if (!may_wake) return std::nullopt;  // no step can bring a piece until another request is read or resumed
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the next step looks again whether pages are free, or a batch is complete
  }
}

Status RequestHandle::status() const noexcept {
  return detail::guard([&]() -> Status {
    if (state_ == nullptr) return detail::empty_handle("RequestHandle");
    const Lock lock(state_->mutex);
    if (state_->error) return *state_->error;
    return state_->not_driven ? Status(*state_->not_driven) : Status();
  });
}

Status RequestHandle::drive_status() const noexcept {
  return detail::guard([&]() -> Status {
    if (state_ == nullptr) return detail::empty_handle("RequestHandle");
    const Lock lock(state_->mutex);
    return state_->not_driven ? Status(*state_->not_driven) : Status();
  });
}

void RequestHandle::cancel() noexcept {
  if (state_ == nullptr) return;
  {
    const Lock lock(state_->mutex);
    if (state_->phase == RequestState::ended) return;
    state_->is_cancelled = true;
  }
  state_->scheduler->inbox.wake();
}

void RequestHandle::pause() noexcept {
  if (state_ == nullptr) return;
  {
    const Lock lock(state_->mutex);
    state_->is_paused = true;
    state_->changed.notify_all();
  }
  state_->scheduler->inbox.look_again();
}

void RequestHandle::resume() noexcept {
  if (state_ == nullptr) return;
  {
    const Lock lock(state_->mutex);
    state_->is_paused = false;
  }
  state_->scheduler->inbox.wake();
}

std::uint64_t RequestHandle::id() const noexcept { return state_ == nullptr ? 0 : state_->id; }
RequestState RequestHandle::state() const noexcept {
  if (state_ == nullptr) return RequestState::ended;
  const Lock lock(state_->mutex);
  return state_->is_paused && state_->phase != RequestState::ended ? RequestState::paused : state_->phase;
}
FinishReason RequestHandle::finish_reason(std::uint32_t sample) const noexcept {
  if (state_ == nullptr) return FinishReason::none;
  const Lock lock(state_->mutex);
  if (sample >= state_->samples.size()) return FinishReason::error;
  const FinishReason finish = state_->samples[sample].finish;
  if (finish != FinishReason::none || !state_->error) return finish;
  return state_->error->code() == ErrorCode::cancelled ? FinishReason::cancelled : FinishReason::error;
}
RequestFigures RequestHandle::figures() const noexcept {
  if (state_ == nullptr) return {};
  const Lock lock(state_->mutex);
  return state_->figures;
}

std::vector<Beam> RequestHandle::take_beams() noexcept {
  if (state_ == nullptr) return {};
  const Lock lock(state_->mutex);
  return state_->phase == RequestState::ended ? std::exchange(state_->beams, {}) : std::vector<Beam>();
}

std::optional<Session> RequestHandle::take_session(std::uint32_t sample) noexcept {
  if (state_ == nullptr) return std::nullopt;
  const Lock lock(state_->mutex);
  if (state_->phase != RequestState::ended || sample >= state_->samples.size()) return std::nullopt;
  return std::exchange(state_->samples[sample].session, std::nullopt);
}

}  // namespace tessera
