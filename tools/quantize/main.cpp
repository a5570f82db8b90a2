// tessera-quantize: writes a GGUF model with its weight matrices in another format.
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <tessera/extend/core/executor.hpp>
#include <tessera/extend/files/gguf_writer.hpp>
#include <tessera/extend/files/model_file.hpp>
#include <tessera/unstable/formats/weighted_rows.hpp>

#include "command_line.hpp"
#include "format_options.hpp"
#include "importance.hpp"
#include "machine_options.hpp"
#include "model_place.hpp"
#include "plan.hpp"
#include "signals.hpp"
#include "terminal_text.hpp"
#include "write_model.hpp"

namespace {

using namespace tessera;
using namespace tessera::quantize;

constexpr int kUsage = 2, kFailure = 1;

volatile std::sig_atomic_t stop_requested = 0;
void request_stop(int) { stop_requested = 1; }

constexpr const char* kFooter = R"(Formats, with their bits a weight:
  {}
Mixes, as llama.cpp makes them. Some matrices get more bits than the others:
  Q4_K_M, Q5_K_M        the value matrix of attention and the down matrix of the FFN, in the first and the last
                        eighth of the layers and in every third layer between
  Q4_K_S                the same two matrices, in a few of the first layers
  Q5_K_S                none
  Q3_K_L, Q3_K_M, Q2_K  the same two matrices, and the output matrix of attention
  IQ4_XS, IQ4_NL        the down matrix of the FFN in the first eighth of the layers; the value matrix of attention
                        if at least four query heads share a KV head
Q4_K_M is the usual choice for small files. Q6_K and Q8_0 are hard to tell from the original. (In llama.cpp, Q4_K
is another name of Q4_K_M. Here Q4_K is one format for all matrices.)

How tensors are written:
  - Weight matrices get FORMAT. Norms, biases and other tensors of one dimension become F32. Other tensors, such as
    the matrices of routers, keep their format.
  - The output matrix becomes Q6_K if FORMAT has fewer bits than Q6_K. (If there is no output matrix, this holds
    for the token embedding, which is then used as both.) --output-type and --embedding-type choose other formats.
  - Formats store rows in blocks. If the length of a row is not a multiple of 256, Q4_K becomes Q5_0, Q5_K
    becomes Q5_1, Q6_K becomes Q8_0, Q2_K and Q3_K become Q4_0, and IQ4_XS becomes IQ4_NL. If the length is not a
    multiple of 32, the matrix becomes F16. The summary counts these matrices, and --verbose names them.

--imatrix makes Q2_K to Q6_K, Q4_0 to Q5_1, IQ4_NL and IQ4_XS more accurate; formats of few bits gain most.

OUT appears when it is complete, and replaces a file of this name. IN may be the first part of a split model.

Examples:
  tessera-quantize llama-f16.gguf llama-q4_k_m.gguf Q4_K_M
  tessera-quantize llama-f16.gguf llama-q4_0.gguf q4_0 --output-type q8_0
  tessera-quantize llama-q8_0.gguf llama-f32.gguf F32 --requantize
  tessera-quantize llama-f16.gguf llama-iq4_xs.gguf IQ4_XS --imatrix llama.imatrix
Exit status: 0 done, 1 failure, 2 usage.)";

struct Arguments {
  std::string in;
  std::filesystem::path out;
  Options options;
  FormatTexts texts;
  bool verbose = false;
};

int fail(const Error& error) {
  tool::complain("tessera-quantize", error.text());
  return kFailure;
}

int usage(std::string_view message) {
  tool::complain("tessera-quantize", fmt::format("{} (--help tells more)", message));
  return kUsage;
}

// Prints the tensors that would gain from importances, but that this importance matrix does not have.
void tell_missing(const std::vector<TensorPlan>& steps, const Importance& importance) {
  std::string names;
  std::size_t count = 0;
  for (const TensorPlan& step : steps) {
    const bool helps = step.to != step.tensor->dtype && formats::heeds_importance(step.to);
    if (!helps || importance.of(step.tensor->name) != nullptr) continue;
    names.append(count++ == 0 ? "" : ", ").append(step.tensor->name);
  }
  if (count != 0) tool::complain("tessera-quantize", fmt::format("the importance matrix lacks {} tensor{}, encoded without importance: {}", count, count == 1 ? "" : "s", names));
}

int run(const Arguments& arguments) {
  const auto place = tool::model_place(arguments.in);
  if (!place) return fail(place.error());
  std::error_code ignored;
  if (std::filesystem::is_directory(*place, ignored)) return usage(fmt::format("{} is a folder: tessera-convert reads folders, and quantises too", arguments.in));
  auto model = ModelFile::open(*place);
  if (!model) return fail(model.error());
  auto steps = make_plan(*model, arguments.options);
  if (!steps) return fail(steps.error());
  const auto parts = parts_of(arguments.out, *steps, 0);
  if (!parts) return fail(parts.error());
  if (auto ok = spare_input(*parts, *place); !ok) return usage("OUT is IN: choose another name for the new model");
  Importance importance;
  if (!arguments.texts.imatrix.empty()) {
    auto read = Importance::read(arguments.texts.imatrix, *model);
    if (!read) return fail(read.error());
    importance = *std::move(read);
    tell_missing(*steps, importance);
  }
  const auto keys = [&](GgufWriter& writer) { return copy_keys(*model, &arguments.options.target, writer); };
  const Writing writing{.model = *model, .steps = *steps, .importance = importance, .threads = arguments.options.threads,
                        .verbose = arguments.verbose, .stop = &stop_requested, .keys = keys};
  const Status written = write_model(writing, *parts);
  return written ? 0 : fail(written.error());
}

int parse_and_run(int argc, char** argv) {
  Arguments arguments;
  Options& options = arguments.options;
  CLI::App app{"Writes the GGUF model IN to OUT with its weight matrices in FORMAT.", "tessera-quantize"};
  app.footer(fmt::format(kFooter, tool::formats_with_bits()));
  app.add_option("IN", arguments.in, "the model to read: a GGUF file, ollama:NAME, lmstudio:PUBLISHER/MODEL or hf:ORGANISATION/MODEL")->required()->type_name("");
  app.add_option("OUT", arguments.out, "the file to write")->required()->type_name("");
  app.add_option("FORMAT", arguments.texts.format, "the format of weight matrices, or a mix of formats, in any case")->required()->type_name("");
  add_format_options(app, arguments.texts, options);
  app.add_flag("-v,--verbose", arguments.verbose, "print a line for each tensor on standard error");
  tool::add_threads(app, options.threads);
  tool::add_version(app, "tessera-quantize");
  try {
    tool::parse(app, argc, argv);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return usage(error.what());
  }

  if (auto ok = read_formats(arguments.texts, options); !ok) return usage(ok.error().message());
  if (options.threads == 0) options.threads = static_cast<std::uint32_t>(tessera::usable_threads());
  return run(arguments);
}

}  // namespace

int main(int argc, char** argv) {
  // A signal ends the work at the next piece; the temporary file is removed, and OUT stays as it was.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) tool::on_signal(signal, request_stop);
  try {
    const int status = parse_and_run(argc, argv);
    if (tool::output_arrived()) return status;
    tool::complain("tessera-quantize", tool::kLostOutput);
  } catch (const std::exception& error) {
    tool::complain("tessera-quantize", error.what());
  } catch (...) {
    std::fputs("tessera-quantize: an unknown failure\n", stderr);
  }
  return kFailure;
}
