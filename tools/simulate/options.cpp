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
  double least;  // the smallest that the option takes
};

// Sets the numbers that `text` names. `unit`: what they are, for the error.
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

The costs are those of a step, in seconds: fixed, for each output (a row whose logits are wanted), for each of the
first 16 rows, for each row beyond, and for each key that a row sees. With --ranks they are those of one machine that
has the whole model. Each rank then computes its part, and the exchanges between ranks come on top
(docs/howto/ranks.md). A budget of KV pages is that of one machine.
)";

}  // namespace

void add_options(CLI::App& app, Options& o) {
  app.footer(kFooter);
  tool::add_trace_options(app, o.serving);
  tool::add_scheduling_options(app, o.serving);

  const auto machine = "The machine";
  app.add_option("--costs", o.costs, "As fixed=2e-3,output=1e-4,few_rows=1e-4,many_rows=2e-3,key=1e-8")->group(machine);
  app.add_option("--kv-per-token", o.kv_per_token, "Bytes of keys and values of a token")
      ->group(machine)->transform(CLI::AsSizeValue(false));
  app.add_option("--kv-budget", o.kv_budget, "Bytes of KV pages; 0: as many as are wanted")
      ->group(machine)->transform(CLI::AsSizeValue(false));
  app.add_option("--page-tokens", o.page_tokens, "Tokens of a page")->group(machine)->check(CLI::Range(1, 4096));
  app.add_option("--file-rate", o.file_rate, "Bytes a second to the file of preempted requests; 0: there is none")
      ->group(machine)->check(CLI::Range(0.0, 1e15));
  app.add_option("--replicas", o.replicas, "Engines")->group(machine)->check(CLI::Range(1, 100000));
  app.add_option("--ranks", o.ranks, "Machines that compute one model together; of each replica")->group(machine)->check(CLI::Range(1, 1024));
  app.add_option("--rank-split", o.rank_split, "What ranks divide: heads (heads and columns of each layer), layers\nDefault: heads")->group(machine)->type_name("NAME");
  app.add_option("--link", o.link, "Between two ranks: seconds until a message arrives, and bytes a second\nDefault: delay=1e-4,rate=1.25e8, an Ethernet of 1 Gbit/s")->group(machine)->type_name("NUMBERS");
  app.add_option("--shape", o.shape, "Sizes of the model, which say how much ranks exchange; heads: query heads times\nthe size of a value. "
                 "Default: layers=32,width=4096,heads=4096,ffn=14336,vocabulary=128256 (Llama 3 8B)")->group(machine)->type_name("NUMBERS");
  app.add_option("--router", o.router, "Who gets a request: round-robin, least-work, prefix")->group(machine);

  tool::add_level_options(app, o.serving);
  app.add_option("--plot", o.plot, "Draw the times, as SVG")->group("Output")->type_name("FILE");
  app.add_flag("--json", o.json, "An object a line")->group("Output");
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
