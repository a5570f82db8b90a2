// Reads a folder of PEFT: adapter_config.json and adapter_model.safetensors.
#include <algorithm>
#include <cctype>
#include <system_error>

#include "adapters/adapter_base.hpp"
#include "adapters/adapter_builder.hpp"
#include "adapters/peft/config.hpp"
#include "adapters/peft/matrices.hpp"
#include "adapters/peft/modules.hpp"
#include "adapters/peft/placement.hpp"
#include "adapters/peft/targets.hpp"
#include "adapters/readers.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"
#include "files/safetensors/safetensors_header.hpp"
#include "hub/shape.hpp"
#include "os/file.hpp"

namespace tessera::detail::adapters {

namespace {

namespace fs = std::filesystem;
constexpr std::string_view kWeightsFile = "adapter_model.safetensors";
constexpr std::string_view kPeftConfig = "adapter_config.json";

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Returns the tables (hub::Table: names and arrangements of the tensors of one model type) that may describe the adapter's model: all
// tables of the model's architecture. Tables come first if the name of the adapter's base or of the model contains their model type. This
// order matters, because two model types of one architecture can have the same names with different arrangements (Helium and Llama).
std::vector<const hub::Table*> likely_tables(const AdapterBase& base, const PeftConfig& config) {
  std::vector<const hub::Table*> tables = hub::tables_of(base.architecture);
  const auto own_name = base.settings.string_or(Setting::name, "");
  const std::string names = lower(config.base) + " " + (own_name ? lower(*own_name) : "");
  std::stable_partition(tables.begin(), tables.end(), [&](const hub::Table* table) { return names.find(table->model_type) != std::string::npos; });
  return tables;
}

// One module, and the tensors of the model that are made from its weights.
struct PlacedModule {
  const PeftModule* module;
  Targets targets;
};

std::uint32_t wrappers_of(const std::vector<PeftModule>& modules, const PeftModule& module) noexcept {
  const auto first = std::ranges::lower_bound(modules, module.name, {}, &PeftModule::name);
  const auto last = std::ranges::upper_bound(modules, module.name, {}, &PeftModule::name);
  return static_cast<std::uint32_t>(last - first);
}

Result<std::vector<PlacedModule>> place_modules(const hub::Table& table, const AdapterBase& base, const PeftModules& modules,
                                                const PeftConfig& config) {
  std::vector<PlacedModule> placed;
  for (const PeftModule& module : modules.modules) {
    const ModuleName name{
        .name = module.name, .depth = module.depth, .wrappers = wrappers_of(modules.modules, module), .parameters = config.parameters};
    TESSERA_TRY(Targets targets, find_targets(table, base, name));
    placed.push_back({&module, std::move(targets)});
  }
  return placed;
}

// Finds the model's tensors for all modules, with the first of the likely tables that fits. If no table fits, returns the first table's
// error.
Result<std::vector<PlacedModule>> place_by_tables(const AdapterBase& base, const PeftModules& modules, const PeftConfig& config,
                                                  const std::string& place) {
  Error first_error;
  for (const hub::Table* table : likely_tables(base, config)) {
    auto placed = place_modules(*table, base, modules, config);
    if (placed || placed.error().code() == ErrorCode::out_of_memory) return placed;
    if (first_error.empty()) first_error = placed.error();
  }
  if (!first_error.empty()) return Error(first_error.code(), first_error.message(), place);
  return error_at(ErrorCode::unsupported, place,
                  "tessera does not know the names of modules in a model of architecture \"{}\": convert the adapter to GGUF",
                  printable(base.architecture));
}

hub::Shape shape_of_base(const AdapterBase& base) noexcept {
  hub::Shape shape = hub::shape_of_model(base.settings);
  if (base.heads != 0) shape.heads = base.heads;
  if (base.kv_heads != 0) shape.kv_heads = base.kv_heads;
  return shape;
}

class PeftReader {
 public:
  PeftReader(AdapterBuilder& builder, PeftConfig& config, const SafetensorsFolder& file, std::stop_token stop) noexcept
      : builder_(builder), config_(config), file_(file), stop_(std::move(stop)), shape_(shape_of_base(builder.base())) {}

  // Adds all modules. Modules that are single experts of one tensor are added together.
  [[nodiscard]] Status add(std::vector<PlacedModule> placed) {
    const auto tensor_of_experts = [](const PlacedModule& own) {
      const Target& first = own.targets.targets.front();
      return first.expert ? std::int64_t{first.tensor} : std::int64_t{-1};
    };
    std::ranges::stable_sort(placed, {}, tensor_of_experts);
    for (std::size_t i = 0; i < placed.size();) {
      if (stop_.stop_requested()) return error_at(ErrorCode::cancelled, builder_.file(), "reading the adapter was cancelled");
      std::size_t end = i + 1;
      if (tensor_of_experts(placed[i]) >= 0) {
        while (end < placed.size() && tensor_of_experts(placed[end]) == tensor_of_experts(placed[i])) ++end;
        TESSERA_TRY_STATUS(add_experts(std::span(placed).subspan(i, end - i)));
      } else {
        TESSERA_TRY_STATUS(placed[i].module->is_embedding ? add_embedding(placed[i]) : add_module(placed[i]));
      }
      i = end;
    }
    return {};
  }

  // Checks the copies of the model's own table of embeddings and output matrix, which PEFT saves with an adapter: they must have the
  // model's shape.
  [[nodiscard]] Status check_copies(const PeftModules& modules) const {
    const AdapterBase& base = builder_.base();
    for (const auto& [module, tensor] : modules.copies) {
      if (tensor->dims.size() == 2 && tensor->dims[0] == base.vocab_size) continue;
      return error_at(
          ErrorCode::unsupported, builder_.file(),
          "tensor {}: it has {} rows, and the model {} tokens: tokens were added for the adapter, which needs the model with these tokens",
          printable(tensor->name, 160), tensor->dims.empty() ? 0 : tensor->dims[0], base.vocab_size);
    }
    return {};
  }

 private:
  [[nodiscard]] const AdaptedTensor& tensor_of(const Target& target) const noexcept { return builder_.base().tensors[target.tensor]; }

  [[nodiscard]] Error misfit(const PeftModule& module, const Target& target, std::string_view half, std::string_view what, std::uint64_t has,
                             std::uint64_t expected) const {
    return error_at(ErrorCode::corrupt_file, builder_.file(),
                    "{} ({}): {} has {} {}, the model's matrix has {}: the adapter belongs to another model", printable(module.name, 160),
                    tensor_of(target).name, half, has, what, expected);
  }

  // Checks that a module's matrices (for experts: the matrices of all experts together) have the shape of the model's tensors.
  [[nodiscard]] Status check(const PeftModule& module, const Targets& targets, const PeftMatrices& from, std::uint64_t count) const {
    std::uint64_t rows = 0, columns = 0;
    for (const Target& target : targets.targets) {
      const AdaptedTensor& tensor = tensor_of(target);
      const bool is_turned = target.row->role == Role::latent_k_b;  // the rows of the tensor are the columns of the matrix
      rows += (is_turned ? tensor.inputs : tensor.outputs) * tensor.count / count;
      columns = is_turned ? tensor.outputs : tensor.inputs;
      if (target.row->role == Role::token_embd) {
        return error_at(ErrorCode::unsupported, builder_.file(),
                        "{}: the table of embeddings is adapted like a product; PEFT adapts it with lora_embedding_A", printable(module.name, 160));
      }
    }
    const Target& first = targets.targets.front();
    if (from.inputs != columns) return misfit(module, first, "lora_A", "columns", from.inputs, columns);
    if (from.outputs != rows) return misfit(module, first, "lora_B", "rows", from.outputs, rows);
    return {};
  }

  [[nodiscard]] Status add_module(const PlacedModule& own) {
    const PeftModule& module = *own.module;
    const std::uint64_t experts = own.targets.is_parameter ? tensor_of(own.targets.targets.front()).count : 1;
    TESSERA_TRY_STATUS(check_parameter(module, experts));
    TESSERA_TRY(const std::uint32_t rank, builder_.check_rank(module.a->dims[0] / experts, module.b->dims[1] / experts, module.a->name));
    TESSERA_TRY(PeftMatrices from, read_matrices(file_, module, experts, builder_));
    TESSERA_TRY_STATUS(check(module, own.targets, from, experts));
    TESSERA_TRY(const float scale, scale_of(own.targets.full_name, rank));
    return place_all(own, from, scale);
  }

  // Checks a parameter that has the weights of all experts. In the file, its dimension "rank" is the rank times the number of experts.
  [[nodiscard]] Status check_parameter(const PeftModule& module, std::uint64_t experts) const {
    if (experts == 1) return {};
    if (module.a->dims[0] % experts != 0 || module.b->dims[1] % experts != 0) {
      return error_at(ErrorCode::corrupt_file, builder_.file(),
                      "{}: lora_A has {} rows, which are not a rank for each of the {} experts: the adapter belongs to another model",
                      printable(module.name, 160), module.a->dims[0], experts);
    }
    if (module.lengths != nullptr) {
      return error_at(ErrorCode::unsupported, builder_.file(), "tensor {}: DoRA of experts is not implemented", printable(module.lengths->name, 160));
    }
    return {};
  }

  [[nodiscard]] Result<float> scale_of(const std::string& name, std::uint64_t rank) {
    auto scale = config_.scale_of(name, rank);
    if (!scale) return Error(scale.error().code(), scale.error().message(), builder_.file());
    return scale;
  }

  [[nodiscard]] Status place_all(const PlacedModule& own, const PeftMatrices& from, float scale) {
    for (const Target& target : own.targets.targets) {
      const AdaptedTensor& tensor = tensor_of(target);
      const auto placement = place(target, tensor, shape_, from);
      if (!placement) {
        return error_at(ErrorCode::corrupt_file, builder_.file(),
                        "{} ({}): its shape [{}, {}] does not fit the model: the adapter belongs to another model", printable(own.module->name, 160),
                        tensor.name, from.outputs, from.inputs);
      }
      if (!from.lengths.empty() && placement->transposed != 0) {
        return error_at(ErrorCode::unsupported, builder_.file(), "{} ({}): DoRA of a matrix that tessera keeps transposed is not implemented",
                        printable(own.module->name, 160), tensor.name);
      }
      TESSERA_TRY_STATUS(builder_.take(from.a.size() + placement->rows.size() * from.rank * bytes_of_number(from.dtype), own.module->a->name));
      AdapterTensor made = arranged(*placement, tensor, from);
      made.tensor = target.tensor;
      made.scale = scale;
      TESSERA_TRY_STATUS(builder_.add(std::move(made), own.module->name));
    }
    return {};
  }

  // Adds modules that are single experts of one tensor. An expert without a module does not change.
  [[nodiscard]] Status add_experts(std::span<const PlacedModule> modules) {
    const Target& target = modules.front().targets.targets.front();
    const AdaptedTensor& tensor = tensor_of(target);
    ExpertStack stack(tensor.count);
    for (const PlacedModule& own : modules) {
      const std::uint32_t expert = *own.targets.targets.front().expert;
      if (expert >= tensor.count) {
        return error_at(ErrorCode::corrupt_file, builder_.file(), "{}: the model has {} experts: the adapter belongs to another model",
                        printable(own.module->name, 160), tensor.count);
      }
      if (own.module->lengths != nullptr) {
        return error_at(ErrorCode::unsupported, builder_.file(), "tensor {}: DoRA of experts is not implemented",
                        printable(own.module->lengths->name, 160));
      }
      TESSERA_TRY(const std::uint32_t rank, builder_.check_rank(own.module->a->dims[0], own.module->b->dims[1], own.module->a->name));
      TESSERA_TRY(PeftMatrices from, read_matrices(file_, *own.module, 1, builder_));
      TESSERA_TRY_STATUS(check(*own.module, own.targets, from, tensor.count));
      TESSERA_TRY(const float scale, scale_of(own.targets.full_name, rank));
      stack.add(expert, std::move(from), scale);
    }
    TESSERA_TRY_STATUS(builder_.take(stack.bytes(), modules.front().module->a->name));
    const PeftMatrices all = stack.stacked();
    return place_all(modules.front(), all, stack.scale());
  }

  [[nodiscard]] Status add_embedding(const PlacedModule& own) {
    const PeftModule& module = *own.module;
    const Target& target = own.targets.targets.front();
    if (target.row->role != Role::token_embd || target.row->arrange != nullptr) {
      return error_at(ErrorCode::unsupported, builder_.file(), "{}: of the tables of embeddings, tessera adapts the tokens' alone",
                      printable(module.name, 160));
    }
    if (module.lengths != nullptr) {
      return error_at(ErrorCode::unsupported, builder_.file(), "tensor {}: DoRA of the table of embeddings is not implemented",
                      printable(module.lengths->name, 160));
    }
    if (!config_.invocation.empty()) {
      return error_at(ErrorCode::unsupported, builder_.file(),
                      "{}: the table of embeddings in an adapter with alora_invocation_tokens is not implemented", printable(module.name, 160));
    }
    const HalfShape a{.columns = module.a->dims[0], .rows = module.a->dims[1]}, b{.columns = module.b->dims[1], .rows = module.b->dims[0]};
    TESSERA_TRY(const std::uint32_t rank, builder_.check_shapes(target.tensor, true, a, b, module.name));
    TESSERA_TRY(PeftMatrices from, read_matrices(file_, module, 1, builder_));
    TESSERA_TRY_STATUS(builder_.take(from.a.size() + from.b.size(), module.a->name));
    TESSERA_TRY(const float scale, scale_of(own.targets.full_name, rank));
    AdapterTensor made{.tensor = target.tensor, .rank = rank, .dtype = from.dtype, .scale = scale, .is_embedding = true};
    made.a = transposed_matrix(from.a, rank, from.inputs, bytes_of_number(from.dtype));
    made.b = std::move(from.b);
    return builder_.add(std::move(made), module.name);
  }

  AdapterBuilder& builder_;
  PeftConfig& config_;
  const SafetensorsFolder& file_;
  std::stop_token stop_;
  hub::Shape shape_;
};

Status check_weights_file(const fs::path& folder) {
  std::error_code ignored;
  if (fs::exists(folder / kWeightsFile, ignored)) return {};
  if (fs::exists(folder / "adapter_model.bin", ignored)) {
    return error_at(ErrorCode::unsupported, os::text_of(folder / "adapter_model.bin"),
                    "tessera does not read pickles, which can run code: save the adapter again with a newer PEFT, as adapter_model.safetensors");
  }
  return error_at(ErrorCode::not_found, os::text_of(folder / kWeightsFile),
                  "there is no such file: download it to the folder of adapter_config.json");
}

// Checks the size of the header before the header is parsed (most_adapter_tensors()). A tensor takes about 160 bytes of a header.
Status check_header_size(const fs::path& path, const AdapterBase& base) {
  constexpr std::uint64_t kBytesOfTensor = 256, kBytesOfNotes = std::uint64_t{1} << 20;
  TESSERA_TRY(const auto source, open_file(path));
  TESSERA_TRY(const std::uint64_t bytes, safetensors_text_bytes(*source));
  const std::uint64_t most = kBytesOfNotes + kBytesOfTensor * most_adapter_tensors(base);
  if (bytes <= most) return {};
  return error_at(ErrorCode::corrupt_file, source->name(),
                  "its header has {} bytes, and that of an adapter for this model has at most {}: the file is no adapter, or it belongs to "
                  "another model",
                  bytes, most);
}

}  // namespace

std::string name_of_folder(const fs::path& folder) {
  std::error_code ignored;
  const fs::path whole = fs::absolute(folder, ignored).lexically_normal();
  return os::text_of(whole.has_filename() ? whole.filename() : whole.parent_path().filename());
}

fs::path peft_folder_of(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return fs::exists(path / kPeftConfig, ignored) || fs::exists(path / kWeightsFile, ignored) ? path : fs::path();
  if (path.filename() != fs::path(kPeftConfig) && path.filename() != fs::path(kWeightsFile)) return {};
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

Result<AdapterFile> read_peft(const fs::path& folder, const AdapterBase& base, const std::stop_token& stop) {
  TESSERA_TRY(PeftConfig config, PeftConfig::read(folder));
  TESSERA_TRY_STATUS(check_weights_file(folder));
  TESSERA_TRY_STATUS(check_header_size(folder / kWeightsFile, base));
  TESSERA_TRY(const SafetensorsFolder file, SafetensorsFolder::open(folder / kWeightsFile, stop));
  const std::string place = os::text_of(folder / kWeightsFile);
  TESSERA_TRY(const PeftModules modules, list_modules(file, place));
  TESSERA_TRY(auto placed, place_by_tables(base, modules, config, place));
  std::uint64_t bytes = 0;
  for (const SafetensorsTensor& tensor : file.tensors()) bytes += tensor.bytes;
  AdapterBuilder builder(base, place, most_bytes_for(bytes));
  PeftReader reader(builder, config, file, stop);
  TESSERA_TRY_STATUS(reader.check_copies(modules));
  TESSERA_TRY_STATUS(reader.add(std::move(placed)));
  return builder.finish(name_of_folder(folder), config.base, config.invocation);
}

}  // namespace tessera::detail::adapters
