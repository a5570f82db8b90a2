// The modes that need no weights, and the list of kernels.
#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "adapters.hpp"
#include "failure.hpp"
#include "interrupt.hpp"
#include "kv_types.hpp"
#include "model.hpp"
#include "modes.hpp"
#include "system/program.hpp"
#include "output/output.hpp"
#include "prompt.hpp"
#include "output/terminal.hpp"
#include "terminal_text.hpp"

using tessera::Engine;
using tessera::Plan;
using tessera::Token;
using tessera::Tokenizer;

namespace {

Tokenizer open_tokenizer(const Options& options) {
  return value(Tokenizer::from_settings(open_model(options)->settings()));
}

std::string plan_text(const std::string& model, const Plan& plan) {
  const std::string kv = fmt::format("{} tokens, {}, {} a token", plan.context, tessera::tool::kv_types_text(plan.kv_dtype, plan.kv_wide),
                                     human_bytes(plan.kv_per_token));
  struct Line {
    const char* what;
    std::uint64_t bytes;
    std::string note;
  };
  const std::string_view device = plan.device_peak != 0 ? "on the GPU" : "";
  std::vector<Line> lines = {
      {"weights", plan.weights, fmt::format("{} read for each token", human_bytes(plan.weights_per_token))},
      {"keys and values", plan.kv, kv},
      {"workspace", plan.workspace, std::string(device)},
      {"tokenizer, tables", plan.host, ""},
      {"while loading", plan.loading, "in passing"},
      {"peak", plan.peak, device.empty() ? "the most at any time" : "of the host's memory, at any time"},
  };
  if (plan.device_peak != 0) lines.push_back({"peak on the GPU", plan.device_peak, "weights, keys and values, workspace"});
  std::string text = fmt::format("memory for {} with one full session\n", tessera::tool::shown(model));
  for (const Line& line : lines) {
    text += fmt::format("  {:<18} {:>10} {:>15}", line.what, human_bytes(line.bytes), line.bytes);
    if (!line.note.empty()) text += "  " + line.note;
    text += '\n';
  }
  return text;
}

// Returns a table with columns as wide as their widest cell.
std::string kernel_table(std::string_view numerics, std::span<const tessera::KernelUse> uses) {
  std::vector<std::array<std::string, 5>> rows = {{"operation", "kernel", "family", "type", "backend"}};
  rows.push_back({"numerics", std::string(numerics), "", "-", "-"});  // the option's name; families: docs/reference/numerics.md
  for (const auto& use : uses) rows.push_back({use.operation, use.kernel, use.family, use.dtype, use.backend});
  std::array<std::size_t, 5> widths{};
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

// Returns a line for each adapter of --lora.
std::string adapter_lines(std::span<const tessera::AdapterUse> adapters) {
  std::string text;
  for (const tessera::AdapterUse& use : adapters) {
    text += fmt::format("adapter {}: {}, scale {}", adapter_name(use.adapter), adapter_words(use.adapter), use.scale);
    if (!use.adapter.base_name().empty()) text += fmt::format(", made for {}", tessera::tool::shown(use.adapter.base_name()));
    if (!use.adapter.invocation().empty()) text += fmt::format(", active from an invocation of {} tokens on", use.adapter.invocation().size());
    text += '\n';
  }
  return text;
}

std::vector<Token> ids_to_decode(const Options& options) {
  if (options.prompt_ids) return *options.prompt_ids;
  if (auto ids = parse_ids(read_prompt(options))) return *std::move(ids);
  if (options.prompt) {
    throw UsageError(fmt::format("--prompt: \"{}\" are not token ids; give numbers, such as \"1 403 407\"", *options.prompt));
  }
  const std::string name = *options.prompt_file == "-" ? "standard input" : *options.prompt_file;
  throw Failure(tessera::ErrorCode::invalid_argument,
                fmt::format("{}: these are not token ids; give numbers, such as \"1 403 407\"", name));
}

}  // namespace

int tokenize(const Options& options) {
  const std::string text = read_prompt(options);
  const std::vector<Token> tokens = encode_as_model(options, open_tokenizer(options), text);
  print(options.output == OutputKind::json ? tokens_json(tokens) : fmt::format("{}\n", fmt::join(tokens, " ")));
  return 0;
}

int detokenize(const Options& options) {
  const std::vector<Token> ids = ids_to_decode(options);
  const std::string text = value(open_tokenizer(options).decode(ids));
  if (options.output == OutputKind::json) {
    print(text_json(text));
    return 0;
  }
  // Prints nothing but the text, so that a file that was tokenized comes out the same. Adds a line end only on a terminal.
  const bool add_line_end = tessera::tool::is_terminal(tessera::tool::Standard::output) && !text.ends_with('\n');
  print(add_line_end ? text + "\n" : text);
  return 0;
}

int show_plan(const Options& options) {
  const auto source = open_model(options);
  const Plan plan = value(Engine::plan(*source, engine_options(options)));
  const std::string name = model_name(options, source->settings());
  print(options.output == OutputKind::json ? plan_json(name, plan) : plan_text(name, plan));
  return 0;
}

int show_kernels(const Options& options) {
  const Interrupt interrupt;
  const Engine engine = load_engine(options, interrupt.token());
  const std::vector<tessera::AdapterUse> adapters = load_adapters(options, engine, interrupt.token());
  const std::vector<tessera::KernelUse> uses = value(engine.explain());
  const std::string_view numerics = to_string(options.numerics);
  print(options.output == OutputKind::json ? explain_json(engine.spec().name, numerics, uses, adapters)
                                           : kernel_table(numerics, uses) + adapter_lines(adapters));
  return 0;
}
