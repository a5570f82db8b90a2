#include "report.hpp"

#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "terminal_text.hpp"

namespace tessera::cost {
namespace {

constexpr double kDaysOfMonth = 365.25 / 12;

std::string money(const std::string& currency, double price) {
  return price != 0 && price < 0.01 ? fmt::format("{}{:.3g}", currency, price) : fmt::format("{}{:.{}f}", currency, price, price < 10 ? 3 : 2);
}

std::string models_table(const Scenario& s) {
  const std::string currency = tool::shown(s.currency);
  std::string out = fmt::format("{:<16}{:>16}{:>16}{:>10}\n", "a million tokens", "of prompts", "of answers", "machines");
  for (const auto& [model, cost] : s.models) {
    out += fmt::format("{:<16}{:>16}{:>16}{:>10}\n", tool::shown(model.name), money(currency, cost.prompt_million), money(currency, cost.answer_million),
                       model.prompt_price || model.answer_price ? "-" : fmt::format("{}", cost.machines));
  }
  for (const auto& [model, cost] : s.models) {
    if (!cost.speculation) continue;
    const SpeculationEstimate& e = *cost.speculation;
    out += fmt::format("{}: {:.2f} tokens in {:.1f} ms, {:.1f} ms a token: {:.2f} times as fast as without drafts{}\n", tool::shown(model.name), e.tokens,
                       1e3 * e.cycle_seconds, 1e3 * e.token_seconds, e.speedup,
                       e.break_even ? fmt::format("; a loss below {:.2f} accepted", *e.break_even) : "; a loss however many are accepted");
  }
  return out;
}

std::string mix_table(const Scenario& s, const MixCost& cost) {
  const std::string currency = tool::shown(s.currency);
  const Mix& mix = *s.mix;
  std::string out = fmt::format("{:<28}{:>18}{:>12}\n", fmt::format("{:g}+{:g} tokens a request", mix.size.prompt, mix.size.answer), "1000 requests", "saved");
  out += fmt::format("{:<28}{:>18}{:>12}\n", tool::shown(mix.baseline.name) + " for all", money(currency, cost.baseline_thousand), "0.0%");
  for (const CostStep& step : cost.steps) {
    out += fmt::format("{:<28}{:>18}{:>11.1f}%\n", tool::shown(step.name), money(currency, step.thousand), 100 * step.saved);
  }
  out += fmt::format("A million tokens: {}\n", money(currency, cost.million));
  if (mix.requests_a_day > 0) {
    const double month = mix.requests_a_day * kDaysOfMonth / 1000;
    out += fmt::format("A month of {:g} requests a day: {} instead of {}\n", mix.requests_a_day, money(currency, month * cost.thousand),
                       money(currency, month * cost.baseline_thousand));
  }
  return out;
}

}  // namespace

Result<std::string> text_of(const Scenario& s) {
  std::string out = s.models.empty() ? "" : models_table(s);
  if (!s.mix) return out;
  const auto cost = cost_of(*s.mix);
  if (!cost) return cost.error();
  return out + (out.empty() ? "" : "\n") + mix_table(s, *cost);
}

Result<std::string> json_of(const Scenario& s) {
  using Value = nlohmann::ordered_json;
  Value out = {{"currency", s.currency}, {"models", Value::array()}};
  for (const auto& [model, cost] : s.models) {
    Value one = {{"name", model.name}, {"machines", cost.machines}, {"prompt_million", cost.prompt_million}, {"answer_million", cost.answer_million}};
    if (cost.speculation) {
      const SpeculationEstimate& e = *cost.speculation;
      one["speculation"] = {{"tokens", e.tokens}, {"cycle_ms", 1e3 * e.cycle_seconds}, {"token_ms", 1e3 * e.token_seconds}, {"speedup", e.speedup},
                            {"break_even", e.break_even ? Value(*e.break_even) : Value()}};
    }
    out["models"].push_back(std::move(one));
  }
  if (s.mix) {
    const auto cost = cost_of(*s.mix);
    if (!cost) return cost.error();
    Value steps = Value::array();
    for (const CostStep& step : cost->steps) steps.push_back({{"name", step.name}, {"thousand", step.thousand}, {"saved_percent", 100 * step.saved}});
    out["mix"] = {{"baseline_thousand", cost->baseline_thousand}, {"thousand", cost->thousand}, {"million", cost->million},
                  {"saved_percent", 100 * cost->saved}, {"steps", std::move(steps)}};
  }
  return out.dump(-1, ' ', false, Value::error_handler_t::replace) + "\n";
}

}  // namespace tessera::cost
