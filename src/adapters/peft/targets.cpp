#include "adapters/peft/targets.hpp"

#include <algorithm>
#include <charconv>

#include "adapters/adapter_base.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"
#include "hub/tensor_list.hpp"

namespace tessera::detail::adapters {

namespace {

using hub::Table;
using hub::TensorRow;

// A tensor's or module's name without its prefix ("model.") and without the layer's number: "self_attn.q_proj", layer 3.
struct LocalName {
  std::string_view text;
  std::optional<std::uint32_t> layer = {};
};

std::optional<std::uint32_t> number_in_front(std::string_view& text) noexcept {
  std::uint32_t number = 0;
  const auto [behind, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(behind - text.data()));
  return number;
}

// Returns all ways to read a name, because several prefixes may fit: as a name in a layer (with the layer's number), and as a name outside
// of the layers.
std::vector<LocalName> local_names(std::string_view name, const Table& table) {
  std::vector<LocalName> found;
  for (const std::string_view prefix : hub::known_prefixes()) {
    // The output matrix is outside of the prefix: "language_model.lm_head" beside "language_model.model.".
    constexpr std::string_view kModel = "model.";
    if (const std::string_view outer = prefix.substr(0, prefix.size() - std::min(prefix.size(), kModel.size()));
        !outer.empty() && prefix.ends_with(kModel) && name.starts_with(outer)) {
      found.push_back({name.substr(outer.size())});
    }
    if (!name.starts_with(prefix)) continue;
    std::string_view rest = name.substr(prefix.size());
    found.push_back({rest});
    if (!rest.starts_with(table.layers)) continue;
    rest.remove_prefix(table.layers.size());
    const auto layer = number_in_front(rest);
    if (layer && rest.starts_with('.')) found.push_back({rest.substr(1), layer});
  }
  return found;
}

// Returns whether `text` fits `row`, a name in a table. A '*' in `row` stands for an expert's number: if there is one, sets `expert` to the
// number in `text`.
bool matches_row(std::string_view row, std::string_view text, std::optional<std::uint32_t>& expert) noexcept {
  const std::size_t star = row.find('*');
  if (star == std::string_view::npos) return row == text;
  if (!text.starts_with(row.substr(0, star))) return false;
  text.remove_prefix(star);
  expert = number_in_front(text);
  return expert && text == row.substr(star + 1);
}

// Adds to `out` the model's tensors that are made from a row of the table. This is one tensor. Exception: if the row's tensor is fused (Q,
// K and V in one) but the model has its parts as separate tensors, all parts are added. Returns false if the model has neither.
bool add_targets(const TensorRow& row, std::uint32_t layer, std::optional<std::uint32_t> expert, const AdapterBase& base, std::vector<Target>& out) {
  const RoleRow& role = row_of(row.role);
  const auto index_of = [&](Role wanted) { return find_adapted(base, row_of(wanted).tensor_name(layer)); };
  std::ptrdiff_t tensor = index_of(row.role);
  if (tensor < 0 && row.role == Role::output) tensor = index_of(Role::token_embd);  // tied
  if (tensor >= 0) {
    const bool is_known = std::ranges::any_of(out, [&](const Target& target) { return target.tensor == static_cast<std::uint32_t>(tensor); });
    if (!is_known) out.push_back({.row = &row, .tensor = static_cast<std::uint32_t>(tensor), .expert = expert});
    return true;
  }
  if (!role.is_fused() || role.turns != nullptr || role.by_columns) return false;
  std::vector<Target> parts;
  std::uint64_t first_row = 0;
  for (const Role part : role.parts) {
    if (part == Role::count) break;
    const std::ptrdiff_t own = index_of(part);
    if (own < 0) return false;
    parts.push_back({.row = &row, .tensor = static_cast<std::uint32_t>(own), .first_row = first_row, .is_part = true, .expert = expert});
    first_row += base.tensors[static_cast<std::size_t>(own)].outputs;
  }
  out.insert(out.end(), parts.begin(), parts.end());
  return true;
}

bool is_of_model(const TensorRow& row, const AdapterBase& base) noexcept {
  const auto experts = base.settings.unsigned_integer_or(Setting::n_experts, 0);
  const bool has_experts = experts && *experts > 0;
  return (row.of != hub::Of::models_with_experts || has_experts) && (row.of != hub::Of::models_without_experts || !has_experts);
}

// Calls fn(row) for each row of the table that `local` may refer to. If `local` has a layer's number, these are the rows of matrices in
// layers; if not, the rows of matrices outside of layers. Matrices of draft heads are left out.
template <class Fn>
void for_rows(const Table& table, const AdapterBase& base, const LocalName& local, Fn&& fn) {
  for (const hub::TensorRows rows : table.rows) {
    for (const TensorRow& row : rows) {
      const RoleRow& role = row_of(row.role);
      if (role.is_matrix() && (role.owner == Owner::layer) == local.layer.has_value() && role.owner != Owner::draft_head && is_of_model(row, base)) {
        fn(row);
      }
    }
  }
}

// Returns the names of a module's parameters that are matrices, in the order in which the module defines them: "gate_up_proj", "down_proj".
std::vector<std::string_view> parameters_of(const Table& table, const AdapterBase& base, const LocalName& local) {
  std::vector<std::string_view> names;
  for_rows(table, base, local, [&](const TensorRow& row) {
    if (!row.name.starts_with(local.text) || row.name.substr(local.text.size()).empty() || row.name[local.text.size()] != '.') return;
    const std::string_view name = row.name.substr(local.text.size() + 1);
    if (name.find('.') == std::string_view::npos && name.find('*') == std::string_view::npos && std::ranges::find(names, name) == names.end()) {
      names.push_back(name);
    }
  });
  return names;
}

// Returns the name of the parameter that one wrapper of a module adapts (a module of experts has several: "gate_up_proj", "down_proj"). The
// file has no such name, only the wrapper's depth. PEFT puts a wrapper around the module for each adapted parameter, in the order in which
// the module defines the parameters. So the innermost wrapper belongs to the first adapted parameter. `names`: all parameters of the
// module, in this order. If the module has as many wrappers as parameters, all are adapted. If it has fewer, the adapted ones are those
// that the adapter's setting target_parameters names (ModuleName::parameters). Returns nullopt if the number of wrappers still does not
// fit.
std::optional<std::string_view> choose_parameter(std::vector<std::string_view> names, const ModuleName& module) {
  if (module.wrappers < names.size()) {
    std::erase_if(names, [&](std::string_view name) {
      const std::string full = fmt::format("{}.{}", module.name, name);
      return std::ranges::none_of(module.parameters, [&](const std::string& wanted) { return full == wanted || full.ends_with("." + wanted); });
    });
  }
  if (names.size() != module.wrappers || module.depth >= names.size()) return std::nullopt;
  return names[names.size() - 1 - module.depth];
}

std::string with_architecture(const AdapterBase& base) { return fmt::format("the model ({})", printable(base.architecture)); }

}  // namespace

Result<Targets> find_targets(const Table& table, const AdapterBase& base, const ModuleName& module) {
  bool is_known = false, is_whole = true;
  for (const LocalName& local : local_names(module.name, table)) {
    if (local.layer && *local.layer >= base.n_layers) {
      return make_error(ErrorCode::corrupt_file, "module {}: the model has {} layers: the adapter belongs to another model",
                        printable(module.name, 160), base.n_layers);
    }
    Targets found;
    const auto add_rows_named = [&](const std::string& name) {
      for_rows(table, base, local, [&](const TensorRow& row) {
        std::optional<std::uint32_t> expert;
        if (!matches_row(row.name, name, expert)) return;
        is_known = true;
        is_whole = add_targets(row, local.layer.value_or(0), expert, base, found.targets) && is_whole;
      });
    };
    if (module.wrappers == 1) add_rows_named(fmt::format("{}.weight", local.text));
    found.full_name = module.name;
    if (!is_known) {
      const auto parameter = choose_parameter(parameters_of(table, base, local), module);
      if (parameter) {
        add_rows_named(fmt::format("{}.{}", local.text, *parameter));
        found.full_name = fmt::format("{}.{}", module.name, *parameter);
      }
    }
    if (found.targets.empty() || !is_whole) continue;
    const Target& first = found.targets.front();
    found.is_parameter = !first.expert && base.tensors[first.tensor].count > 1 && row_of(first.row->role).count == extent::experts;
    return found;
  }
  if (is_known) {
    return make_error(ErrorCode::unsupported, "module {}: {} has no such matrix as a tensor of its own", printable(module.name, 160),
                      with_architecture(base));
  }
  return make_error(ErrorCode::unsupported,
                    "module {}: {} has no such matrix: the adapter belongs to another model, or changes what tessera cannot adapt",
                    printable(module.name, 160), with_architecture(base));
}

}  // namespace tessera::detail::adapters
