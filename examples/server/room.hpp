// Chooses the loaded models that have to leave to make room for another model.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace server {

// A loaded model that may have to leave.
struct Resident {
  std::size_t model = 0;     // index of the model
  std::uint64_t bytes = 0;
  bool is_busy = false;      // has requests
  std::chrono::steady_clock::time_point last_use{}, stays_until{};
};

struct Leaving {
  // The models to unload, in this order. Empty: the models that may be unloaded now would not free enough memory.
  std::vector<std::size_t> models{};
  // The earliest stays_until of the models that were passed over because they must stay until then; nullopt: no model was passed over.
  std::optional<std::chrono::steady_clock::time_point> look_again{};
};

// Chooses models to unload, so that at least `needed` bytes become free. Order: first the models without requests, and among them the least
// recently used first; then the models with requests, in the same order. Exception: no model is chosen before its stays_until.
[[nodiscard]] Leaving choose_leaving(std::vector<Resident> residents, std::uint64_t needed, std::chrono::steady_clock::time_point now);

}  // namespace server
