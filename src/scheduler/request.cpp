// The handle's side of a request.
#include <thread>
#include <utility>

#include "scheduler/scheduler_state.hpp"
#include "support/empty.hpp"
#include "support/error.hpp"

namespace tessera {

using Lock = std::unique_lock<std::mutex>;

void RequestHandle::State::WakeScheduler::operator()() const noexcept { scheduler->wake(); }

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

std::optional<Result<RequestPiece>> RequestHandle::try_next() noexcept {
  if (state_ == nullptr) return Result<RequestPiece>(detail::empty_handle("RequestHandle"));
  std::optional<Result<RequestPiece>> next;
  bool was_full = false;
  {
    const Lock lock(state_->mutex);
    if (!state_->unread.empty()) {
      was_full = state_->unread.size() >= state_->max_unread;
      next.emplace(std::move(state_->unread.front()));
      state_->unread.pop_front();
    } else if (state_->error) {
      next.emplace(*std::move(state_->error));
      state_->error.reset();
    } else {
      state_->awaits_news = true;
    }
  }
  if (was_full) state_->scheduler->wake();
  return next;
}

std::optional<Result<RequestPiece>> RequestHandle::next(std::chrono::nanoseconds timeout) noexcept {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const bool for_ever = timeout == std::chrono::nanoseconds::max();
  for (;;) {
    if (auto piece = try_next()) return piece;
    if (state_ == nullptr) return std::nullopt;
    const auto spent = Clock::now() - begin;
    if (!for_ever && spent >= timeout) return std::nullopt;
    bool driven = false;
    {
      const Lock lock(state_->scheduler->mutex);
      driven = state_->scheduler->drivers > 0;
    }
    if (driven) {
      Lock lock(state_->mutex);
      const auto there_is = [&] {
        return !state_->unread.empty() || state_->error || state_->phase == RequestState::ended;
      };
      if (state_->phase == RequestState::ended && state_->unread.empty() && !state_->error) return std::nullopt;
      // In slices: a driver may be stopped meanwhile, and then this call drives.
      const auto slice = std::chrono::milliseconds(100);
      state_->changed.wait_for(lock, for_ever || timeout - spent > slice ? slice : timeout - spent, there_is);
      continue;
    }
    {
      const Lock lock(state_->mutex);
      if (state_->phase == RequestState::ended && state_->unread.empty() && !state_->error) return std::nullopt;
    }
    const Result<bool> more = detail::guard([&] { return state_->scheduler->step(); });
    if (more && *more) continue;
    if (auto piece = try_next()) return piece;
    bool may_wake = false;
    {
      const Lock lock(state_->scheduler->mutex);
      may_wake = !more || state_->scheduler->wake_time < std::numeric_limits<double>::infinity();
    }
    {
      const Lock lock(state_->mutex);
      if (state_->phase == RequestState::ended) continue;
      // Only resume(), or a reader of another request, brings more.
      if (state_->is_paused || !may_wake) return std::nullopt;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // until pages are free, or a batch is complete
  }
}

void RequestHandle::cancel() noexcept {
  if (state_ == nullptr) return;
  {
    const Lock lock(state_->mutex);
    if (state_->phase == RequestState::ended) return;
    state_->is_cancelled = true;
  }
  state_->scheduler->wake();
}

void RequestHandle::pause() noexcept {
  if (state_ == nullptr) return;
  {
    const Lock lock(state_->mutex);
    state_->is_paused = true;
  }
  state_->scheduler->look_again();
}

void RequestHandle::resume() noexcept {
  if (state_ == nullptr) return;
  {
    const Lock lock(state_->mutex);
    state_->is_paused = false;
  }
  state_->scheduler->wake();
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
  return sample < state_->samples.size() ? state_->samples[sample].finish : FinishReason::none;
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
