// tessera-convert: reads a model from a GGUF file or a model folder, and writes it as GGUF files or as a folder.
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <tessera/extend/core/executor.hpp>
#include <tessera/extend/files/gguf_writer.hpp>
#include <tessera/extend/files/model_source.hpp>
#include <tessera/extend/formats/rows.hpp>
#include <tessera/unstable/adapters/merged_model.hpp>
#include <tessera/unstable/files/gguf_settings.hpp>
#include <tessera/unstable/text/list_tokenizer.hpp>

#include "adapter_option.hpp"
#include "command_line.hpp"
#include "format_options.hpp"
#include "importance.hpp"
#include "machine_options.hpp"
#include "model_place.hpp"
#include "plan.hpp"
#include "prune.hpp"
#include "signals.hpp"
#include "sizes.hpp"
#include "system/program.hpp"
#include "terminal_text.hpp"
#include "to_folder.hpp"
#include "write_model.hpp"

namespace {

using namespace tessera;
using namespace tessera::quantize;

constexpr int kUsage = 2, kFailure = 1;
constexpr std::string_view kName = "tessera-convert";

volatile std::sig_atomic_t stop_requested = 0;
void request_stop(int) { stop_requested = 1; }

constexpr const char* kFooter = R"(Without FORMAT every matrix keeps its format, and norms, biases, routers and convolutions become F32. With FORMAT matrices
are quantised on the way, as tessera-quantize does it ("tessera-quantize --help" lists the formats).

A GGUF file does not have the steps of a tokenizer, but only a name for them. tessera-convert tries the known names on texts of
many kinds, and writes a name that gives the same tokens. If there is no such name, that is an error.

If IN is a GGUF file, its keys are copied. A split model becomes one file; with --split-max-size, one file is split.

--merge adds an adapter (LoRA: a GGUF file, or a folder of PEFT) to the weights: W becomes W + SCALE * B A. Without FORMAT each
matrix is rounded to its own format again, so merge into a model in BF16 or F16 and quantise in the same run.

--prune leaves out what matters least: whole layers, KV heads with their query heads, columns of FFNs. It prints what is left and, with
--prune-text, the perplexity before and after. To choose layers, the text is needed. Heads and columns can also be chosen by an
--imatrix, or by the weights alone. In quantised matrices only whole blocks of columns can be left out, so prune a model in F16 or
BF16. A pruned model should be trained again for a while.

--to safetensors writes a folder as hubs publish models: config.json, the tokenizer's files and safetensors files. config.json
names a type of model (model_type) with which the folder, when it is read again, computes the same. If there is no such type, that is
an error. Matrices in F32, F16 and BF16 keep their type. Quantised ones become BF16, or FORMAT, which must be one of these three.
--split-max-size is the size of one safetensors file (default 5 GiB). A folder that is made from a GGUF file has only what the
file's keys say. If the model was published as a folder, that folder is better.

OUT appears when it is complete. A file of this name is replaced; if OUT is a folder that exists already, that is an error.

Examples:
  tessera-convert Qwen3-0.6B qwen3-0.6b-bf16.gguf
  tessera-convert Qwen3-0.6B qwen3-0.6b-q4_k_m.gguf Q4_K_M
  tessera-convert hf:Qwen/Qwen3-0.6B qwen3.gguf --type Q8_0 --dry-run
  tessera-convert SmolLM2-135M pirate.gguf Q8_0 --merge pirate-adapter:0.8
  tessera-convert SmolLM2-135M small.gguf --prune layers=3,ffn=0.2 --prune-text text.txt
  tessera-convert llama-70b.gguf llama-70b.gguf --split-max-size 10G      (llama-70b-00001-of-0000N.gguf)
  tessera-convert llama-70b-00001-of-00004.gguf llama-70b.gguf            (one file again)
  tessera-convert llama.gguf llama-folder --to safetensors
Exit status: 0 done, 1 failure, 2 usage.)";

struct Arguments {
  std::string in;
  std::filesystem::path out;
  Options options;
  FormatTexts texts;
  std::vector<MergedAdapter> merge;
  convert::PruneOptions prune;
  std::uint64_t part_bytes = 0;  // bytes of the tensors of one file; 0: no limit
  bool dry_run = false, verbose = false;
  bool to_folder = false;  // OUT is a folder with safetensors files

  [[nodiscard]] bool keeps_formats() const noexcept { return texts.format.empty(); }
};

int fail(const Error& error) {
  tool::complain(kName, error.text());
  return kFailure;
}

int usage(std::string_view message) {
  tool::complain(kName, fmt::format("{} (--help tells more)", message));
  return kUsage;
}

// Makes a step for each tensor; tensors keep their formats. Exception: small tensors become F32 if the model comes from a folder.
Result<std::vector<TensorPlan>> kept_formats(const ModelSource& model, bool is_gguf) {
  std::vector<TensorPlan> steps;
  for (const TensorInfo& tensor : model.tensors()) {
    const auto from = formats::block_of(tensor.dtype);
    if (!from) return Error(ErrorCode::unsupported, "its format is not one of tessera's", std::string(tensor.name));
    const std::uint64_t values = tensor.bytes / from->bytes * from->values;
    const bool is_small = !is_gguf && (tensor.n_dims == 1 || is_delicate(tensor.name)) && from->values == 1;
    const DType to = is_small ? DType::f32 : tensor.dtype;
    steps.push_back({&tensor, to, values, is_small ? values * sizeof(float) : tensor.bytes, {}});
  }
  return steps;
}

Result<std::vector<TensorPlan>> steps_of(const ModelSource& model, bool is_gguf, const Arguments& arguments) {
  if (arguments.keeps_formats()) return kept_formats(model, is_gguf);
  auto steps = make_plan(model, arguments.options);
  if (!steps) return steps;
  for (TensorPlan& step : *steps) {
    if (!is_delicate(step.tensor->name) || formats::block_of(step.to)->values != 1) continue;
    step.to = DType::f32;
    step.bytes = step.values * sizeof(float);
  }
  return steps;
}

// Prints the sizes of the result, by format, and its files.
void print_sizes(const std::vector<TensorPlan>& steps, std::span<const OutputPart> parts) {
  const auto bytes_of = [](std::span<const TensorPlan> some) {
    std::uint64_t bytes = 0;
    for (const TensorPlan& step : some) bytes += step.bytes;
    return bytes < 1000'000 ? fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3) : fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
  };
  std::map<std::string, std::vector<TensorPlan>> by_format;
  for (const TensorPlan& step : steps) by_format[std::string(to_string(step.to))].push_back(step);
  for (const auto& [format, own] : by_format) fmt::print("{:<8} {:>6} tensors {:>12}\n", format, own.size(), bytes_of(own));
  fmt::print("{:<8} {:>6} tensors {:>12}\n", "all", steps.size(), bytes_of(steps));
  for (const OutputPart& part : parts) fmt::print("{} {:>6} tensors {:>12}\n", tool::text_of(part.path), part.steps.size(), bytes_of(part.steps));
}

// Sets the keys of a file that is made from a folder.
Status set_keys(const ModelSource& model, const Arguments& arguments, GgufWriter& writer) {
  if (auto ok = writer.set_string("general.type", "model"); !ok) return ok;
  const auto settings = list_tokenizer(model.settings());
  if (!settings) return settings.error();
  if (auto ok = write_settings(writer, **settings); !ok) return ok;
  // tessera does not need this key; llama.cpp loads no BERT without it.
  for (const TensorInfo& tensor : model.tensors()) {
    if (tensor.name != "token_types.weight") continue;
    if (auto ok = writer.set("tokenizer.ggml.token_type_count", static_cast<std::uint32_t>(tensor.dims[1])); !ok) return ok;
  }
  if (!arguments.keeps_formats()) {
    if (auto ok = writer.set("general.file_type", tool::file_type(arguments.options.target)); !ok) return ok;
  }
  return writer.set("general.quantization_version", std::uint32_t{2});
}

int run(const Arguments& arguments) {
  const auto place = tool::model_place(arguments.in);
  if (!place) return fail(place.error());
  auto opened = open_model(*place);
  if (!opened) return fail(opened.error());
  const std::shared_ptr<const ModelSource> given = *std::move(opened);
  const auto* const file = dynamic_cast<const ModelFile*>(given.get());  // nullptr: the model comes from a folder
  const auto merged = merged_model(given, arguments.merge);
  if (!merged) return fail(merged.error());
  std::shared_ptr<const ModelSource> model = *merged;
  Importance importance;
  if (!arguments.texts.imatrix.empty()) {
    auto read = Importance::read(arguments.texts.imatrix, *model);
    if (!read) return fail(read.error());
    importance = *std::move(read);
  }
  std::shared_ptr<const convert::PrunedSource> pruned;
  if (arguments.prune.any()) {
    auto left = convert::prune(model, importance, arguments.prune, arguments.options.threads, &stop_requested);
    if (!left) return fail(left.error());
    model = pruned = *std::move(left);
    importance = {};  // it describes the whole model, not the pruned one
  }
  if (arguments.to_folder) {
    const convert::ToFolder folder{.out = arguments.out, .type = arguments.keeps_formats() ? std::nullopt : std::optional(arguments.options.target.format),
                                   .shard_bytes = arguments.part_bytes, .dry_run = arguments.dry_run, .verbose = arguments.verbose, .stop = &stop_requested};
    const Status written = convert::write_as_folder(*model, folder);
    return written ? 0 : fail(written.error());
  }
  const auto steps = steps_of(*model, file != nullptr, arguments);
  if (!steps) return fail(steps.error());
  const auto parts = parts_of(arguments.out, *steps, arguments.part_bytes);
  if (!parts) return fail(parts.error());
  if (auto ok = spare_input(*parts, *place); !ok) return usage(ok.error().text());
  for (const MergedAdapter& adapter : arguments.merge) {
    if (!spare_input(*parts, adapter.path)) return usage("OUT is the file of --merge: choose another name for the new model");
  }
  const auto keys = [&](GgufWriter& writer) -> Status {
    if (file == nullptr) return set_keys(*model, arguments, writer);
    if (auto ok = copy_keys(*file, arguments.keeps_formats() ? nullptr : &arguments.options.target, writer); !ok) return ok;
    return pruned != nullptr ? pruned->write_keys(writer) : Status();
  };
  if (arguments.dry_run) {
    GgufWriter unused;  // what cannot be written is an error in a dry run too
    if (auto ok = keys(unused); !ok) return fail(ok.error());
    print_sizes(*steps, *parts);
    return 0;
  }
  const Writing writing{.model = *model, .steps = *steps, .importance = importance, .threads = arguments.options.threads,
                        .verbose = arguments.verbose, .stop = &stop_requested, .keys = keys};
  const Status written = write_model(writing, *parts);
  return written ? 0 : fail(written.error());
}

int parse_and_run(int argc, char** argv) {
  Arguments arguments;
  std::string format, to = "gguf";
  CLI::App app{"Writes the model IN to the GGUF file OUT, with its weight matrices in FORMAT; or to a folder OUT, with --to safetensors.", std::string(kName)};
  app.footer(kFooter);
  app.add_option("IN", arguments.in, "the model to read: a folder, a GGUF file (the first part of a split one),\nollama:NAME, lmstudio:PUBLISHER/MODEL or hf:ORGANISATION/MODEL")
      ->required()->type_name("");
  app.add_option("OUT", arguments.out, "the GGUF file to write; with --to safetensors, the folder to make")->required()->type_name("");
  app.add_option("FORMAT", arguments.texts.format, "the format of weight matrices, or a mix of formats, such as Q4_K_M\nDefault: each matrix keeps its format")->type_name("");
  app.add_option("--type", format, "FORMAT as an option")->type_name("FORMAT");
  app.add_option("--to", to, "gguf: OUT is a GGUF file; safetensors: OUT is a folder as hubs publish models\nDefault: gguf")
      ->type_name("KIND")->check(CLI::IsMember({"gguf", "safetensors"}));
  add_format_options(app, arguments.texts, arguments.options);
  const auto set_part_bytes = [&](std::string text) {
    if (text.ends_with('G') || text.ends_with('M')) text += 'B';  // llama.cpp's spelling, which counts in 1000
    const auto bytes = tool::parse_bytes(text);
    if (!bytes) throw CLI::ValidationError("--split-max-size", bytes.error().message());
    if (*bytes == 0) throw CLI::ValidationError("--split-max-size", "0 bytes hold no tensor");
    arguments.part_bytes = *bytes;
  };
  app.add_option_function<std::string>("--split-max-size", set_part_bytes, "write several files, OUT-00001-of-0000N.gguf, each with at most this\nsize of tensors, such as 2G or 500MB. Default: one file")
      ->type_name("SIZE");
  const auto set_merge = [&](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) arguments.merge.push_back(tool::parse_adapter(text));
  };
  app.add_option_function<std::vector<std::string>>("--merge", set_merge, "add this adapter (LoRA) to the weights; may be given again")
      ->type_name("FILE[:SCALE]")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  const auto set_prune = [&](const std::string& text) {
    if (auto ok = convert::parse_prune(text, arguments.prune); !ok) throw CLI::ValidationError(ok.error().message());
  };
  app.add_option_function<std::string>("--prune", set_prune, "leave out this many layers, and these shares of KV heads and of FFN columns:\nlayers=N,heads=SHARE,ffn=SHARE, or some of them")->type_name("LIST");
  app.add_option_function<std::string>("--prune-text", [&](const std::string& text) { arguments.prune.text = tool::path_of(text); },
                                       "with --prune, the text with which importance and perplexity are measured\n(its first 4096 tokens)")->type_name("FILE");
  app.add_flag("--dry-run", arguments.dry_run, "print the sizes that the tensors would have, and write nothing");
  app.add_flag("-v,--verbose", arguments.verbose, "print a line for each tensor on standard error");
  tool::add_threads(app, arguments.options.threads);
  tool::add_version(app, std::string(kName));
  try {
    tool::parse(app, argc, argv);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return usage(error.what());
  }
  if (!format.empty() && !arguments.texts.format.empty()) return usage("FORMAT and --type are the same option: give one of them");
  if (!format.empty()) arguments.texts.format = format;
  if (!arguments.prune.text.empty() && !arguments.prune.any()) return usage("--prune-text goes with --prune");
  if (arguments.prune.layers != 0 && arguments.prune.text.empty()) return usage("--prune layers=N measures the layers with a text: give --prune-text FILE");
  if (arguments.prune.any() && !arguments.keeps_formats() && !arguments.texts.imatrix.empty()) {
    return usage("--imatrix is that of the whole model: prune first, and quantise OUT in a run of its own");
  }
  const bool chooses = !arguments.texts.output.empty() || !arguments.texts.embedding.empty() || (!arguments.texts.imatrix.empty() && !arguments.prune.any());
  if (arguments.keeps_formats() && chooses) return usage("--output-type, --embedding-type and --imatrix need a FORMAT");
  if (auto ok = read_formats(arguments.texts, arguments.options); !ok) return usage(ok.error().message());
  arguments.to_folder = to == "safetensors";
  if (arguments.to_folder && (chooses || arguments.options.requantize)) return usage("--output-type, --embedding-type, --imatrix and --requantize are for GGUF files");
  const DType target = arguments.options.target.format;
  if (arguments.to_folder && !arguments.keeps_formats() && target != DType::f32 && target != DType::f16 && target != DType::bf16) {
    return usage(fmt::format("FORMAT {}: with --to safetensors it is F32, F16 or BF16", arguments.texts.format));
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
    std::fputs("tessera-convert: unknown failure: please report it\n", stderr);
  }
  return kFailure;
}
