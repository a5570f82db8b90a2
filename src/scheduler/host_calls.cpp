#include "scheduler/host_calls.hpp"

#include <chrono>

namespace tessera::detail {

double HostCalls::now() noexcept {
  if (!clock_) return steady_seconds();
  call("SchedulerOptions::clock", [this] { last_time_ = clock_(); });
  return last_time_;
}

double HostCalls::steady_seconds() noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void HostCalls::note(const Error& error) noexcept {
  (void)guard([&]() -> Status {
    failed_.with([&](std::optional<Error>& first) {
      if (!first) first = error;
    });
    return {};
  });
}

std::optional<Error> HostCalls::take_error() noexcept {
  return failed_.with([](std::optional<Error>& first) { return std::exchange(first, std::nullopt); });
}

}  // namespace tessera::detail
