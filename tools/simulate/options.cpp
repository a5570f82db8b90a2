#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <span>
#include <string_view>

#include <fmt/format.h>

namespace tessera::simulate {
namespace {

// A number that an option names: "fixed=2e-3,key=1e-8" sets several.
struct NamedNumber {
  std::string_view name;
  double* value;
  double least;  // the smallest number that the option accepts
};

// Sets the numbers that `text` names. `unit`: the words for such a number in the error message.
Status read_numbers(std::string_view option, std::string_view text, std::string_view unit, std::span<const NamedNumber> numbers) {
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const std::size_t equals = part.find('=');
    const std::string_view digits = equals == part.npos ? "" : part.substr(equals + 1);
    double value = -1.0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const auto* number = std::ranges::find(numbers, part.substr(0, equals), &NamedNumber::name).base();
    if (number == numbers.data() + numbers.size() || error != std::errc() || end != digits.data() + digits.size() ||
        !(value >= number->least && value <= 1e15)) {
      std::string names;
      for (const NamedNumber& known : numbers) names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
      return Error(ErrorCode::invalid_argument, fmt::format("{}: '{}' is none of {} with {}", option, part, names, unit));
    }
    *number->value = value;
  }
  return {};
}

constexpr const char* kFooter = R"(Examples:
  tessera-simulate --rate 3 --requests 10000 --lengths 300,100
  tessera-simulate --trace AzureLLMInferenceTrace_conv.csv --scale 16 --policy fcfs,shortest
  tessera-simulate --trace mooncake.jsonl --replicas 16 --router prefix --kv-per-token 128KiB --kv-budget 20GiB
  tessera-simulate --rate 1 --ranks 4 --link delay=5e-5,rate=1.25e9 --costs fixed=0.15,few_rows=1e-3,many_rows=8e-3

--costs says how many seconds a step takes. It is the sum of these parts:
  fixed      for the step itself
  output     for each row whose logits are wanted
  few_rows   for each of the first 16 rows
  many_rows  for each row after the first 16
  key        for each key that a row sees
With --ranks, pass the costs of one machine that has the whole model. From them the costs of each rank's part are
computed, and the time of the exchanges between ranks is added (docs/howto/ranks.md). --kv-budget is the budget of one
machine.
)";

}  // namespace

void add_options(CLI::App& app, Options& o) {
  app.footer(kFooter);
  tool::add_trace_options(app, o.serving);
  tool::add_scheduling_options(app, o.serving);

  const auto machine = "The machine";
  app.add_option("--costs", o.costs, "The seconds that a step costs, as NAME=SECONDS,... (below)\n"
                                     "Default: fixed=2e-3,output=1e-4,few_rows=1e-4,\nmany_rows=2e-3,key=1e-8")->group(machine);
  app.add_option("--kv-per-token", o.kv_per_token, "The bytes of keys and values of a token. Default: 0")
      ->group(machine)->transform(CLI::AsSizeValue(false).description(""))->type_name("SIZE");
  app.add_option("--kv-budget", o.kv_budget, "The most bytes of KV pages; 0: all pages that the requests\nneed. Default: 0")
      ->group(machine)->transform(CLI::AsSizeValue(false).description(""))->type_name("SIZE");
  app.add_option("--page-tokens", o.page_tokens, "The tokens of a KV page. Default: 32")->group(machine)->check(CLI::Range(1, 4096));
  app.add_option("--file-rate", o.file_rate,
                 "Bytes a second to and from a file for the KV pages of\npreempted requests; 0: no file. Default: 0")
      ->group(machine)->check(CLI::Range(0.0, 1e15));
  app.add_option("--replicas", o.replicas,
                 "The number of engines that share the requests. Default: 1")->group(machine)->check(CLI::Range(1, 100000));
  app.add_option("--ranks", o.ranks, "The number of machines (ranks) among which each engine divides\nits model. Default: 1")->group(machine)->check(CLI::Range(1, 1024));
  app.add_option("--rank-split", o.rank_split,
                 "What a rank has. heads: some heads and columns of every\n"
                 "layer. layers: some whole layers. Default: heads")->group(machine)->type_name("NAME");
  app.add_option("--link", o.link, "The network between two ranks: the seconds until a message\n"
                                   "arrives (delay), and bytes a second (rate)\nDefault: delay=1e-4,rate=1.25e8 (Ethernet of 1 Gbit/s)")->group(machine)->type_name("NUMBERS");
  app.add_option("--shape", o.shape, "The sizes of the model, which decide how many bytes ranks\n"
                                     "exchange. heads: the number of query heads times the elements\n"
                                     "of a head's value. Default: those of Llama 3 8B,\n"
                                     "layers=32,width=4096,heads=4096,ffn=14336,vocabulary=128256")->group(machine)->type_name("NUMBERS");
  app.add_option("--router", o.router, "How an engine is chosen for a request. round-robin: by turns.\n"
                                       "least-work: the one with the fewest tokens still to compute.\n"
                                       "prefix: the same, less the tokens of the prompt that an engine\nhas cached. Default: round-robin")->group(machine);

  tool::add_level_options(app, o.serving);
  app.add_option("--plot", o.plot, "Write an SVG file that shows the times of the requests")->group("Output")->type_name("FILE");
  app.add_flag("--json", o.json, "Print a JSON object in a line for each result, instead of\ntables")->group("Output");
}

Result<CostModel::Costs> costs_of(const std::string& text) {
  CostModel::Costs costs;
  const NamedNumber numbers[] = {{"fixed", &costs.fixed, 0}, {"output", &costs.output, 0}, {"few_rows", &costs.few_rows, 0},
                                 {"many_rows", &costs.many_rows, 0}, {"key", &costs.key, 0}};
  if (Status read = read_numbers("--costs", text, "a number of seconds", numbers); !read) return read.error();
  return costs;
}

Result<Ranks> ranks_of(const Options& options) {
  Ranks ranks{.count = options.ranks};
  if (options.rank_split == "layers") ranks.split = RankSplit::layers;
  else if (options.rank_split != "heads") {
    return Error(ErrorCode::invalid_argument, fmt::format("--rank-split {}: there are heads and layers", options.rank_split));
  }
  ModelShape& shape = ranks.shape;
  const NamedNumber sizes[] = {{"layers", &shape.layers, 1}, {"width", &shape.width, 1}, {"heads", &shape.heads, 1},
                               {"ffn", &shape.ffn, 1}, {"vocabulary", &shape.vocabulary, 1}};
  if (Status read = read_numbers("--shape", options.shape, "a number from 1", sizes); !read) return read.error();
  const NamedNumber link[] = {{"delay", &ranks.link.delay, 0}, {"rate", &ranks.link.rate, 1}};
  if (Status read = read_numbers("--link", options.link, "a number: seconds, or bytes a second (from 1)", link); !read) return read.error();
  return ranks;
}

}  // namespace tessera::simulate
