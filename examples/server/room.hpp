// Which loaded models have to leave, so that another one has room.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace server {

// A loaded model that may have to leave.
struct Resident {
  std::size_t model = 0;     // its index
  std::uint64_t bytes = 0;
  bool is_busy = false;      // has requests
  std::chrono::steady_clock::time_point last_use{}, stays_until{};
};

struct Leaving {
  std::vector<std::size_t> models{};  // in the order in which they should leave; empty: it cannot be decided yet
  std::optional<std::chrono::steady_clock::time_point> look_again{};  // when a further model may leave
};

// Chooses models of at least `needed` bytes together: those without requests first, and of these the one that was used the longest time
// ago. A model does not leave before stays_until.
[[nodiscard]] Leaving choose_leaving(std::vector<Resident> residents, std::uint64_t needed, std::chrono::steady_clock::time_point now);

}  // namespace server
