#include "serving/serving_figures.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tessera::tool {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMilli = 1e3, kMicro = 1e6;

double share(std::uint64_t part, std::uint64_t whole) noexcept {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Returns the time as text: "12.3 ms", "4.56 s".
std::string time_text(double seconds) {
  if (seconds < 1.0) return fmt::format("{:.{}f} ms", seconds * 1e3, seconds < 0.1 ? 1 : 0);
  return fmt::format("{:.{}f} s", seconds, seconds < 10 ? 2 : seconds < 100 ? 1 : 0);
}

// Returns a run's name for the first column of a table: "continuous  fcfs     ".
std::string name_text(const ServingFigures& f) { return fmt::format("{:<11} {:<9}", f.batching, f.policy); }

}  // namespace

void ServingFigures::add_finished(double waited, double first, double all, std::uint64_t tokens) noexcept {
  ++finished;
  queue.add(waited);
  ttft.add(first);
  e2e.add(all);
  const double each = tokens > 1 ? (all - first) / static_cast<double>(tokens - 1) : 0.0;
  if (tokens > 1) tpot.add(each);
  if (first <= level.ttft && each <= level.tpot) ++well_served;
}

void ServingFigures::merge(const ServingFigures& other) noexcept {
  for (const auto histogram : {&ServingFigures::ttft, &ServingFigures::itl, &ServingFigures::tpot, &ServingFigures::e2e,
                               &ServingFigures::queue, &ServingFigures::step, &ServingFigures::scheduler,
                               &ServingFigures::batch}) {
    (this->*histogram).merge(other.*histogram);
  }
  for (const auto count : {&ServingFigures::requests, &ServingFigures::finished, &ServingFigures::refused,
                           &ServingFigures::preempted, &ServingFigures::prompt_tokens, &ServingFigures::output_tokens,
                           &ServingFigures::prefix_tokens, &ServingFigures::recomputed_tokens,
                           &ServingFigures::well_served, &ServingFigures::missed}) {
    this->*count += other.*count;
  }
  seconds = std::max(seconds, other.seconds);
}

double ServingFigures::tokens_per_second() const noexcept {
  return seconds > 0 ? static_cast<double>(output_tokens) / seconds : 0.0;
}
double ServingFigures::goodput() const noexcept { return seconds > 0 ? static_cast<double>(well_served) / seconds : 0.0; }
double ServingFigures::prefix_hit() const noexcept { return share(prefix_tokens, prompt_tokens); }

Json to_json(const ServingFigures& f) {
  Json out = {{"test", f.test},
              {"batching", f.batching},
              {"policy", f.policy},
              {"requests", f.requests},
              {"tokens_per_s", f.tokens_per_second()}};
  for (const ServingTime& time : kServingTimes) {
    const Histogram& of = f.*time.of;
    out[time.key] = {{"p50", of.percentile(0.5) * kMilli},
                     {"p95", of.percentile(0.95) * kMilli},
                     {"p99", of.percentile(0.99) * kMilli},
                     {"max", of.max() * kMilli}};
  }
  out.update({{"goodput", f.goodput()},
              {"prefix_hit", f.prefix_hit()},
              {"prefix_ideal", f.prefix_ideal},
              {"preempted", f.preempted},
              {"recomputed_tokens", f.recomputed_tokens},
              {"refused", f.refused},
              {"step_us", f.scheduler.percentile(0.5) * kMicro}});
  if (f.replicas > 1) out.update({{"replicas", f.replicas}, {"router", f.router}});
  return out;
}

std::string to_text(std::span<const ServingFigures> all) {
  std::string out = fmt::format("{:<11} {:<9} {:>9} {:>10} {:>16} {:>10} {:>10} {:>8} {:>9}\n", "batching", "policy", "tokens/s",
                                "goodput/s", "prefix (ideal)", "preempted", "recomputed", "refused", "scheduler");
  for (const ServingFigures& f : all) {
    out += fmt::format("{} {:>9.1f} {:>10.2f} {:>16} {:>10} {:>10} {:>8} {:>6.1f} us\n", name_text(f), f.tokens_per_second(),
                       f.goodput(), fmt::format("{:.1f} ({:.1f}) %", 100 * f.prefix_hit(), 100 * f.prefix_ideal), f.preempted,
                       f.recomputed_tokens, f.refused, f.scheduler.percentile(0.5) * kMicro);
  }
  out += fmt::format("\n{:<20} {:<11} {:<9} {:>10} {:>10} {:>10} {:>10}\n", "time", "batching", "policy", "p50", "p95", "p99", "max");
  for (const ServingTime& time : kServingTimes) {
    for (const ServingFigures& f : all) {
      const Histogram& of = f.*time.of;
      out += fmt::format("{:<20} {} {:>10} {:>10} {:>10} {:>10}\n", time.title, name_text(f), time_text(of.percentile(0.5)),
                         time_text(of.percentile(0.95)), time_text(of.percentile(0.99)), time_text(of.max()));
    }
  }
  for (const ServingFigures& f : all) {
    if (!f.costs.empty()) out += fmt::format("\n{} for tessera-simulate: --costs {}\n", name_text(f), f.costs);
  }
  return out;
}

}  // namespace tessera::tool
