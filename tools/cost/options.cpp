#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "sizes.hpp"
#include "system/program.hpp"

namespace tessera::cost {
namespace {

constexpr const char* kFooter = R"(A price of tokens follows from the price of a machine and its speed:
  price of a million tokens = price of an hour / (tokens a second * 3600 * busy share) * 1,000,000
Rates are those of all requests together, as tessera-bench -b measures. Shares are percent.

Examples:
  tessera-cost --hour 2.50 --answer-rate 1500 --prompt-rate 20000 --busy 60
      a machine for 2.50 an hour that computes 60 % of the time
  tessera-cost --tiers 60:0.2,30:1,10:10
      60 % of the requests go to a model that costs 0.20 a million tokens, 30 % to one for 1.00, 10 % to one
      for 10.00; compared with the last model for all requests
  tessera-cost --save cached=25,routed=35,compressed=20@prompt --request 400,600
      each way saves its share of the tokens that the ways before it left; @prompt: only of prompts' tokens
  tessera-cost --hour 4 --answer-rate 25 --speculate step=40,draft=5,a=0.75,k=4
      four drafts of 5 ms each before a step of 40 ms; a draft is right with a chance of 0.75
  tessera-cost mix.json --json
      machines, models and a mix of them, as docs/howto/cost.md describes
Exit status: 0 done, 1 failure, 2 usage.)";

Error wrong(std::string_view option, const std::string& text, std::string_view expected) {
  return {ErrorCode::invalid_argument, fmt::format("{}: \"{}\" is not {}", option, text, expected)};
}

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> parts_of(std::string_view text, char between) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(between);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

Result<SpeculationCosts> speculation_of(const std::string& text) {
  SpeculationCosts costs;
  for (const std::string_view part : parts_of(text, ',')) {
    const auto sides = parts_of(part, '=');
    const auto value = sides.size() == 2 ? number_of(sides[1]) : std::nullopt;
    if (value && sides[0] == "step") costs.target_seconds = *value / 1e3;
    else if (value && sides[0] == "draft") costs.draft_seconds = *value / 1e3;
    else if (value && sides[0] == "verify") costs.verify_seconds = *value / 1e3;
    else if (value && sides[0] == "a") costs.acceptance = *value;
    else if (value && sides[0] == "k" && *value >= 0 && *value <= 64) costs.drafts = static_cast<std::uint32_t>(*value);
    else return wrong("--speculate", std::string(part), "step=MS, draft=MS, verify=MS, a=SHARE or k=DRAFTS");
  }
  return costs;
}

// "60:0.2,30:1,10:10"
Result<std::vector<Tier>> tiers_of(const std::string& text) {
  std::vector<Tier> tiers;
  for (const std::string_view part : parts_of(text, ',')) {
    const auto sides = parts_of(part, ':');
    const auto share = number_of(sides[0]), price = sides.size() == 2 ? number_of(sides[1]) : std::nullopt;
    if (!share || !price) return wrong("--tiers", std::string(part), "PERCENT:PRICE, as 60:0.2");
    tiers.push_back({.name = fmt::format("tier {}", tiers.size() + 1), .prompt_million = *price, .answer_million = *price, .share = *share / 100});
  }
  return tiers;
}

// "cached=25,compressed=20@prompt"
Result<std::vector<Saving>> savings_of(const std::string& text) {
  std::vector<Saving> savings;
  for (const std::string_view part : parts_of(text, ',')) {
    const std::size_t equals = part.find('='), at = part.find('@');
    const auto share = equals == part.npos ? std::nullopt : number_of(part.substr(equals + 1, at == part.npos ? at : at - equals - 1));
    const std::string_view of = at == part.npos ? "all" : part.substr(at + 1);
    if (!share || (of != "all" && of != "prompt")) return wrong("--save", std::string(part), "NAME=PERCENT or NAME=PERCENT@prompt");
    savings.push_back({.name = std::string(part.substr(0, equals)), .share = *share / 100, .of = of == "all" ? Saving::Of::all : Saving::Of::prompt});
  }
  return savings;
}

Result<RequestSize> request_of(const std::string& text) {
  const auto sides = parts_of(text, ',');
  const auto prompt = number_of(sides[0]), answer = sides.size() == 2 ? number_of(sides[1]) : std::nullopt;
  if (!prompt || !answer) return wrong("--request", text, "PROMPT,ANSWER in tokens, as 1000,300");
  return RequestSize{*prompt, *answer};
}

bool has_model(const Options& o) { return o.model.machine.hour > 0 || o.model.answer_rate > 0; }

}  // namespace

void add_options(CLI::App& app, Options& o) {
  app.footer(kFooter);
  app.add_option("FILE", o.file, "a JSON file of machines, models and a mix")->type_name("");
  const auto number = [&](const char* name, double& target, const char* group, const char* description) {
    app.add_option(name, target, description)->group(group)->type_name("N")->check(CLI::NonNegativeNumber);
  };
  const auto size = [&](const char* name, std::uint64_t& target, const char* group, const char* description) {
    app.add_option_function<std::string>(
           name,
           [name, &target](const std::string& text) {
             const auto bytes = tool::parse_bytes(text);
             if (!bytes) throw CLI::ValidationError(name, bytes.error().text());
             target = *bytes;
           },
           description)
        ->group(group)
        ->type_name("SIZE");
  };
  constexpr auto machine = "A model on a machine", mix = "A mix";
  number("--hour", o.model.machine.hour, machine, "The price of the machine for an hour");
  number("--answer-rate", o.model.answer_rate, machine, "Tokens of answers that the machine computes in a second,\nof all requests together");
  number("--prompt-rate", o.model.prompt_rate, machine, "Tokens of prompts that the machine reads in a second, of all\nrequests together. Default: as --answer-rate");
  app.add_option("--busy", o.busy, "The share of the paid time in which the machine computes\nDefault: 100")->group(machine)->type_name("PERCENT")->check(CLI::Range(0.0, 100.0));
  size("--memory", o.model.memory, machine,
                 "The memory of weights, keys and values, such as 45GiB\nDefault: the model fits into one machine");
  size("--machine-memory", o.model.machine.memory, machine, "The memory of one machine, such as 80GiB. A model that\nneeds more takes several machines. Default: no limit");
  app.add_option("--speculate", o.speculate, "The costs of speculation: step=MS,draft=MS,a=SHARE,k=DRAFTS,\nthat is the milliseconds of a step and of a draft, the\nshare of drafts that are right (0 to 1), and the drafts of\na step. verify=MS: the milliseconds of a step with drafts\nDefault: no speculation")->group(machine)->type_name("COSTS");
  app.add_option("--tiers", o.tiers, "The models, the best one last. Each is PERCENT:PRICE: its\n"
                                     "share of the requests, and its price of a million tokens")->group(mix)->type_name("LIST");
  app.add_option("--again", o.again, "The share of the other models' requests that the best model\nanswers again. Default: 0")->group(mix)->type_name("PERCENT")->check(CLI::Range(0.0, 100.0));
  app.add_option("--save", o.save, "The ways to compute fewer tokens, in the order in which they\n"
                                   "apply. Each is NAME=PERCENT: the share of tokens that it saves")->group(mix)->type_name("LIST");
  app.add_option("--sampled", o.sampled, "The share of the requests that the best model computes once\nmore, to compare answers. Default: 0")->group(mix)->type_name("PERCENT")->check(CLI::Range(0.0, 100.0));
  app.add_option("--request", o.request, "The tokens of a request, as PROMPT,ANSWER. Default: 1000,300")->group(mix)->type_name("TOKENS");
  app.add_option("--currency", o.currency, "The sign before prices. Default: $")->group("Output")->type_name("TEXT");
  app.add_flag("--json", o.json, "Print one JSON object instead of tables")->group("Output");
}

Result<Scenario> scenario_of(const Options& o) {
  if (!o.file.empty()) {
    if (has_model(o) || !o.tiers.empty() || !o.save.empty()) return wrong("FILE", o.file, "to be combined with --hour, --tiers or --save: write them into the file");
    return read_scenario(tool::path_of(o.file));
  }
  if (!has_model(o) && o.tiers.empty() && o.save.empty() && o.speculate.empty()) {
    return Error(ErrorCode::invalid_argument, "nothing to compute: give a FILE, or --hour with --answer-rate, or --tiers, or --save");
  }
  Scenario scenario;
  scenario.currency = o.currency;
  Model model = o.model;
  model.busy = o.busy / 100;
  if (!o.speculate.empty()) {
    auto costs = speculation_of(o.speculate);
    if (!costs) return costs.error();
    model.speculation = *costs;
    if (model.answer_rate == 0 && costs->target_seconds > 0) model.answer_rate = 1 / costs->target_seconds;  // one request at a time
  }
  if (has_model(o) || model.speculation) {
    auto cost = cost_of(model);
    if (!cost) return cost.error();
    scenario.models.emplace_back(model, *cost);
  }
  if (o.tiers.empty() && o.save.empty()) return scenario;
  Mix mix{.baseline = {.name = "one model", .prompt_million = 1, .answer_million = 1}, .sampled = o.sampled / 100};
  if (!scenario.models.empty()) {
    const ModelCost& cost = scenario.models.front().second;
    mix.baseline = {.name = model.name, .prompt_million = cost.prompt_million, .answer_million = cost.answer_million};
  }
  if (!o.tiers.empty()) {
    auto tiers = tiers_of(o.tiers);
    if (!tiers) return tiers.error();
    mix.tiers = *std::move(tiers);
    mix.baseline = mix.tiers.back();
    for (std::size_t i = 0; i + 1 < mix.tiers.size(); ++i) mix.tiers[i].again = o.again / 100;
  }
  if (!o.save.empty()) {
    auto savings = savings_of(o.save);
    if (!savings) return savings.error();
    mix.savings = *std::move(savings);
  }
  if (!o.request.empty()) {
    auto size = request_of(o.request);
    if (!size) return size.error();
    mix.size = *size;
  }
  scenario.mix = std::move(mix);
  return scenario;
}

}  // namespace tessera::cost
