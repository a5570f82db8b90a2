// tessera-convert: writes a model, of a folder as hubs publish models or of a GGUF file, to a GGUF file.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <tessera/extend/core/executor.hpp>
#include <tessera/extend/files/gguf_writer.hpp>
#include <tessera/extend/files/model_source.hpp>
#include <tessera/extend/formats/rows.hpp>
#include <tessera/unstable/files/gguf_settings.hpp>
#include <tessera/unstable/text/list_tokenizer.hpp>

#include "command_line.hpp"
#include "encode.hpp"
#include "importance.hpp"
#include "machine_options.hpp"
#include "model_files.hpp"
#include "model_place.hpp"
#include "plan.hpp"
#include "report.hpp"
#include "signals.hpp"
#include "system/program.hpp"
#include "terminal_text.hpp"

namespace {

using namespace tessera;
using namespace tessera::quantize;

constexpr int kUsage = 2, kFailure = 1;
constexpr std::string_view kName = "tessera-convert";

volatile std::sig_atomic_t stop_requested = 0;
void request_stop(int) { stop_requested = 1; }

constexpr const char* kFooter = R"(Without FORMAT every matrix keeps its format, and norms, biases, routers and convolutions become F32. With FORMAT matrices
are quantised on the way, as tessera-quantize does it ("tessera-quantize --help" lists the formats).

A GGUF file has the name of a tokenizer's steps, not the steps. The name that is written is one under which the tokenizer
gives the same tokens, on texts of many kinds; a tokenizer without such a name is an error.

OUT appears when it is complete and replaces what was there.

Examples:
  tessera-convert Qwen3-0.6B qwen3-0.6b-bf16.gguf
  tessera-convert Qwen3-0.6B qwen3-0.6b-q4_k_m.gguf Q4_K_M
  tessera-convert hf:Qwen/Qwen3-0.6B qwen3.gguf Q8_0 --dry-run
Exit status: 0 done, 1 failure, 2 usage.)";

struct Arguments {
  std::string in;
  std::filesystem::path out, imatrix;
  Options options;
  bool keeps_formats = true, dry_run = false, verbose = false;
};

int fail(const Error& error) {
  tool::complain(kName, error.text());
  return kFailure;
}

int usage(std::string_view message) {
  tool::complain(kName, fmt::format("{} (--help tells more)", message));
  return kUsage;
}

// Makes a step for each tensor: matrices as they are, what is small in F32.
Result<std::vector<Step>> kept_formats(const ModelSource& model) {
  std::vector<Step> steps;
  for (const TensorInfo& tensor : model.tensors()) {
    const auto from = formats::block_of(tensor.dtype);
    if (!from) return Error(ErrorCode::unsupported, "its format is not one of tessera's", std::string(tensor.name));
    const std::uint64_t values = tensor.bytes / from->bytes * from->values;
    const bool is_small = (tensor.n_dims == 1 || is_delicate(tensor.name)) && from->values == 1;
    const DType to = is_small ? DType::f32 : tensor.dtype;
    steps.push_back({&tensor, to, values, is_small ? values * sizeof(float) : tensor.bytes, {}});
  }
  return steps;
}

Result<std::vector<Step>> steps_of(const ModelSource& model, const Arguments& arguments) {
  if (arguments.keeps_formats) return kept_formats(model);
  auto steps = make_plan(model, arguments.options);
  if (!steps) return steps;
  for (Step& step : *steps) {
    if (!is_delicate(step.tensor->name) || formats::block_of(step.to)->values != 1) continue;
    step.to = DType::f32;
    step.bytes = step.values * sizeof(float);
  }
  return steps;
}

// Prints what would be written, by format.
void print_sizes(const std::vector<Step>& steps) {
  std::map<std::string, std::pair<std::size_t, std::uint64_t>> by_format;
  std::uint64_t total = 0;
  for (const Step& step : steps) {
    auto& [count, bytes] = by_format[std::string(to_string(step.to))];
    ++count;
    bytes += step.bytes;
    total += step.bytes;
  }
  for (const auto& [format, sum] : by_format) fmt::print("{:<8} {:>6} tensors {:>12}\n", format, sum.first, fmt::format("{:.1f} MB", static_cast<double>(sum.second) / 1e6));
  fmt::print("{:<8} {:>6} tensors {:>12}\n", "all", steps.size(), fmt::format("{:.1f} MB", static_cast<double>(total) / 1e6));
}

Status write_metadata(const ModelSource& model, const Arguments& arguments, GgufWriter& writer) {
  if (auto ok = writer.set_string("general.type", "model"); !ok) return ok;
  const auto settings = list_tokenizer(model.settings());
  if (!settings) return settings.error();
  if (auto ok = write_settings(writer, **settings); !ok) return ok;
  if (!arguments.keeps_formats) {
    if (auto ok = writer.set("general.file_type", tool::file_type(arguments.options.target)); !ok) return ok;
  }
  return writer.set("general.quantization_version", std::uint32_t{2});
}

int run(const Arguments& arguments) {
  const auto place = tool::model_place(arguments.in);
  if (!place) return fail(place.error());
  if (tool::is_part_of(arguments.out, *place)) return usage("OUT is a file of IN: choose another name for the new model");
  const auto model = open_model(*place);
  if (!model) return fail(model.error());
  const auto steps = steps_of(**model, arguments);
  if (!steps) return fail(steps.error());
  Importance importance;
  if (!arguments.imatrix.empty()) {
    auto read = Importance::read(arguments.imatrix, **model);
    if (!read) return fail(read.error());
    importance = *std::move(read);
  }
  if (arguments.dry_run) {
    print_sizes(*steps);
    return 0;
  }

  GgufWriter writer;
  if (auto ok = write_metadata(**model, arguments, writer); !ok) return fail(ok.error());
  std::uint64_t total = 0;
  for (const Step& step : *steps) {
    const std::span dims(step.tensor->dims.data(), step.tensor->n_dims);
    if (auto ok = writer.add_tensor(step.tensor->name, step.to, dims); !ok) return fail(ok.error());
    total += step.values;
    if (arguments.verbose) print_tensor(step);
  }
  const auto begin = std::chrono::steady_clock::now();
  ProgressLine line(total);
  const auto advance = [](void* context, std::uint64_t values) { static_cast<ProgressLine*>(context)->advance(values); };
  const Progress progress{advance, &line, &stop_requested};
  std::vector<Loss> losses;
  losses.reserve(steps->size());
  const auto written = writer.write_file(arguments.out, [&](std::string_view, const ByteSink& write) -> Status {
    const Step& step = (*steps)[losses.size()];  // tensors come in the order of the steps
    auto loss = encode_tensor(**model, step, importance.of(step.tensor->name), arguments.options.threads, write, progress);
    if (!loss) return std::move(loss).error();
    losses.push_back(*loss);
    return {};
  });
  line.clear();
  if (!written) return fail(written.error());
  print_table(*steps, losses, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  return 0;
}

int parse_and_run(int argc, char** argv) {
  Arguments arguments;
  std::string format, output, embedding;
  CLI::App app{"Writes the model IN to the GGUF file OUT, with its weight matrices in FORMAT.", std::string(kName)};
  app.footer(kFooter);
  app.add_option("IN", arguments.in, "the model: a folder, a GGUF file, ollama:NAME, lmstudio:PUBLISHER/MODEL or hf:ORGANISATION/MODEL")
      ->required()->type_name("");
  app.add_option("OUT", arguments.out, "the file to write")->required()->type_name("");
  app.add_option("FORMAT", format, "the format of weight matrices, or a mix of formats. Default: as they are")->type_name("");
  app.add_option("--output-type", output, "the format of the output matrix")->type_name("FORMAT");
  app.add_option("--embedding-type", embedding, "the format of the token embedding")->type_name("FORMAT");
  app.add_option("--imatrix", arguments.imatrix, "which inputs matter more: an importance matrix, from tessera-quality --imatrix")->type_name("FILE");
  app.add_flag("--requantize", arguments.options.requantize, "accept weights that are quantised already (loses accuracy)");
  app.add_flag("--dry-run", arguments.dry_run, "print the sizes, and write nothing");
  app.add_flag("-v,--verbose", arguments.verbose, "a line for each tensor, on standard error");
  tool::add_threads(app, arguments.options.threads);
  tool::add_version(app, std::string(kName));
  try {
    tool::parse(app, argc, argv);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return usage(error.what());
  }
  arguments.keeps_formats = format.empty();
  if (!format.empty()) {
    const auto target = tool::parse_target(format);
    if (!target) return usage(target.error().message());
    arguments.options.target = *target;
  } else if (!output.empty() || !embedding.empty() || !arguments.imatrix.empty()) {
    return usage("--output-type, --embedding-type and --imatrix need a FORMAT");
  }
  for (const auto& [name, slot] : {std::pair{&output, &arguments.options.output}, std::pair{&embedding, &arguments.options.embedding}}) {
    if (name->empty()) continue;
    const auto type = tool::parse_target(*name);
    if (!type) return usage(type.error().message());
    if (type->mix != tool::Mix::none) return usage(fmt::format("{} is a mix: one matrix takes one format, such as Q4_K", *name));
    *slot = type->format;
  }
  if (arguments.options.threads == 0) arguments.options.threads = static_cast<std::uint32_t>(tessera::usable_threads());
  return run(arguments);
}

}  // namespace

int main(int argc, char** argv) {
  // A signal ends the work at the next piece; the temporary file is removed, and OUT stays as it was.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) tool::on_signal(signal, request_stop);
  try {
    const int status = parse_and_run(argc, argv);
    if (tool::output_arrived()) return status;
    tool::complain(kName, tool::kLostOutput);
  } catch (const std::exception& error) {
    tool::complain(kName, error.what());
  } catch (...) {
    std::fputs("tessera-convert: an unknown failure\n", stderr);
  }
  return kFailure;
}
