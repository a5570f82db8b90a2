// tessera-inspect: shows the contents of a model file or folder, and the memory that the model would take.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "adapter_report.hpp"
#include "command_line.hpp"
#include "folder_report.hpp"
#include "kv_command.hpp"
#include "kv_model.hpp"
#include "kv_options.hpp"
#include "machine_options.hpp"
#include "model_place.hpp"
#include "quantity.hpp"
#include "report.hpp"
#include "safetensors_report.hpp"
#include "terminal_text.hpp"

namespace {

using namespace tessera;
using namespace tessera::inspect;

constexpr int kUsage = 2, kFailure = 1;

int fail(std::string_view message) {
  tool::complain("tessera-inspect", message);
  return kFailure;
}

int usage(std::string_view message) {
  tool::complain("tessera-inspect", fmt::format("{} (--help tells more)", message));
  return kUsage;
}

// Prints the text, and returns the exit status. If the reader of a pipe ends early (`| head`), this is not a failure.
int print(const std::string& text) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (written || errno == EPIPE) return 0;
  return fail(fmt::format("cannot write: {}", std::generic_category().message(errno)));
}

struct Arguments {
  std::string file;
  DType kv_dtype = DType::automatic;
  WideLayers kv_wide;
  std::optional<std::string> key;
  std::uint32_t context = 0;
  bool metadata = false, tensors = false, plan = false, json = false;
  bool plan_options = false;  // an option of the plan was given, so the plan is shown
  KvArguments kv;
};

bool is_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

Result<KvModel> kv_model(const std::filesystem::path& path, const WideLayers& wide) {
  if (!is_folder(path)) {
    const auto file = ModelFile::open(path);
    return file ? read_kv_model(*file, wide) : Result<KvModel>(file.error());
  }
  const auto model = open_model(path);
  return model ? read_kv_model(**model, wide) : Result<KvModel>(model.error());
}

int run_kv_table(const Arguments& arguments) {
  std::optional<KvModel> model;
  if (!arguments.file.empty()) {
    const auto place = tool::model_place(arguments.file);
    if (!place) return fail(place.error().text());
    auto read = kv_model(*place, arguments.kv.layers ? WideLayers{} : arguments.kv_wide);
    if (!read) return fail(read.error().text());
    model = *std::move(read);
  }
  const auto report = kv_report(model, arguments.file, arguments.kv,
                                {.dtype = arguments.kv_dtype, .wide = arguments.kv_wide});
  if (report) return print(arguments.json ? kv_json(*report) : kv_text(*report));
  const std::string why = report.error().text();
  return report.error().code() == ErrorCode::invalid_argument ? usage(why) : fail(why);
}

int run_safetensors(const Arguments& arguments, const std::filesystem::path& place) {
  if (arguments.key || arguments.metadata || arguments.plan || arguments.plan_options) {
    return fail(fmt::format("{}: only the tensors of safetensors files are shown; other options need a GGUF file or a folder with config.json", arguments.file));
  }
  const auto listing = list_safetensors(place);
  if (!listing) return fail(listing.error().text());
  return print(arguments.json ? safetensors_json(*listing) : safetensors_text(*listing));
}

// Returns whether the place is an adapter that is shown as one. Options that ask for the keys of a GGUF file show the keys instead.
bool shows_adapter(const Arguments& arguments, const std::filesystem::path& place) {
  return !arguments.key && !arguments.metadata && !arguments.plan && !arguments.plan_options && is_adapter(place);
}

int run_adapter(const Arguments& arguments, const std::filesystem::path& place) {
  const auto listing = list_adapter(place);
  if (!listing) return fail(listing.error().text());
  return print(arguments.json ? adapter_json(*listing) : adapter_text(*listing));
}

// Returns the sections that the options ask for; without such options, all sections. The plan is left out without an error if the engine
// does not run the model (a vocabulary, another architecture) and no option asks for the plan.
Result<Sections> sections_of(const Arguments& arguments, const ModelSource& model) {
  const bool everything = !arguments.metadata && !arguments.tensors && !arguments.plan;
  Sections sections{.metadata = everything || arguments.metadata, .tensors = everything || arguments.tensors, .plan = {}};
  if (!arguments.plan && !everything) return sections;
  EngineOptions options;
  options.context = arguments.context;
  options.kv.dtype = arguments.kv_dtype;
  options.kv.wide = arguments.kv_wide;
  const auto plan = Engine::plan(model, options);
  if (!plan && (arguments.plan || arguments.plan_options)) return plan.error();
  if (plan) sections.plan = *plan;
  return sections;
}

int run_folder(const Arguments& arguments, const std::filesystem::path& place) {
  const auto model = open_model(place);
  if (!model) return fail(model.error().text());
  if (arguments.key) {
    const auto value = arguments.json ? folder_json_value(**model, *arguments.key) : folder_value(**model, *arguments.key);
    if (!value) return fail(fmt::format("{}: tessera reads no key '{}' there; without --key all keys are shown", arguments.file, *arguments.key));
    return print(*value);
  }
  const auto sections = sections_of(arguments, **model);
  if (!sections) return fail(sections.error().text());
  return print(arguments.json ? folder_json(**model, *sections) : folder_text(**model, *sections));
}

int run(const Arguments& arguments) {
  if (arguments.kv.table) return run_kv_table(arguments);
  const auto place = tool::model_place(arguments.file);
  if (!place) return fail(place.error().text());
  if (shows_adapter(arguments, *place)) return run_adapter(arguments, *place);
  if (is_safetensors(*place)) return run_safetensors(arguments, *place);
  if (is_folder(*place)) return run_folder(arguments, *place);
  const auto file = ModelFile::open(*place);
  if (!file) return fail(file.error().text());
  if (arguments.key) {
    const GgufEntry* entry = file->metadata().find(*arguments.key);
    if (entry == nullptr) return fail(fmt::format("{}: there is no key '{}'", arguments.file, *arguments.key));
    return print(arguments.json ? json_value(*entry) : raw_value(*entry));
  }
  const auto sections = sections_of(arguments, *file);
  if (!sections) return fail(sections.error().text());
  return print(arguments.json ? json_report(*file, *sections) : text_report(*file, *sections));
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    Arguments arguments;
    CLI::App app{"Shows a model (a GGUF file or a folder): its metadata, its tensors, and the memory that it would take.\n"
                 "Of an adapter (LoRA) it shows the base model, the ranks and the tensors; of a safetensors file, or of a\n"
                 "folder without config.json, the tensors.", "tessera-inspect"};
    app.add_option("FILE", arguments.file, "The model: " + std::string(tool::kModelForms) + ";\nan adapter (a GGUF file, or a folder of PEFT); or a safetensors file")->type_name("");
    auto* metadata = app.add_flag("--metadata", arguments.metadata, "Print only the metadata");
    auto* tensors = app.add_flag("--tensors", arguments.tensors, "Print only the tensors");
    auto* plan = app.add_flag("--plan", arguments.plan, "Print only the memory plan, for one session");
    const auto set_context = [&](const std::string& text) {
      const auto tokens = parse_tokens(text);
      if (!tokens) throw CLI::ValidationError("--ctx", tokens.error().message());
      if (*tokens > UINT32_MAX) throw CLI::ValidationError("--ctx", fmt::format("{} tokens are too many: give at most 4294967295", *tokens));
      arguments.context = static_cast<std::uint32_t>(*tokens);
    };
    auto* context =
        app.add_option_function<std::string>("--ctx", set_context, "Plan a context of this many tokens, such as 8192 or 8k\nDefault: the model's own limit")
            ->type_name("N");
    auto* dtype = tool::add_kv_dtype(app, arguments.kv_dtype, "Plan, or compute the KV table, for keys and values of this type\nDefault: auto");
    auto* wide = tool::add_kv_wide(app, arguments.kv_wide);
    auto* key =
        app.add_option("--key", arguments.key, "Print the value of this key of the metadata and nothing else; an\narray has a line for each element");
    app.add_flag("--json", arguments.json, "Print JSON instead of tables, with arrays in full");
    const auto kv_options = add_kv_options(app, arguments.kv);
    tool::add_version(app, "tessera-inspect");
    app.footer(std::string(kKvHelp) + "Exit status: 0 done, 1 failure, 2 usage.");
    try {
      tool::parse(app, argc, argv);
    } catch (const CLI::CallForHelp&) {
      return print(app.help());
    } catch (const CLI::CallForVersion& asked) {
      return print(std::string(asked.what()) + "\n");
    } catch (const CLI::ParseError& error) {
      return usage(error.what());
    }
    const bool table = arguments.kv.table;
    for (const CLI::Option* option : kv_options) {
      if (option->count() > 0 && !table) return usage(option->get_name() + " goes with --kv-table");
    }
    for (const CLI::Option* option : {metadata, tensors, plan, context, key}) {
      if (option->count() > 0 && table) return usage(option->get_name() + " does not go with --kv-table");
    }
    if (arguments.file.empty() && !table) return usage("name a FILE");
    arguments.plan_options = context->count() > 0 || dtype->count() > 0 || wide->count() > 0;
    return run(arguments);
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
