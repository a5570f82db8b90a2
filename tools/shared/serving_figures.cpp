#include "serving_figures.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tessera::tool {
namespace {

nlohmann::json percentiles(const Histogram& of, double unit) {
  return {{"p50", of.percentile(0.5) * unit},
          {"p95", of.percentile(0.95) * unit},
          {"p99", of.percentile(0.99) * unit},
          {"max", of.max() * unit}};
}

constexpr double kMilli = 1e3, kMicro = 1e6;

double share(std::uint64_t part, std::uint64_t whole) noexcept {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

// "12.3 ms", "4.56 s"
std::string time_text(double seconds) {
  if (seconds < 1.0) return fmt::format("{:.{}f} ms", seconds * 1e3, seconds < 0.1 ? 1 : 0);
  return fmt::format("{:.{}f} s", seconds, seconds < 10 ? 2 : seconds < 100 ? 1 : 0);
}

std::string pair_text(const Histogram& of) {
  return fmt::format("{} / {}", time_text(of.percentile(0.5)), time_text(of.percentile(0.99)));
}

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

nlohmann::json to_json(const ServingFigures& f) {
  nlohmann::json out = {{"test", f.test},
                        {"trace", f.trace},
                        {"batching", f.batching},
                        {"policy", f.policy},
                        {"requests", f.requests},
                        {"finished", f.finished},
                        {"refused", f.refused},
                        {"tokens", f.output_tokens},
                        {"seconds", f.seconds},
                        {"tokens_per_s", f.tokens_per_second()},
                        {"ttft_ms", percentiles(f.ttft, kMilli)},
                        {"itl_ms", percentiles(f.itl, kMilli)},
                        {"tpot_ms", percentiles(f.tpot, kMilli)},
                        {"e2e_ms", percentiles(f.e2e, kMilli)},
                        {"queue_ms", percentiles(f.queue, kMilli)},
                        {"step_ms", percentiles(f.step, kMilli)},
                        {"step_us", percentiles(f.scheduler, kMicro)},
                        {"goodput", f.goodput()},
                        {"slo", {{"ttft_ms", f.level.ttft * kMilli}, {"tpot_ms", f.level.tpot * kMilli}}},
                        {"prefix_hit", f.prefix_hit()},
                        {"prefix_ideal", f.prefix_ideal},
                        {"preempted", f.preempted},
                        {"recomputed_tokens", f.recomputed_tokens}};
  if (f.replicas > 1) out.update({{"replicas", f.replicas}, {"router", f.router}});
  return out;
}

std::string to_text(const std::vector<ServingFigures>& all) {
  std::string out = fmt::format("{:<11} {:<9} {:>9} {:>19} {:>19} {:>19} {:>9} {:>7} {:>9} {:>8}\n", "batching", "policy",
                                "tokens/s", "TTFT p50 / p99", "ITL p50 / p99", "queue p50 / p99", "goodput/s", "prefix",
                                "preempted", "refused");
  for (const ServingFigures& f : all) {
    out += fmt::format("{:<11} {:<9} {:>9.1f} {:>19} {:>19} {:>19} {:>9.2f} {:>6.1f}% {:>9} {:>8}\n", f.batching, f.policy,
                       f.tokens_per_second(), pair_text(f.ttft), pair_text(f.itl), pair_text(f.queue), f.goodput(),
                       100 * f.prefix_hit(), f.preempted, f.refused);
  }
  return out;
}

}  // namespace tessera::tool
