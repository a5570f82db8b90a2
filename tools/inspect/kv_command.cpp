#include "kv_command.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "kv_model.hpp"
#include "quantity.hpp"
#include "sizes.hpp"

namespace tessera::inspect {

const char* const kKvHelp = R"(Will it fit?
--kv-table takes a model, or bare numbers, or a model and numbers that replace the model's:
  tessera-inspect --kv-table llama-3-8b.gguf --users 64 --context 8k --memory 80GiB
  tessera-inspect --kv-table --layers 32 --kv-heads 8 --head-dim 128 --weights-bytes 16GB --users 64 --memory 80GiB
  tessera-inspect --kv-table llama-3-70b.gguf --tp 8 --memory 80GB --json
- A user is one sequence. It has layers x KV heads x (key + value) x context elements, in whole pages. With INT8 each
  key and each value of a head has a scale too (F32), which is counted.
- With --memory the table says whether the users fit. It also has the most users, and the longest context, that fit.
- With --tp all bytes are those of one device. A device has ceil(KV heads / N) heads, and 1/N of the weights. If there
  are more devices than KV heads, several devices have the same head.
- In layers with a sliding window a user has only the tokens of the window, and up to two pages more. With --window 0
  all tokens count.
- Recurrent layers have a state of fixed size instead of keys and values. --tp does not divide the state.
- Only keys, values and weights are counted. A program also needs a workspace and, for each user, logits: see --plan.
)";

namespace {

constexpr std::uint64_t kContexts[] = {1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072};

constexpr const char* kGroup = "What fits";

using Parse = Result<std::uint64_t> (*)(std::string_view);

std::uint64_t parsed(const std::string& option, std::string_view text, Parse parse) {
  const auto value = parse(text);
  if (!value) throw CLI::ValidationError(option, value.error().message());
  return *value;
}

// Replaces numbers of the model by the numbers of the options.
Status replace(std::vector<KvLayers>& groups, const KvArguments& arguments) {
  if (arguments.layers && groups.size() > 1) {
    return Error(ErrorCode::invalid_argument, "the model's layers differ: --layers cannot replace their number");
  }
  for (KvLayers& group : groups) {
    group.layers = arguments.layers.value_or(group.layers);
    group.kv_heads = arguments.kv_heads.value_or(group.kv_heads);
    group.key_dim = arguments.head_dim.value_or(group.key_dim);
    group.value_dim = arguments.head_dim.value_or(group.value_dim);
    group.window = arguments.window.value_or(group.window);
  }
  return {};
}

// Takes the first and last layers out of groups[0], and makes them a group with the type of `wide`.
Status widen(std::vector<KvLayers>& groups, const WideLayers& wide) {
  if (wide.dtype == DType::automatic) return {};
  const std::uint64_t n = std::uint64_t{wide.first} + wide.last;
  if (n > groups[0].layers) {
    return Error(ErrorCode::invalid_argument, fmt::format("{} layers are to have a type of their own, but only {} keep keys and values", n, groups[0].layers));
  }
  KvLayers ends = groups[0];
  ends.layers = n;
  ends.type = wide.dtype;
  groups[0].layers -= n;
  if (groups[0].layers == 0) groups.clear();
  if (n != 0) groups.push_back(ends);
  return {};
}

Status bare_numbers_missing(const KvArguments& arguments) {
  std::string missing;
  for (const auto& [name, value] : {std::pair{"--layers", arguments.layers},
                                    {"--kv-heads", arguments.kv_heads}, {"--head-dim", arguments.head_dim}}) {
    if (!value) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", name);
  }
  if (missing.empty()) return {};
  return Error(ErrorCode::invalid_argument, fmt::format("--kv-table without FILE needs {}", missing));
}

std::vector<std::uint64_t> default_contexts(std::uint64_t limit) {
  std::vector<std::uint64_t> contexts;
  for (const std::uint64_t context : kContexts) {
    if (limit == 0 || context < limit) contexts.push_back(context);
  }
  if (contexts.size() < std::size(kContexts)) contexts.push_back(limit);
  return contexts;
}

void add_notes(KvReport& report) {
  const KvQuestion& question = report.question;
  bool replicated = false, uneven = false, windows = false;
  for (const KvLayers& group : question.groups) {
    replicated = replicated || group.kv_heads < question.tp;
    uneven = uneven || (group.kv_heads > question.tp && group.kv_heads % question.tp != 0);
    windows = windows || group.window != 0;
  }
  const auto note = [&](bool holds, const char* text) {
    if (holds) report.notes.emplace_back(text);
  };
  note(replicated, "there are more devices than KV heads: heads are replicated, at least one on each");
  note(uneven, "the KV heads do not divide evenly: these are the bytes of a device with the most");
  note(windows, "the table counts a cache that drops pages behind the window, as generating does; a prompt that is appended in one call "
                "keeps all its pages until the call ends (--window 0 counts that)");
}

}  // namespace

std::vector<CLI::Option*> add_kv_options(CLI::App& app, KvArguments& arguments) {
  app.add_flag("--kv-table", arguments.table, "Print the bytes of keys and values for each type and context, and how\nmany users fit into --memory")
      ->group(kGroup);
  std::vector<CLI::Option*> options;
  const auto option = [&](const std::string& name, std::optional<std::uint64_t>& value, Parse parse, const char* type,
                          const char* help) {
    const auto set = [&value, name, parse](const std::string& text) { value = parsed(name, text, parse); };
    options.push_back(app.add_option_function<std::string>(name, set, help)->type_name(type)->group(kGroup));
  };
  option("--users", arguments.users, parse_number, "N", "The number of sequences at once. Default: one");
  const auto set_contexts = [&arguments](const std::string& text) {
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find(',', at), text.size());
      arguments.contexts.push_back(parsed("--context", std::string_view(text).substr(at, end - at), parse_tokens));
      at = end + 1;
    }
  };
  const char* const context_help = "The tokens of each user, or a list of such numbers\nDefault: 1k to 128k, up to the model's limit";
  options.push_back(app.add_option_function<std::string>("--context", set_contexts, context_help)
                        ->type_name("N,...")
                        ->group(kGroup));
  option("--memory", arguments.memory, tool::parse_bytes, "SIZE", "The memory of one device, such as 80GiB, 80GB or 512MiB\nDefault: no limit");
  option("--tp", arguments.tp, parse_number, "N", "The number of devices that share the KV heads and the weights\nDefault: 1");
  option("--page-tokens", arguments.page_tokens, parse_number, "N", "The tokens of a KV page: 16, 32 or 64. Default: 32");
  option("--layers", arguments.layers, parse_number, "N", "The number of layers. Default: FILE's");
  option("--kv-heads", arguments.kv_heads, parse_number, "N", "The KV heads of a layer. Default: FILE's");
  option("--head-dim", arguments.head_dim, parse_number, "N", "The elements of a head's key, and of its value\nDefault: FILE's");
  option("--window", arguments.window, parse_tokens, "N", "The tokens of every layer's sliding window; 0: none\nDefault: FILE's");
  option("--weights-bytes", arguments.weights, tool::parse_bytes, "SIZE",
         "The size of all weights, on all devices together\nDefault: FILE's, or 0");
  return options;
}

Result<KvReport> kv_report(const std::optional<KvModel>& model, const std::string& path, const KvArguments& arguments,
                           const KvTypes& types) {
  KvReport report;
  KvQuestion& question = report.question;
  if (model) {
    report.file = path;
    report.architecture = model->architecture;
    report.notes = model->notes;
    question.groups = model->groups;
    question.states = model->states;
    question.weights = model->weights;
    question.context_limit = model->context;
  } else {
    if (auto ok = bare_numbers_missing(arguments); !ok) return ok.error();
    question.groups.resize(1);
  }
  if (auto ok = replace(question.groups, arguments); !ok) return ok.error();
  if (!model || arguments.layers) {
    if (auto ok = widen(question.groups, types.wide); !ok) return ok.error();
  }
  question.weights = arguments.weights.value_or(question.weights);
  question.tp = arguments.tp.value_or(question.tp);
  question.page_tokens = arguments.page_tokens.value_or(question.page_tokens);
  if (question.page_tokens != 0) question.states.state_pages = static_cast<std::uint32_t>(kStateTokens / question.page_tokens);
  question.memory = arguments.memory;
  question.users = arguments.users;
  question.type = types.dtype;
  question.contexts = arguments.contexts.empty() ? default_contexts(question.context_limit) : arguments.contexts;
  auto rows = kv_table(question);
  if (!rows) return rows.error();
  report.rows = std::move(*rows);
  add_notes(report);
  return report;
}

}  // namespace tessera::inspect
