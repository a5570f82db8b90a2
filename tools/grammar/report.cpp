#include "report.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace tessera::grammar_tool {

namespace {

struct Times {
  double mean = 0, p50 = 0, p99 = 0, p99_9 = 0, max = 0;
};

Times times_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[std::min(values.size() - 1, static_cast<std::size_t>(share * static_cast<double>(values.size())))];
  };
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {sum / static_cast<double>(values.size()), at(0.5), at(0.99), at(0.999), values.back()};
}

nlohmann::ordered_json json_of(const Times& t) {
  return {{"mean", t.mean}, {"p50", t.p50}, {"p99", t.p99}, {"p99_9", t.p99_9}, {"max", t.max}};
}

}  // namespace

nlohmann::ordered_json Report::json() const {
  nlohmann::ordered_json by_reason = nlohmann::ordered_json::object();
  for (const auto& [reason, n] : reasons) by_reason[reason] = n;
  return {{"files", files},
          {"clean", clean},
          {"wrong_accepts", wrong_accepts},
          {"wrong_rejects", wrong_rejects},
          {"refused", refused},
          {"refused_by_reason", by_reason},
          {"instances", instances},
          {"masks", masks},
          {"mask_us", json_of(times_of(mask_us))},
          {"compile_ms", json_of(times_of(compile_ms))},
          {"wrong", wrong}};
}

void Report::print() const {
  fmt::print("{} files, {} clean ({:.1f} %), {} refused; {} instances: {} wrongly accepted, {} wrongly rejected\n", files,
             clean, files == 0 ? 0.0 : 100.0 * static_cast<double>(clean) / static_cast<double>(files), refused, instances,
             wrong_accepts, wrong_rejects);
  for (const auto& [what, values, unit] : {std::tuple{"mask", &mask_us, "us"}, std::tuple{"compile and first mask", &compile_ms, "ms"}}) {
    const Times t = times_of(*values);
    fmt::print("{}: mean {:.2f}, p50 {:.2f}, p99 {:.2f}, p99.9 {:.2f}, max {:.2f} {}\n", what, t.mean, t.p50, t.p99, t.p99_9, t.max, unit);
  }
  for (const auto& [reason, n] : reasons) fmt::print("  {:4} refused: {}\n", n, reason);
  for (const std::string& file : wrong) fmt::print("  wrong: {}\n", file);
}

}  // namespace tessera::grammar_tool
