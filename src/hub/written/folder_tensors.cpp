#include "hub/written/folder_tensors.hpp"

#include <algorithm>
#include <unordered_map>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "hub/shape.hpp"
#include "hub/tensor_list.hpp"

namespace tessera::detail::hub {

namespace {

// Returns a recipe that copies a tensor of these dims. Its part has no matrix, because the recipe does not read anything.
Recipe recipe_of(const FolderDims& dims) {
  Recipe recipe{.dtype = DType::f32, .n_dims = dims.n, .dims = dims.dims};
  recipe.parts.push_back({.matrix = nullptr, .rows = recipe.values() / dims.dims[0], .columns = dims.dims[0]});
  return recipe;
}

// Returns whether the row is for a tensor outside of the model's prefix, such as "lm_head.weight" beside "model.layers...".
bool stands_beside(const TensorRow& row) noexcept {
  return row.role == Role::output || row.role == Role::output_bias || row.name.starts_with("classifier.") || row.name.starts_with("head.");
}

class TensorPlanner {
 public:
  TensorPlanner(const ModelSource& model, const Table& table, std::uint32_t n_layers, std::uint32_t n_further)
      : model_(model), table_(table), n_layers_(n_layers), n_further_(n_further), shape_(shape_of_model(model.settings())),
        is_used_(model.tensors().size()) {}

  Result<std::vector<WrittenTensor>> run() {
    has_experts_ = has_in_any_layer(Role::router);
    each_row(Owner::model, [&](const TensorRow& row) { return add(row, 0); });
    for (std::uint32_t layer = 0; status_ && layer < n_layers_ + n_further_; ++layer) {
      each_row(Owner::layer, [&](const TensorRow& row) { return add(row, layer); });
    }
    TESSERA_TRY_STATUS(status_);
    TESSERA_TRY_STATUS(check_all_used());
    return std::move(tensors_);
  }

 private:
  // Calls act() for the rows of the model's tensors if `owner` is Owner::model, otherwise for all other rows.
  template <class Act>
  void each_row(Owner owner, const Act& act) {
    for (std::size_t list = 0; list < table_.rows.size(); ++list) {
      for (const TensorRow& row : table_.rows[list]) {
        const bool is_asked = (row_of(row.role).owner == Owner::model) == (owner == Owner::model);
        if (status_ && is_asked && !is_named_later(row.role, list)) status_ = act(row);
      }
    }
  }

  // Returns whether a later list of the table also has a row for `role`. `list`: index of the present list. Lists that several types
  // share come first, so a later list has the name that this type itself uses for the tensor, and that name is written.
  [[nodiscard]] bool is_named_later(Role role, std::size_t list) const {
    for (std::size_t later = list + 1; later < table_.rows.size(); ++later) {
      for (const TensorRow& row : table_.rows[later]) {
        if (row.role == role && !is_for_others(row)) return true;
      }
    }
    return false;
  }

  // Returns whether this model does not use the row, because the row is only for models with experts, or only for models without experts.
  [[nodiscard]] bool is_for_others(const TensorRow& row) const noexcept {
    return (row.of == Of::models_with_experts && !has_experts_) || (row.of == Of::models_without_experts && has_experts_);
  }

  [[nodiscard]] bool has_in_any_layer(Role role) const {
    for (std::uint32_t layer = 0; layer < n_layers_; ++layer) {
      if (model_.find_tensor(row_of(role).tensor_name(layer)) != nullptr) return true;
    }
    return false;
  }

  // Returns whether the row is not for this model, but for another variant of the type, which has another name for the tensor.
  [[nodiscard]] bool is_other_variant(const TensorRow& row, std::uint32_t layer) const {
    if (is_for_others(row)) return true;
    if (row.name.starts_with("dense.")) return true;  // Dense modules have separate folders
    // In Falcon, only models with ln_attn have ln_mlp.
    return row.name.starts_with("ln_mlp.") && model_.find_tensor(row_of(Role::attn_norm_2).tensor_name(layer)) == nullptr;
  }

  Status add(const TensorRow& row, std::uint32_t layer) {
    if (is_other_variant(row, layer)) return {};
    const TensorInfo* info = model_.find_tensor(row_of(row.role).tensor_name(layer));
    if (info == nullptr) return add_fused_experts(row, layer);
    const auto index = static_cast<std::size_t>(info - model_.tensors().data());
    if (is_used_[index]) return {};  // another row has added the tensor; this row is for folders with another name of it
    is_used_[index] = true;
    FolderDims made{.n = info->n_dims, .dims = info->dims};
    if (row.name.find('*') != std::string_view::npos) return add_experts(row, layer, *info, made);
    const auto dims = folder_dims(row.arrange, shape_, made);
    Recipe recipe = recipe_of(dims.value_or(made));
    const bool fits = dims && (row.arrange == nullptr || row.arrange(shape_, recipe)) && is_sound(recipe) && recipe.dims == info->dims;
    if (!fits) {
      return error_at(ErrorCode::unsupported, model_.called(info->name), "its shape does not fit a folder of type \"{}\"", table_.model_type);
    }
    return put(name_of(row, layer, 0), *dims, {.tensor = info, .first = 0, .values = recipe.values(), .recipe = std::move(recipe)});
  }

  // Adds two matrices for each expert, for GGUF files that have gate and up of all experts in one tensor.
  Status add_fused_experts(const TensorRow& row, std::uint32_t layer) {
    const bool is_half = (row.role == Role::experts_gate || row.role == Role::experts_up) && row.name.find('*') != std::string_view::npos;
    const TensorInfo* info = is_half ? model_.find_tensor(row_of(Role::experts_gate_up).tensor_name(layer)) : nullptr;
    if (info == nullptr || info->n_dims != 3 || info->dims[1] % 2 != 0) return {};
    is_used_[static_cast<std::size_t>(info - model_.tensors().data())] = true;
    const FolderDims dims{.n = 2, .dims = {info->dims[0], info->dims[1] / 2, 1, 1}};
    const std::uint64_t values = dims.dims[0] * dims.dims[1];
    for (std::uint64_t expert = 0; expert < info->dims[2]; ++expert) {
      std::string name = name_of(row, layer, static_cast<std::uint32_t>(expert));
      if (by_name_.contains(name)) return {};  // another row of the table has added it
      TESSERA_TRY_STATUS(put(std::move(name), dims, {.tensor = info, .first = (2 * expert + (row.role == Role::experts_up ? 1 : 0)) * values,
                                                     .values = values, .recipe = recipe_of(dims)}));
    }
    return {};
  }

  // Adds a tensor for the matrix of each expert of a layer.
  Status add_experts(const TensorRow& row, std::uint32_t layer, const TensorInfo& info, FolderDims made) {
    const std::uint64_t experts = made.dims[made.n - 1];
    made.dims[--made.n] = 1;
    if (made.n == 0 || row.arrange != nullptr) return error_at(ErrorCode::unsupported, model_.called(info.name), "it is not a list of matrices");
    for (std::uint64_t expert = 0; expert < experts; ++expert) {
      Recipe recipe = recipe_of(made);
      const std::uint64_t values = recipe.values();
      TESSERA_TRY_STATUS(put(name_of(row, layer, static_cast<std::uint32_t>(expert)), made,
                             {.tensor = &info, .first = expert * values, .values = values, .recipe = std::move(recipe)}));
    }
    return {};
  }

  [[nodiscard]] std::string name_of(const TensorRow& row, std::uint32_t layer, std::uint32_t expert) const {
    auto names = names_of(row, table_, table_.prefix, n_layers_, layer, expert);
    return stands_beside(row) ? std::move(names.back()) : std::move(names.front());
  }

  // Adds a part to the folder's tensor `name`.
  Status put(std::string name, const FolderDims& dims, WrittenPart part) {
    const auto [at, is_new] = by_name_.try_emplace(name, tensors_.size());
    if (is_new) {
      WrittenTensor& added = tensors_.emplace_back();
      added.name = std::move(name);
      added.dims = dims;
    }
    WrittenTensor& tensor = tensors_[at->second];
    if (tensor.dims.dims != dims.dims || (!tensor.parts.empty() && tensor.parts.front().recipe.transposed_rows != part.recipe.transposed_rows)) {
      return error_at(ErrorCode::unsupported, model_.called(part.tensor->name), "its shape does not fit the tensors that stand beside it in {}", tensor.name);
    }
    tensor.parts.push_back(std::move(part));
    return {};
  }

  // Checks that each tensor of the model was used by some row, because a tensor that no row uses would be missing in the folder.
  // Exception: the rope's factors, which are written to config.json.
  [[nodiscard]] Status check_all_used() const {
    for (std::size_t i = 0; i < is_used_.size(); ++i) {
      const std::string_view name = model_.tensors()[i].name;
      const bool is_rope = name == row_of(Role::rope_freqs).name || name == row_of(Role::rope_factors_short).name || name == row_of(Role::rope_factors_long).name;
      if (is_used_[i] || is_rope) continue;
      return error_at(ErrorCode::unsupported, fmt::format("tensor {}", printable(name)), "a folder of type \"{}\" has no such tensor", table_.model_type);
    }
    return {};
  }

  const ModelSource& model_;
  const Table& table_;
  std::uint32_t n_layers_, n_further_;
  Shape shape_;
  std::vector<bool> is_used_;  // for each tensor of the model
  bool has_experts_ = false;
  std::vector<WrittenTensor> tensors_;
  std::unordered_map<std::string, std::size_t> by_name_;
  Status status_;
};

}  // namespace

Result<std::vector<WrittenTensor>> written_tensors(const ModelSource& model, const Table& table, std::uint32_t n_layers, std::uint32_t n_further) {
  return TensorPlanner(model, table, n_layers, n_further).run();
}

}  // namespace tessera::detail::hub
