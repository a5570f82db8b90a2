#include "scenario.hpp"

#include <algorithm>
#include <exception>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sizes.hpp"
#include "system/program.hpp"

namespace tessera::cost {
namespace {

using Value = nlohmann::ordered_json;
constexpr double kPercent = 100;

// Thrown only inside this file; parse_scenario() turns it into an Error.
struct Mistake : std::runtime_error {
  Mistake(std::string where_, const std::string& why) : std::runtime_error(why), where(std::move(where_)) {}
  std::string where;
};

// An object of the file, with its place. A member that no code reads is an error, so that misspelt names are found.
class Members {
 public:
  Members(const Value& value, std::string where, std::initializer_list<std::string_view> known) : value_(value), where_(std::move(where)) {
    if (!value.is_object()) throw Mistake(where_, "must be an object: {...}");
    for (const auto& [key, ignored] : value.items()) {
      if (std::find(known.begin(), known.end(), key) == known.end()) {
        throw Mistake(where_, fmt::format("there is no member \"{}\"; there are {}", key, fmt::join(known, ", ")));
      }
    }
  }
  [[nodiscard]] bool has(const char* key) const { return value_.contains(key); }
  [[nodiscard]] const Value& at(const char* key) const { return value_.at(key); }
  [[nodiscard]] std::string where(const std::string& key) const { return where_.empty() ? key : where_ + "." + key; }

  [[nodiscard]] double number(const char* key, double otherwise) const {
    if (!has(key)) return otherwise;
    if (!at(key).is_number()) throw Mistake(where(key), "must be a number");
    return at(key).get<double>();
  }
  [[nodiscard]] double percent(const char* key, double otherwise) const { return number(key, otherwise) / kPercent; }
  [[nodiscard]] std::string text(const char* key, const std::string& otherwise) const {
    if (!has(key)) return otherwise;
    if (!at(key).is_string()) throw Mistake(where(key), "must be a text");
    return at(key).get<std::string>();
  }
  [[nodiscard]] std::uint64_t bytes(const char* key) const {
    if (!has(key)) return 0;
    if (at(key).is_number_unsigned()) return at(key).get<std::uint64_t>();
    const auto size = tool::parse_bytes(text(key, ""));
    if (!size) throw Mistake(where(key), size.error().text());
    return *size;
  }

 private:
  const Value& value_;
  std::string where_;
};

template <class T>
T take(Result<T> result) {
  if (!result) throw Mistake(result.error().place(), result.error().message());
  return *std::move(result);
}

std::string read_text(const std::filesystem::path& path, const std::string& where) {
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path)) throw Mistake(where, "cannot read this file");
  return {std::istreambuf_iterator<char>(file), {}};
}

SpeculationCosts speculation_of(const Value& value, const std::string& where) {
  const Members m(value, where, {"step_ms", "draft_ms", "verify_ms", "acceptance", "drafts"});
  SpeculationCosts costs{.target_seconds = m.number("step_ms", 0) / 1e3, .draft_seconds = m.number("draft_ms", 0) / 1e3, .acceptance = m.number("acceptance", 0)};
  if (m.has("verify_ms")) costs.verify_seconds = m.number("verify_ms", 0) / 1e3;
  const double drafts = m.number("drafts", 0);
  if (!(drafts >= 0 && drafts <= 64)) throw Mistake(m.where("drafts"), "must be a number from 0 to 64");
  costs.drafts = static_cast<std::uint32_t>(drafts);
  return costs;
}

Model model_of(const std::string& name, const Value& value, const std::string& where, const std::map<std::string, Machine>& machines,
               const std::filesystem::path& folder) {
  const Members m(value, where,
                  {"machine", "prompt_rate", "answer_rate", "measured", "busy", "memory", "speculation", "prompt_price", "answer_price"});
  Model model{.name = name};
  if (m.has("prompt_price")) model.prompt_price = m.number("prompt_price", 0);
  if (m.has("answer_price")) model.answer_price = m.number("answer_price", 0);
  if (!model.prompt_price && !model.answer_price) {
    const std::string machine = m.text("machine", "");
    const auto found = machines.find(machine);
    if (found == machines.end()) throw Mistake(m.where("machine"), fmt::format("there is no machine \"{}\" in \"machines\"", machine));
    model.machine = found->second;
  }
  if (m.has("measured")) {
    const std::string file = m.text("measured", "");
    const MeasuredRates rates = take(measured_rates(read_text(folder / tool::path_of(file), m.where("measured"))));
    model.prompt_rate = rates.prompt;
    model.answer_rate = rates.answer;
  }
  model.prompt_rate = m.number("prompt_rate", model.prompt_rate);
  model.answer_rate = m.number("answer_rate", model.answer_rate);
  model.busy = m.percent("busy", kPercent);
  model.memory = m.bytes("memory");
  if (m.has("speculation")) model.speculation = speculation_of(m.at("speculation"), m.where("speculation"));
  return model;
}

Tier tier_of(const std::string& name, const std::string& where, const std::vector<std::pair<Model, ModelCost>>& models) {
  for (const auto& [model, cost] : models) {
    if (model.name == name) return {.name = name, .prompt_million = cost.prompt_million, .answer_million = cost.answer_million};
  }
  throw Mistake(where, fmt::format("there is no model \"{}\" in \"models\"", name));
}

Mix mix_of(const Value& value, const std::vector<std::pair<Model, ModelCost>>& models) {
  const Members m(value, "mix", {"request", "baseline", "tiers", "savings", "sampled", "lookup", "requests_a_day"});
  Mix mix;
  if (m.has("request")) {
    const Members request(m.at("request"), "mix.request", {"prompt", "answer"});
    mix.size = {.prompt = request.number("prompt", mix.size.prompt), .answer = request.number("answer", mix.size.answer)};
  }
  mix.baseline = tier_of(m.text("baseline", models.empty() ? "" : models.front().first.name), "mix.baseline", models);
  mix.sampled = m.percent("sampled", 0);
  mix.lookup = m.number("lookup", 0);
  mix.requests_a_day = m.number("requests_a_day", 0);
  const auto each = [&](const char* key, auto&& take_one) {
    if (!m.has(key)) return;
    if (!m.at(key).is_array()) throw Mistake(m.where(key), "must be a list: [...]");
    std::size_t i = 0;
    for (const Value& one : m.at(key)) take_one(one, fmt::format("mix.{}[{}]", key, i++));
  };
  each("tiers", [&](const Value& one, const std::string& where) {
    const Members t(one, where, {"model", "share", "again"});
    Tier tier = tier_of(t.text("model", ""), where, models);
    tier.share = t.percent("share", 0);
    tier.again = t.percent("again", 0);
    mix.tiers.push_back(std::move(tier));
  });
  each("savings", [&](const Value& one, const std::string& where) {
    const Members s(one, where, {"name", "share", "of"});
    const std::string of = s.text("of", "all");
    if (of != "all" && of != "prompt") throw Mistake(s.where("of"), "must be \"all\" or \"prompt\"");
    mix.savings.push_back({.name = s.text("name", "saved"), .share = s.percent("share", 0), .of = of == "all" ? Saving::Of::all : Saving::Of::prompt});
  });
  return mix;
}

Scenario scenario_of(std::string_view text, const std::filesystem::path& folder) {
  const Value value = Value::parse(text);
  const Members m(value, "", {"currency", "machines", "models", "mix"});
  Scenario scenario;
  scenario.currency = m.text("currency", "$");
  std::map<std::string, Machine> machines;
  if (m.has("machines")) {
    if (!m.at("machines").is_object()) throw Mistake("machines", "must be an object: {\"NAME\": {\"hour\": 2.5}}");
    for (const auto& [name, one] : m.at("machines").items()) {
      const Members of(one, "machines." + name, {"hour", "memory"});
      if (!of.has("hour")) throw Mistake(of.where("hour"), "state the price of an hour");
      machines[name] = {.name = name, .hour = of.number("hour", 0), .memory = of.bytes("memory")};
    }
  }
  if (!m.has("models") || !m.at("models").is_object() || m.at("models").empty()) throw Mistake("models", "state at least one model: {\"NAME\": {...}}");
  for (const auto& [name, one] : m.at("models").items()) {
    Model model = model_of(name, one, "models." + name, machines, folder);
    ModelCost cost = take(cost_of(model));
    scenario.models.emplace_back(std::move(model), cost);
  }
  if (m.has("mix")) scenario.mix = mix_of(m.at("mix"), scenario.models);
  return scenario;
}

}  // namespace

Result<Scenario> parse_scenario(std::string_view text, const std::filesystem::path& folder) noexcept {
  try {
    return scenario_of(text, folder);
  } catch (const Mistake& mistake) {
    return Error(ErrorCode::invalid_argument, mistake.what(), mistake.where);
  } catch (const std::exception& error) {  // text that is not JSON; no memory
    return Error(ErrorCode::invalid_argument, error.what());
  }
}

Result<Scenario> read_scenario(const std::filesystem::path& path) noexcept {
  try {
    const std::string text = read_text(path, path.string());
    auto scenario = parse_scenario(text, path.parent_path());
    if (scenario) return scenario;
    const Error& error = scenario.error();
    return Error(error.code(), error.message(), error.place().empty() ? path.string() : path.string() + ": " + error.place());
  } catch (const Mistake& mistake) {
    return Error(ErrorCode::not_found, mistake.what(), mistake.where);
  } catch (const std::exception& error) {
    return Error(ErrorCode::io, error.what());
  }
}

Result<MeasuredRates> measured_rates(std::string_view lines) noexcept {
  try {
    MeasuredRates rates;
    while (!lines.empty()) {
      const std::string_view line = lines.substr(0, lines.find('\n'));
      lines.remove_prefix(std::min(line.size() + 1, lines.size()));
      const Value value = Value::parse(line, nullptr, false);
      if (!value.is_object() || !value.contains("test") || !value.contains("tokens_per_s") || !value["tokens_per_s"].is_number()) continue;
      const double rate = value["tokens_per_s"].get<double>();
      if (value["test"] == "prefill") rates.prompt = std::max(rates.prompt, rate);
      if (value["test"] == "decode" || value["test"] == "batch") rates.answer = std::max(rates.answer, rate);
    }
    if (rates.answer <= 0) return Error(ErrorCode::invalid_argument, "there is no line of a test \"decode\" or \"batch\": make the file with tessera-bench --json");
    return rates;
  } catch (const std::exception& error) {
    return Error(ErrorCode::invalid_argument, error.what());
  }
}

}  // namespace tessera::cost
