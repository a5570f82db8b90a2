// The progress of loading a model, for the answers to requests that have waited too long for the model.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>

#include <fmt/format.h>

namespace server {

struct RunningLoad {
  using Time = std::chrono::steady_clock::time_point;

  Time began{};
  double share = 0.0;        // how much of the model is loaded, from 0 to 1
  bool is_promised = false;  // a request was told to come again, so the load goes on without a waiting request

  // Returns whether enough is loaded to estimate the speed.
  [[nodiscard]] bool has_speed() const noexcept { return share > 0.02; }
  // Returns an estimate of the seconds until the model is loaded.
  [[nodiscard]] double seconds_left(Time now) const noexcept {
    const double past = std::chrono::duration<double>(now - began).count();
    return has_speed() ? std::max(past / share - past, 1.0) : 10.0;
  }
  [[nodiscard]] std::string words() const {
    return has_speed() ? fmt::format("{:.0f} % of it is loaded, and the loading goes on", share * 100.0) : "its loading goes on";
  }
};

}  // namespace server
