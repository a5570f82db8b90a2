#include "room.hpp"

#include <algorithm>
#include <utility>

namespace server {

Leaving choose_leaving(std::vector<Resident> residents, std::uint64_t needed, std::chrono::steady_clock::time_point now) {
  std::ranges::stable_sort(residents, {}, [](const Resident& each) { return std::pair(each.is_busy, each.last_use); });
  std::vector<Resident> chosen;
  std::uint64_t freed = 0;
  Leaving leaving;
  for (const Resident& each : residents) {
    if (freed >= needed) break;
    if (each.stays_until > now) {
      leaving.look_again = leaving.look_again ? std::min(*leaving.look_again, each.stays_until) : each.stays_until;
      continue;
    }
    freed += each.bytes;
    chosen.push_back(each);
  }
  if (freed < needed) return leaving;
  // Takes models out of the choice again if the other chosen models free enough memory.
  for (std::size_t n = chosen.size(); n-- > 0;) {
    if (freed - chosen[n].bytes < needed) continue;
    freed -= chosen[n].bytes;
    chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(n));
  }
  for (const Resident& each : chosen) leaving.models.push_back(each.model);
  return leaving;
}

}  // namespace server
