#include "show/report.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/version.hpp>

#include "failure.hpp"

namespace tessera::bench {

namespace {

using Json = nlohmann::ordered_json;

double middle(std::span<const Limits> history, double Limits::*what) {
  std::vector<double> values;
  for (const Limits& limits : history) values.push_back(limits.*what);
  const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), half, values.end());
  return *half;
}

double best(std::span<const Limits> history, double Limits::*what) {
  double most = 0;
  for (const Limits& limits : history) most = std::max(most, limits.*what);
  return most;
}

// Returns a share as a percentage, or "-" if the limit is not known.
std::string percent(double share) { return std::isfinite(share) ? fmt::format("{:.1f}", 100 * share) : "-"; }
Json json_percent(double share) { return std::isfinite(share) ? Json(100 * share) : Json(); }
Json json_limit(double limit, double unit) { return limit > 0 ? Json(limit / unit) : Json(); }

class Table final : public Report {
 public:
  void begin(const Subject& s, const Limits& limits) override {
    std::string text = heading(s);
    text += fmt::format("{:<10}{}\n", "limits", limits_text(s, limits));
    measured_ = s.read_buffer > 0;
    text += fmt::format("\n{:<8}{:>6}{:>7}{:>11}{:>9}{:>9}{:>10}{:>8}{:>8}{:>10}{:>9}\n", "test", "rows", "depth",
                        "tokens/s", "min", "max", "MB/token", "GB/s", "% read", "TFLOP/s", "% matrix");
    print(text);
  }

  void row(const Measurement& r) override {
    print(fmt::format("{:<8}{:>6}{:>7}{:>11}{:>9}{:>9}{:>10}{:>8}{:>8}{:>10}{:>9}\n", to_string(r.test), r.rows,
                      r.depth, number(r.median()), number(r.slowest()), number(r.fastest()),
                      number(r.bytes_per_token / 1e6), number(r.bytes_per_second() / 1e9), percent(r.share_of_read()),
                      number(r.flop_per_second() / 1e12), percent(r.share_of_matrix())));
  }

  void end(std::span<const Limits> history) override {
    if (history.empty() || !measured_) return;
    const auto both = [&](double Limits::*what, double unit) {
      return fmt::format("{} (best {})", number(middle(history, what) / unit), number(best(history, what) / unit));
    };
    print(fmt::format("\nlimits, medians of {}: read {} GB/s, matrix {} TFLOP/s\n", history.size(),
                      both(&Limits::read, 1e9), both(&Limits::matrix, 1e12)));
  }

 private:
  static std::string limits_text(const Subject& s, const Limits& limits) {
    if (limits.read <= 0) return "unknown: --limits gives them";
    const std::string how = s.read_buffer > 0 ? fmt::format("{}, {} MB", limits.read_kernel, s.read_buffer >> 20) : "given";
    return fmt::format("read {} GB/s ({}), {} {} TFLOP/s", number(limits.read / 1e9), how, s.matrix_unit,
                       number(limits.matrix / 1e12));
  }

  bool measured_ = false;
};

class Lines final : public Report {
 public:
  void begin(const Subject& setting, const Limits&) override { setting_ = setting; }

  void row(const Measurement& r) override {
    const Json json = {{"test", to_string(r.test)},
                       {"shape", setting_.shape},
                       {"format", setting_.format},
                       {"rows", r.rows},
                       {"batch", r.batch},
                       {"depth", r.depth},
                       {"backend", to_string(setting_.backend)},
                       {"threads", setting_.threads},
                       {"isa", setting_.isa},
                       {"numerics", setting_.numerics},
                       {"family", setting_.family},
                       {"kv_dtype", setting_.kv_dtype},
                       {"kv_layout", setting_.kv_layout},
                       {"repeat", r.runs.size()},
                       {"tokens_per_s", r.median()},
                       {"min", r.slowest()},
                       {"median", r.median()},
                       {"max", r.fastest()},
                       {"bytes_per_token", r.bytes_per_token},
                       {"flop_per_token", r.flop_per_token},
                       {"gb_per_s", r.bytes_per_second() / 1e9},
                       {"pct_read_bandwidth", json_percent(r.share_of_read())},
                       {"tflop_per_s", r.flop_per_second() / 1e12},
                       {"pct_matrix_peak", json_percent(r.share_of_matrix())},
                       {"read_bandwidth_gb_per_s", json_limit(r.read_limit(), 1e9)},
                       {"read_kernel", r.read_kernel()},
                       {"matrix_peak_tflop_per_s", json_limit(r.matrix_limit(), 1e12)},
                       {"matrix_unit", setting_.matrix_unit},
                       {"machine", setting_.machine},
                       {"version", version()}};
    print(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  }

  void end(std::span<const Limits>) override {}

 private:
  Subject setting_;
};

}  // namespace

std::unique_ptr<Report> make_table() { return std::make_unique<Table>(); }
std::unique_ptr<Report> make_json() { return std::make_unique<Lines>(); }

std::string heading(const Subject& s) {
  std::string text;
  const auto line = [&](std::string_view what, const std::string& is) {
    text += fmt::format("{:<10}{}\n", what, is);
  };
  const bool cpu = s.backend == BackendKind::cpu;
  line("machine", cpu ? fmt::format("{}, {} thread{}", s.machine, s.threads, s.threads == 1 ? "" : "s") : s.machine);
  const double weights = static_cast<double>(s.weights_per_token) / 1e6;
  const double kv = static_cast<double>(s.kv_per_token) / 1e3;
  line("model",
       fmt::format("{}, {}: {} MB of weights a token, {} kB of keys and values for each before it ({}, {})",
                   s.shape, s.format, number(weights), number(kv), s.kv_dtype, s.kv_layout));
  const std::string on = cpu ? fmt::format("instruction set {}{}", s.isa, s.isa_remark)
                             : fmt::format("backend {}", to_string(s.backend));
  line("library", fmt::format("tessera {}, {}, numerics {}", version(), on, s.numerics));
  for (std::size_t i = 0; i < s.kernels.size(); ++i) line(i == 0 ? "kernels" : "", s.kernels[i]);
  return text;
}

std::string number(double value) {
  return fmt::format("{:.{}f}", value, value >= 99.95 ? 0 : value >= 9.995 ? 1 : value >= 0.9995 ? 2 : 3);
}

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
  throw Failure(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
}

}  // namespace tessera::bench
