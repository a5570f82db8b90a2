#include "engine_setup.hpp"

#include <algorithm>
#include <cctype>
#include <set>

#include <fmt/format.h>
#include <tessera/extend/files/model_file.hpp>
#include <unistd.h>

#include "failure.hpp"
#include "interrupt.hpp"
#include "made_up.hpp"
#include "measure/limits.hpp"
#include "terminal_text.hpp"

namespace tessera::bench {

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

}  // namespace

std::shared_ptr<const ModelSource> open_model(const Options& options) {
  if (!options.model.empty()) return value(tessera::open_model(options.model));
  return std::make_shared<const ModelFile>(value(ModelFile::from_source(made_up_model(*options.shape, options.format, options.context()))));
}

Engine load_engine(const ModelSource& model, const Options& options, StatusLine& status) {
  EngineOptions loading;
  loading.kv = options.kv;
  if (options.traces) {
    loading.kv_budget = options.kv_budget;
    loading.step_rows = std::max(loading.step_rows, options.serving.limits.rows);
    if (options.kv_file != 0) {
      loading.kv_file = std::filesystem::temp_directory_path() / fmt::format("tessera-bench-{}.kv", ::getpid());
      loading.kv_file_bytes = options.kv_file;
    }
  } else {
    loading.kv.prefix = PrefixReuse::off;  // so that each run computes its prompt
  }
  loading.context = options.context();
  if (options.speculate.mtp) loading.mtp = MtpHeads::load;
  loading.tokenizer = TokenizerUse::none;
  loading.threads = options.threads;
  options.ranks.put_into(loading);
  loading.log_level = LogLevel::off;
  loading.instruction_set = options.instruction_set;
  loading.numerics = options.numerics;
  loading.backend = options.backend;
  loading.cuda = options.cuda;
  loading.progress = [&](std::uint64_t done, std::uint64_t total) {
    status.show(fmt::format("loading: {} of {} MB", done / 1000000, total / 1000000));
    return stop_requested == 0;
  };
  Engine engine = value(Engine::load(model, loading));
  status.clear();
  return engine;
}

Subject subject_of(const ModelSource& model, const Engine& engine, const Options& options) {
  Subject setting;
  setting.backend = options.backend;
  const bool cpu = options.backend == BackendKind::cpu;
  const std::string name = model.settings().has(Setting::name) ? tool::shown(engine.spec().name) : "";
  setting.shape = options.shape != nullptr ? std::string(options.shape->name)
                  : name.empty()           ? options.model.stem().string()
                                           : name;
  setting.format = options.shape != nullptr ? tool::name_of(options.format) : tool::format_of(model);
  setting.kv_dtype = lower(to_string(engine.plan().kv_dtype));
  if (const WideLayers& wide = engine.plan().kv_wide; wide.dtype != DType::automatic) {
    setting.kv_dtype += fmt::format("+{}:{}+{}", lower(to_string(wide.dtype)), wide.first, wide.last);
  }
  setting.kv_layout = engine.plan().kv_kind == KvKind::paged ? "paged" : "contiguous";
  setting.threads = engine.threads();
  setting.weights_per_token = engine.plan().weights_per_token;
  setting.kv_per_token = engine.plan().kv_per_token;
  setting.matrix_unit = cpu ? matrix_kernel().unit : "bf16";
  setting.numerics = to_string(options.numerics);
  std::set<std::string> families;
  for (const KernelUse& use : value(engine.explain())) {
    if (use.kind == Operation::device) setting.isa = use.kernel;
    if (use.kind == Operation::instruction_set) {
      setting.isa = use.kernel.substr(0, use.kernel.find(' '));  // a remark may follow the first space
      setting.isa_remark = use.kernel.substr(setting.isa.size());
      continue;
    }
    const bool product = use.kind == Operation::linear;
    if (product && families.insert(use.family).second) {
      setting.family += (setting.family.empty() ? "" : "+") + use.family;
    }
    if (!product && use.kind != Operation::attention) continue;
    setting.kernels.push_back(fmt::format("{}, {}: {} ({})", use.operation, use.dtype, use.kernel, use.family));
  }
  setting.machine = cpu ? processor_name() : setting.isa;
  return setting;
}

}  // namespace tessera::bench
