#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <tessera/version.hpp>

#include "command_line.hpp"
#include "kv_options.hpp"
#include "machine_options.hpp"
#include "model_place.hpp"
#include "system/program.hpp"
#include "failure.hpp"

namespace tessera::bench {

namespace {

constexpr std::uint32_t kMostTokens = 1 << 24;

// Parses a decimal number from `least` to `most`. Throws UsageError if the text is anything else.
std::uint32_t number_of_option(const std::string& name, std::string_view text, std::uint32_t least, std::uint32_t most) {
  std::uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && stop == end && value >= least && value <= most) return value;
  throw UsageError(fmt::format("{}: \"{}\" is not a whole number from {} to {}", name, text, least, most));
}

// Parses a number of tokens: "8192" or "8k", where k is 1024.
std::uint32_t tokens(const std::string& name, std::string_view text, std::uint32_t least) {
  const auto value = tool::parse_tokens(text);
  if (value && *value >= least && *value <= kMostTokens) return static_cast<std::uint32_t>(*value);
  throw UsageError(fmt::format("{}: \"{}\" is not a whole number of tokens from {} to {}, such as 8192 or 8k", name, text,
                               least, kMostTokens));
}

// Parses the limits of a device: "2900,780" is 2900 GB/s and 780 TFLOP/s.
Limits given_limits(const std::string& text) {
  Limits limits;
  const char* end = text.data() + text.size();
  const auto positive = [](double value) { return value > 0 && value < 1e9; };
  const auto [comma, error] = std::from_chars(text.data(), end, limits.read);
  if (error == std::errc() && positive(limits.read) && comma != end && *comma == ',') {
    const auto [stop, matrix_error] = std::from_chars(comma + 1, end, limits.matrix);
    if (matrix_error == std::errc() && positive(limits.matrix) && stop == end) {
      limits.read *= 1e9;
      limits.matrix *= 1e12;
      return limits;
    }
  }
  throw UsageError(fmt::format("--limits: \"{}\" is not two positive numbers with a comma between them", text));
}

void add_number(CLI::App& app, const std::string& names, std::uint32_t& target, std::uint32_t least,
                std::uint32_t most, const std::string& description) {
  const std::string name = names.substr(names.rfind(',') + 1);
  app.add_option_function<std::string>(
         names, [=, &target](const std::string& text) { target = number_of_option(name, text, least, most); }, description)
      ->type_name("N");
}

// Adds an option whose value is a list of numbers: "128,512,2048". The order is kept. `parse` parses one number.
template <class Parse>
void add_counts(CLI::App& app, const std::string& name, Counts& target, Parse parse, const std::string& description) {
  app.add_option_function<std::string>(
         name,
         [=, &target](const std::string& text) {
           target.clear();
           for (std::size_t at = 0; at <= text.size();) {
             const std::size_t end = std::min(text.find(',', at), text.size());
             target.push_back(parse(name, std::string_view(text).substr(at, end - at)));
             at = end + 1;
           }
         },
         description)
      ->type_name("N,...");
}

template <class T>
using Choices = std::vector<std::pair<std::string, T>>;

template <class T>
void add_choice(CLI::App& app, const std::string& name, T& target, const Choices<T>& list,
                const std::string& description) {
  std::string names;
  for (const auto& choice : list) names += (names.empty() ? "" : "|") + choice.first;
  app.add_option_function<std::string>(
         name,
         [=, &target](const std::string& text) {
           const auto found = std::find_if(list.begin(), list.end(), [&](const auto& c) { return c.first == text; });
           if (found == list.end()) throw UsageError(fmt::format("{}: \"{}\" is not one of {}", name, text, names));
           target = found->second;
         },
         description)
      ->type_name(names);
}

const Shape* shape_named(const std::string& name) {
  if (const Shape* shape = find_shape(name)) return shape;
  std::string names;
  for (const Shape& shape : shapes()) names += fmt::format(" {}", shape.name);
  throw UsageError(fmt::format("--shape: \"{}\" is not a shape; there are{}", name, names));
}

tool::Target format_named(const std::string& name) {
  if (auto format = tool::parse_target(name)) return *format;
  throw UsageError(fmt::format("--format: \"{}\" is not a format; there are {}", name, tool::target_names()));
}

void add_model_options(CLI::App& app, Options& o) {
  app.add_option("-m,--model", o.model, tool::kModelForms)->type_name("MODEL");
  app.add_option_function<std::string>(
         "--shape", [&o](const std::string& name) { o.shape = shape_named(name); },
         "Instead of -m: made-up weights with the sizes of a real\nmodel. The shapes are listed below")
      ->type_name("SHAPE");
  app.add_option_function<std::string>(
         "--format", [&o](const std::string& name) { o.format = format_named(name); },
         "The format of the made-up weights. Default: Q8_0")
      ->type_name("FORMAT");
  app.add_option("--write", o.write,
                 "Measure nothing. Write the made-up model, with a vocabulary,\nto a file that other programs can load too")
      ->type_name("FILE");
}

void add_test_options(CLI::App& app, Options& o, std::optional<std::uint32_t>& steps) {
  const auto some_tokens = [](const std::string& name, std::string_view text) { return tokens(name, text, 1); };
  const auto sequences = [](const std::string& name, std::string_view text) { return number_of_option(name, text, 1, 4096); };
  add_counts(app, "-p", o.prefill, some_tokens,
             "Prefill: prompts of N tokens, each from an empty context.\nNumbers of tokens can be written as 512 or 8k");
  app.add_option_function<std::string>(
         "-n", [&steps](const std::string& text) { steps = tokens("-n", text, 1); },
         "Decode: N tokens one after another. N is also the number of\n"
         "steps of -b and --depth; without -n they take 32 steps, and\n--speculate takes 64")
      ->type_name("N");
  add_counts(app, "-b", o.batches, sequences, "Batch: N sequences decoded together. Each step decodes one\ntoken of each sequence");
  add_counts(app, "--depth", o.depths, some_tokens, "Decode one sequence that already has N tokens");
  app.add_option_function<std::string>(
         "--batch-depth", [&o](const std::string& text) { o.batch_depth = tokens("--batch-depth", text, 0); },
         "Tokens that each sequence of -b already has. Default: 128")
      ->type_name("N");
  add_number(app, "--repeat", o.repeat, 1, 1000,
                 "How often each test is run. Default: 3. With --trace or\n"
                 "--rate: how often the requests are served with each policy\nand batching, by turns. Default: 1");
  app.add_flag("--worker", o.worker,
               "Read requests for tests from standard input, one in a line,\nand answer each request with a line (below)");
}

void add_speculating_options(CLI::App& app, Options& o) {
  const std::string group("Drafts (their speedup, estimated and measured, for each batch of -b. Default: 1,2,4,8,16)");
  app.add_flag("--speculate", o.speculate.wanted,
                 "Instead of other tests, measure the costs of steps with\n"
                 "drafts. Print the speedup that follows from the costs, and\n"
                 "the speedup that the scheduler reaches (below)")->group(group);
  app.add_option_function<std::string>(
         "--acceptance",
         [&o](const std::string& text) {
           o.speculate.acceptance.clear();
           for (std::size_t at = 0; at <= text.size();) {
             const std::size_t end = std::min(text.find(',', at), text.size());
             double share = 0.0;
             const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, share);
             if (error != std::errc() || stop != text.data() + end || !(share >= 0.0 && share <= 1.0)) {
               throw UsageError(fmt::format("--acceptance: \"{}\": give shares from 0 to 1, as 0.5,0.8", text));
             }
             o.speculate.acceptance.push_back(share);
             at = end + 1;
           }
         },
         "Probabilities that a draft is right. Each is measured\nDefault: 0.5,0.8")
      ->group(group)
      ->type_name("A,...");
  app.add_option_function<std::string>(
         "--draft-max", [&o](const std::string& text) { o.speculate.most = number_of_option("--draft-max", text, 1, 64); },
                 "The most drafts of a sequence in a step. Default: 8")
      ->group(group)
      ->type_name("K");
  app.add_option_function<std::string>(
         "--draft-ms",
         [&o](const std::string& text) {
           const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), o.speculate.draft_ms);
           if (error != std::errc() || stop != text.data() + text.size() || !(o.speculate.draft_ms >= 0.0 && o.speculate.draft_ms < 1e6)) {
             throw UsageError(fmt::format("--draft-ms: \"{}\" is not a number of milliseconds", text));
           }
         },
         "Milliseconds to make a draft, for the estimate\nDefault: 0, as for n-grams")
      ->group(group)
      ->type_name("MS");
  app.add_flag("--mtp", o.speculate.mtp,
                 "Let the model's MTP head make the drafts, to measure its\n"
                 "time. The drafts are then replaced by made-up ones, which\n"
                 "are right with the probabilities of --acceptance")->group(group);
}

// Checks the options of --speculate against each other. Throws UsageError.
void check_speculating(const CLI::App& app, const Options& o) {
  for (const char* name : {"--acceptance", "--draft-max", "--draft-ms", "--mtp"}) {
    if (!o.speculate.wanted && app.count(name) > 0) throw UsageError(fmt::format("{} goes with --speculate", name));
  }
  if (!o.speculate.wanted) return;
  if (o.speculate.mtp && app.count("--draft-ms") > 0) throw UsageError("--mtp measures what --draft-ms says: give one of them");
  for (const char* name : {"-p", "--depth", "--worker", "--write", "--limits", "--trace", "--rate", "--plot"}) {
    if (app.count(name) > 0) throw UsageError(fmt::format("{} does not go with --speculate", name));
  }
}

void add_serving_options(CLI::App& app, Options& o) {
  tool::add_trace_options(app, o.serving);
  tool::add_scheduling_options(app, o.serving);
  const std::string how(tool::kSchedulingGroup);
  app.add_option("--kv-budget", o.kv_budget,
                 "The most memory of KV pages, such as 200MiB\n"
                 "Default: requests get all pages that they need. Pages of\n"
                 "ended requests stay for reuse while all pages together take\n"
                 "no more memory than the longest request needs")
      ->group(how)->transform(CLI::AsSizeValue(false).description(""))->type_name("SIZE");
  app.add_option("--kv-file", o.kv_file, "The size of a temporary file for the KV pages of preempted\nrequests. Default: no file")
      ->group(how)->transform(CLI::AsSizeValue(false).description(""))->type_name("SIZE");
  tool::add_level_options(app, o.serving);
}

// Checks the options of --trace and --rate against each other. Throws UsageError.
void check_serving(const CLI::App& app, Options& o) {
  o.traces = app.count("--trace") + app.count("--rate") > 0;
  if (!o.traces) {
    for (const CLI::Option* option : app.get_options()) {
      const std::string& group = option->get_group();
      const bool serves = group == tool::kTraceGroup || group == tool::kSchedulingGroup || group == tool::kLevelGroup;
      if (serves && option->count() > 0) throw UsageError(fmt::format("{} goes with --trace or --rate", option->get_name()));
    }
    return;
  }
  for (const char* name : {"-p", "-n", "-b", "--depth", "--worker", "--write", "--limits"}) {
    if (app.count(name) > 0) throw UsageError(fmt::format("{} does not go with --trace or --rate, which serve requests", name));
  }
  for (const char* name : {"--rate", "--lengths", "--seed"}) {
    if (app.count("--trace") > 0 && app.count(name) > 0) throw UsageError(fmt::format("{} makes requests up: not with --trace", name));
  }
  if (app.count("--repeat") == 0) o.repeat = 1;
}

void add_engine_options(CLI::App& app, Options& o) {
  tool::add_threads(app, o.threads);
  tool::add_ranks(app, o.ranks);
  tool::add_kv_dtype(app, o.kv.dtype, "Type of cached keys and values\nDefault: auto, f32 for models of f32 weights, else f16");
  tool::add_kv_wide(app, o.kv.wide);
  add_choice<KvKind>(app, "--kv-layout", o.kv.kind, {{"contiguous", KvKind::contiguous}, {"paged", KvKind::paged}},
                     "How keys and values lie in memory. Default: paged");
  add_choice<BackendKind>(app, "--backend", o.backend, {{"cpu", BackendKind::cpu}, {"cuda", BackendKind::cuda}},
                          "Compute on the CPU or on a GPU. Default: cpu");
  app.add_option_function<std::string>(
         "--cuda-device",
         [&o](const std::string& text) { o.cuda.device = static_cast<std::int32_t>(number_of_option("--cuda-device", text, 0, 1023)); },
         "The number of the GPU, for --backend cuda. Default: 0")
      ->type_name("N");
  app.add_option("--cuda-driver", o.cuda.driver_library, "The library of the GPU's driver. Default: the system's\nlibcuda.so.1")
      ->type_name("FILE");
  app.add_option("--cuda-blas", o.cuda.blas_library, "The library cuBLASLt. Default: the system's libcublasLt.so")->type_name("FILE");
  tool::add_instruction_set(app, o.instruction_set);
  add_choice<Numerics>(app, "--numerics", o.numerics,
                       {{"auto", Numerics::automatic}, {"bf16", Numerics::bf16}, {"fastest", Numerics::fastest},
                        {"reference", Numerics::reference}, {"invariant", Numerics::invariant}},
                       "How products are computed. auto: in the way of each weight\n"
                       "format. bf16: in bf16. fastest: in bf16 for many tokens at\n"
                       "once, in 8 bits for few. reference: plainly, in f32.\n"
                       "invariant: with the same bits on every CPU and, on a GPU, in\nevery batch. Default: auto");
}

void add_output_options(CLI::App& app, Options& o, std::uint32_t& read_buffer) {
  app.add_option_function<std::string>(
         "--limits", [&o](const std::string& text) { o.limits = given_limits(text); },
         "The limits of the GPU: GB/s that it reads, and TFLOP/s that\n"
         "it multiplies. Without this option, results of the cuda\nbackend have no percentages")
      ->type_name("READ,MATRIX");
  app.add_flag("--json", o.json, "Print a JSON object in a line for each result, instead of\na table");
  app.add_option("--plot", o.plot, "Write an SVG file that shows the results below the machine's\n"
                                   "roofline, or the times of a trace's requests")->type_name("FILE");
  add_number(app, "--read-buffer", read_buffer, 1, 1 << 20,
             "MiB of the buffer with which the read bandwidth is measured.\n"
             "If the buffer is small, the speed of the caches is measured\n"
             "instead. Default: 4096, or a quarter of the free memory if\nthat is less");
}

}  // namespace

std::uint32_t Options::context() const noexcept {
  std::uint32_t most = std::max(trace_context, decode ? steps + 1 : 0);
  if (speculate.wanted) most = std::max(most, batch_depth + steps + speculate.most + 2);
  for (const std::uint32_t tokens : prefill) most = std::max(most, tokens);
  if (!batches.empty()) most = std::max(most, batch_depth + steps + 1);
  for (const std::uint32_t depth : depths) most = std::max(most, depth + steps);
  return most;
}

std::optional<Options> parse_options(int argc, char** argv) {
  Options options;
  std::optional<std::uint32_t> steps;
  std::uint32_t read_buffer = 4096;
  CLI::App app("Measures how fast a model runs on this machine, and compares that with the machine's limits.",
               "tessera-bench");
  tool::add_version(app, "tessera-bench");
  app.footer(help_footer());
  app.get_formatter()->column_width(30);
  add_model_options(app, options);
  add_test_options(app, options, steps);
  add_speculating_options(app, options);
  add_serving_options(app, options);
  add_engine_options(app, options);
  add_output_options(app, options, read_buffer);
  try {
    tool::parse(app, argc, argv);
  } catch (const CLI::Success& asked) {
    (void)app.exit(asked);
    if (!tool::output_arrived()) throw Failure(tool::kLostOutput);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }

  if (options.model.empty() == (options.shape == nullptr)) {
    throw UsageError("either -m MODEL or --shape SHAPE says what to measure");
  }
  if (!options.model.empty()) options.model = value(tool::model_place(tool::text_of(options.model)));
  if (!options.model.empty() && app.count("--format") > 0) {
    throw UsageError("--format goes with --shape: a file has its own");
  }
  if (!options.model.empty() && !options.write.empty()) throw UsageError("--write goes with --shape");
  if (options.backend == BackendKind::cpu && options.limits.read > 0) {
    throw UsageError("--limits goes with --backend cuda: the CPU's are measured");
  }
  check_serving(app, options);
  check_speculating(app, options);
  if (options.backend == BackendKind::cuda && options.limits.read <= 0 && !options.plot.empty() && !options.traces) {
    throw UsageError("--plot draws the roofline of --limits: with --backend cuda nothing measures it");
  }
  if (options.worker && !options.plot.empty()) throw UsageError("--plot goes with tests that are known: not with --worker");
  if (options.worker) options.json = true;
  if (steps) options.steps = *steps;
  options.decode = steps.has_value();
  if (!options.decode) options.steps = options.speculate.wanted ? 64 : 32;
  if (!options.traces && !options.speculate.wanted && !options.decode && options.prefill.empty() && options.batches.empty() && options.depths.empty()) {
    options.prefill = {128, 512};
    options.decode = true;
    options.steps = 64;
  }
  options.read_buffer = std::uint64_t{read_buffer} << 20;
  return options;
}

}  // namespace tessera::bench
