#include "hub/tensor_list.hpp"

#include <algorithm>

#include "core/checked.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"
#include "files/sorted_names.hpp"
#include "formats/formats.hpp"

namespace tessera::detail::hub {

namespace {

constexpr std::uint32_t kMostLayers = 1 << 16;

// What may stand in front of the language model's tensors; each is followed by "embed_tokens.weight" or what the type calls it.
constexpr std::string_view kPrefixes[] = {"model.", "language_model.model.", "model.language_model.", "transformer.", "backbone.", ""};

// Tensors that no computation needs: tables that are computed anew, and masks of early checkpoints.
constexpr std::string_view kUnused[] = {"rotary_emb.inv_freq", "attn.bias", "attn.masked_bias", "rotary_emb.cos_cached", "rotary_emb.sin_cached"};

std::optional<DType> dtype_of(SafetensorsType type) noexcept {
  switch (type) {
    case SafetensorsType::f32: return DType::f32;
    case SafetensorsType::f16: return DType::f16;
    case SafetensorsType::bf16: return DType::bf16;
    default: return std::nullopt;
  }
}

std::string shape_of(const SafetensorsTensor& tensor) {
  std::string text = "[";
  for (const std::uint64_t dim : tensor.dims) text += (text.size() == 1 ? "" : ", ") + std::to_string(dim);
  return text + "]";
}

Error wrong(ErrorCode code, const SafetensorsFolder& folder, const SafetensorsTensor& tensor, std::string what) {
  return error_at(code, folder.file_name(tensor.part), "tensor {}: {}", printable(tensor.name), what);
}

std::string_view name_of_info(const TensorInfo& info) noexcept { return info.name; }

}  // namespace

std::string prefix_of(const SafetensorsFolder& folder, const Table& table) {
  for (const TensorRows rows : table.rows) {
    for (const TensorRow& row : rows) {
      if (row.role != Role::token_embd) continue;
      for (const std::string_view prefix : kPrefixes) {
        if (folder.find(std::string(prefix).append(row.name)) != nullptr) return std::string(prefix);
      }
    }
  }
  return std::string(kPrefixes[0]);
}

std::vector<std::string> names_of(const TensorRow& row, const Table& table, std::string_view prefix, std::uint32_t layer, std::uint32_t expert) {
  std::string name(row.name);
  if (const std::size_t star = name.find('*'); star != std::string::npos) name.replace(star, 1, std::to_string(expert));
  if (row_of(row.role).owner != Owner::model) return {fmt::format("{}{}{}.{}", prefix, table.layers, layer, name)};
  // An output matrix stands beside the model: "lm_head.weight" beside "model.", "language_model.lm_head.weight" beside
  // "language_model.model.".
  std::vector<std::string> names = {std::string(prefix) + name};
  if (prefix.ends_with("model.")) names.push_back(std::string(prefix.substr(0, prefix.size() - 6)) + name);
  names.push_back(std::move(name));
  return names;
}

TensorList::TensorList(HubModel& model, const Mapping& mapping) : model_(model), mapping_(mapping), used_(model.folder_.tensors().size()) {
  const auto count = [&](Setting setting) { return static_cast<std::uint64_t>(std::clamp<std::int64_t>(mapping.given(setting), 0, 1 << 24)); };
  shape_.heads = count(Setting::n_heads);
  shape_.kv_heads = count(Setting::n_kv_heads);
  if (const auto list = model.settings_.find(Setting::n_kv_heads)) {
    if (const auto* heads = std::get_if<ValueList>(&*list)) {  // of the layers that have some, which are alike
      for (std::uint64_t i = 0; i < heads->size(); ++i) shape_.kv_heads = std::max(shape_.kv_heads, static_cast<std::uint64_t>(std::max<std::int64_t>(heads->integer(i), 0)));
    }
  }
  if (shape_.kv_heads == 0) shape_.kv_heads = shape_.heads;
  shape_.state_groups = count(Setting::state_groups);
  shape_.state_heads = count(Setting::state_heads);
  shape_.state_keys = count(Setting::state_keys);
  shape_.state_values = shape_.state_heads == 0 ? 0 : count(Setting::state_columns) / shape_.state_heads;
  shape_.head_value_dim = count(Setting::latent_value_dim);
  shape_.plain_dim = count(Setting::latent_key_dim) > count(Setting::rope_dim) ? count(Setting::latent_key_dim) - count(Setting::rope_dim) : 0;
  has_experts_ = mapping.given(Setting::n_experts) > 0;
  n_layers_ = static_cast<std::uint32_t>(std::clamp<std::int64_t>(mapping.given(Setting::n_layers), 0, kMostLayers));
  const Json* tied = mapping.config.find_anywhere("tie_word_embeddings");
  is_tied_ = tied != nullptr && tied->boolean() != nullptr && *tied->boolean();
}

Status TensorList::make() {
  for (const TensorRows rows : model_.table_->rows) {
    for (const TensorRow& row : rows) {
      if (row_of(row.role).owner == Owner::model) TESSERA_TRY_STATUS(make_row(row, 0));
    }
  }
  for (std::uint32_t layer = 0; layer < n_layers_; ++layer) {
    for (const TensorRows rows : model_.table_->rows) {
      for (const TensorRow& row : rows) {
        if (row_of(row.role).owner != Owner::model) TESSERA_TRY_STATUS(make_row(row, layer));
      }
    }
  }
  TESSERA_TRY_STATUS(add_constants());
  TESSERA_TRY_STATUS(add_strangers());
  finish();
  return {};
}

const SafetensorsTensor* TensorList::find(const TensorRow& row, std::uint32_t layer, std::uint32_t expert) const {
  for (const std::string& name : names_of(row, *model_.table_, model_.prefix_, layer, expert)) {
    if (const SafetensorsTensor* tensor = model_.folder_.find(name)) return tensor;
  }
  return nullptr;
}

bool TensorList::is_made(std::string_view name) const noexcept {
  // The tensors of a layer are added together, so the name is among the last ones.
  const std::size_t first = model_.made_.size() > 64 ? model_.made_.size() - 64 : 0;
  return std::any_of(model_.made_.begin() + static_cast<std::ptrdiff_t>(first), model_.made_.end(),
                     [&](const HubModel::Made& made) { return made.name == name; });
}

Status TensorList::make_row(const TensorRow& row, std::uint32_t layer) {
  if (row.of == Of::models_with_experts && !has_experts_) return {};
  if (row.of == Of::models_without_experts && has_experts_) return {};
  const SafetensorsTensor* first = find(row, layer, 0);
  if (first == nullptr) return {};  // if the model needs it, the check of all tensors says so
  const std::span<const SafetensorsTensor> all = model_.folder_.tensors();
  const bool is_stack = row.name.find('*') != std::string_view::npos;
  used_[static_cast<std::size_t>(first - all.data())] = true;
  if (row.role == Role::output && is_tied_) return {};  // the embeddings count, also if a checkpoint repeats them
  std::string name = row_of(row.role).tensor_name(layer);
  if (is_made(name)) return {};
  const auto dtype = dtype_of(first->type);
  if (!dtype) {
    return wrong(ErrorCode::unsupported, model_.folder_, *first,
                 fmt::format("its type is {}; F32, F16 and BF16 can be loaded", to_string(first->type)));
  }
  Recipe recipe{.dtype = *dtype};
  const std::size_t n_dims = first->dims.size();
  if (n_dims == 0 || n_dims > (is_stack ? 2u : 3u)) {
    return wrong(ErrorCode::corrupt_file, model_.folder_, *first, fmt::format("its shape is {}", shape_of(*first)));
  }
  recipe.n_dims = static_cast<std::uint32_t>(n_dims);
  for (std::size_t i = 0; i < n_dims; ++i) recipe.dims[i] = first->dims[n_dims - 1 - i];
  std::uint64_t values = first->bytes / number_bytes(*dtype);
  const std::uint64_t columns = recipe.dims[0];
  if (values == 0) return wrong(ErrorCode::corrupt_file, model_.folder_, *first, fmt::format("its shape is {}", shape_of(*first)));
  const auto add_part = [&](const SafetensorsTensor& tensor) {
    recipe.parts.push_back({.tensor = static_cast<std::uint32_t>(&tensor - all.data()), .rows = values / columns, .columns = columns});
    used_[recipe.parts.back().tensor] = true;
  };
  add_part(*first);
  if (is_stack) {
    for (std::uint32_t expert = 1; const SafetensorsTensor* next = find(row, layer, expert); ++expert) {
      if (next->type != first->type || !std::ranges::equal(next->dims, first->dims)) {
        return wrong(ErrorCode::corrupt_file, model_.folder_, *next,
                     fmt::format("it is {} of shape {}, but {} is {} of shape {}", to_string(next->type), shape_of(*next),
                                 printable(first->name), to_string(first->type), shape_of(*first)));
      }
      add_part(*next);
    }
    recipe.dims[recipe.n_dims++] = recipe.parts.size();
  }
  if (row.arrange != nullptr && !row.arrange(shape_, recipe)) {
    return wrong(ErrorCode::corrupt_file, model_.folder_, *first, fmt::format("its shape {} does not fit config.json", shape_of(*first)));
  }
  return add(std::move(name), std::move(recipe));
}

Status TensorList::add(std::string name, Recipe recipe) {
  const bool copies = recipe.copies_rows();
  model_.made_.push_back({std::move(name), std::move(recipe)});
  const Recipe& kept = model_.made_.back().recipe;
  const DType dtype = kept.numbers == Numbers::same ? kept.dtype : DType::f32;
  const auto bytes = checked_multiply(kept.values(), number_bytes(dtype));
  if (!bytes) return error_at(ErrorCode::corrupt_file, model_.made_.back().name, "the tensor is too large");
  TensorInfo info{.name = {}, .dtype = dtype, .n_dims = kept.n_dims, .dims = kept.dims, .offset = 0, .bytes = *bytes};
  if (!kept.parts.empty()) {
    const SafetensorsTensor& first = model_.folder_.tensors()[kept.parts.front().tensor];
    info.offset = first.offset;
    info.part = first.part;
  }
  model_.infos_.push_back(info);
  if (!copies) model_.largest_whole_ = std::max(model_.largest_whole_, *bytes);
  return {};
}

// Adds the tensors that config.json has instead of the weights.
Status TensorList::add_constants() {
  const auto add_list = [&](Role role, const std::vector<float>& values) -> Status {
    if (values.empty()) return {};
    Recipe recipe{.dtype = DType::f32, .constants = values};
    recipe.set_dims({values.size()});
    return add(row_of(role).tensor_name(), std::move(recipe));
  };
  TESSERA_TRY_STATUS(add_list(Role::rope_freqs, mapping_.rope_divisors));
  TESSERA_TRY_STATUS(add_list(Role::rope_factors_short, mapping_.short_factors));
  return add_list(Role::rope_factors_long, mapping_.long_factors);
}

// Refuses a tensor of the language model that the table does not have: the model computes something that we do not. Tensors of other parts
// of the model, such as what sees, have other prefixes.
Status TensorList::add_strangers() {
  const std::span<const SafetensorsTensor> all = model_.folder_.tensors();
  const std::string layers = model_.prefix_ + std::string(model_.table_->layers);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (used_[i] || !all[i].name.starts_with(layers)) continue;
    if (std::ranges::any_of(kUnused, [&](std::string_view end) { return all[i].name.ends_with(end); })) continue;
    return wrong(ErrorCode::unsupported, model_.folder_, all[i],
                 fmt::format("a \"{}\" model has no such tensor, as tessera knows it: the model is a variant that tessera does not implement",
                             model_.table_->model_type));
  }
  return {};
}

void TensorList::finish() {
  for (std::size_t i = 0; i < model_.made_.size(); ++i) model_.infos_[i].name = model_.made_[i].name;
  model_.by_name_ = sorted_indices(model_.infos_, &name_of_info);
}

}  // namespace tessera::detail::hub
