#include "hub/tensor_list.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "files/sorted_names.hpp"
#include "formats/formats.hpp"
#include "hub/shape.hpp"

namespace tessera::detail::hub {

namespace {

constexpr std::uint32_t kMostLayers = 1 << 16;

// Prefixes that the names of the language model's tensors may have. prefix_of() finds the prefix of a folder by the tensor of token
// embeddings: its name is the prefix followed by "embed_tokens.weight", or by the name that the type of model has for this tensor.
constexpr std::string_view kPrefixes[] = {"model.", "language_model.model.", "model.language_model.", "transformer.", "gpt_neox.", "backbone.", "bert.", "roberta.", "new.", ""};

// Tensors that no computation needs: tables that the library computes itself, and masks of early checkpoints.
constexpr std::string_view kUnused[] = {"rotary_emb.inv_freq", "attn.bias", "attn.masked_bias", "rotary_emb.cos_cached", "rotary_emb.sin_cached"};

std::string shape_of(std::span<const std::uint64_t> dims) {
  std::string text = "[";
  for (const std::uint64_t dim : dims) text += (text.size() == 1 ? "" : ", ") + std::to_string(dim);
  return text + "]";
}

Error wrong(ErrorCode code, const SafetensorsFolder& folder, const SafetensorsTensor& tensor, std::string what) {
  return error_at(code, folder.file_name(tensor.part), "tensor {}: {}", printable(tensor.name), what);
}

std::string_view name_of_info(const TensorInfo& info) noexcept { return info.name; }

}  // namespace

std::span<const std::string_view> known_prefixes() noexcept { return kPrefixes; }

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

std::vector<std::string> names_of(const TensorRow& row, const Table& table, std::string_view prefix, std::uint32_t layers, std::uint32_t layer,
                                  std::uint32_t expert) {
  std::string name(row.name);
  if (const std::size_t star = name.find('*'); star != std::string::npos) name.replace(star, 1, std::to_string(expert));
  const Owner owner = row_of(row.role).owner;
  if (owner != Owner::model && !table.heads.empty() && layer >= layers) {
    return {owner == Owner::draft_head ? fmt::format("{}{}", table.heads, name) : fmt::format("{}layers.{}.{}", table.heads, layer - layers, name)};
  }
  if (owner != Owner::model) return {fmt::format("{}{}{}.{}", prefix, table.layers, layer, name)};
  // A tensor that belongs to no layer is inside the model's prefix ("model.norm.weight") or outside. The output matrix, for example, is
  // outside: "lm_head.weight" beside "model.", "language_model.lm_head.weight" beside "language_model.model.". So all of these names are
  // possible.
  std::vector<std::string> names = {std::string(prefix) + name};
  if (prefix.ends_with("model.")) names.push_back(std::string(prefix.substr(0, prefix.size() - 6)) + name);
  names.push_back(std::move(name));
  return names;
}

std::int64_t count_further(const SafetensorsFolder& folder, const Table& table, std::string_view prefix, std::int64_t layers, std::int64_t said) {
  constexpr std::int64_t kMost = 63;
  if (layers <= 0) return 0;
  if (table.heads.empty()) {
    const bool has_some = said > 0 && said <= kMost && folder.find(fmt::format("{}{}{}.enorm.weight", prefix, table.layers, layers)) != nullptr;
    return has_some ? said : 0;
  }
  if (folder.find(fmt::format("{}fc.weight", table.heads)) == nullptr) return 0;
  std::int64_t count = 0;
  while (count < kMost && folder.find(fmt::format("{}layers.{}.input_layernorm.weight", table.heads, count)) != nullptr) ++count;
  return count;
}

TensorList::TensorList(HubModel& model, const Mapping& mapping, const Quantisation& quantisation)
    : model_(model), mapping_(mapping), quantisation_(quantisation), used_(model.folder_.tensors().size()) {
  shape_ = shape_of_model(model.settings_);
  has_experts_ = mapping.given(Setting::n_experts) > 0;
  // Limits the number of layers that config.json states: each layer has at least one tensor, unless layers share weights, so a number
  // above the number of tensors is wrong. (The reader of the settings reports the error.)
  const std::size_t n_tensors = model.n_groups_ == 0 ? model.folder_.tensors().size() : std::size_t{kMostLayers};
  const auto most = static_cast<std::int64_t>(std::min<std::size_t>(n_tensors, kMostLayers));
  n_layers_ = static_cast<std::uint32_t>(std::clamp<std::int64_t>(mapping.given(Setting::n_layers), 0, most));
  // tie_word_embeddings of the whole model counts, even if text_config has another value.
  const Json* tied = mapping.config.find_outside("tie_word_embeddings");
  is_tied_ = model.table_->can_be_tied && tied != nullptr && tied->boolean() != nullptr && *tied->boolean();
}

Status TensorList::make() {
  for (const TensorRows rows : model_.table_->rows) {
    for (const TensorRow& row : rows) {
      if (row_of(row.role).owner == Owner::model) TESSERA_TRY_STATUS(make_row(row, 0));
    }
  }
  for (std::uint32_t layer = 0; layer < n_layers_; ++layer) {
    if (!model_.has_weights(layer)) continue;
    for (const TensorRows rows : model_.table_->rows) {
      for (const TensorRow& row : rows) {
        if (row_of(row.role).owner != Owner::model) TESSERA_TRY_STATUS(make_row(row, layer));
      }
    }
  }
  TESSERA_TRY_STATUS(add_constants());
  TESSERA_TRY_STATUS(add_strangers());
  if (!has_quantised_) TESSERA_TRY_STATUS(quantisation_.check_used(model_.folder_));
  finish();
  return {};
}

Result<std::shared_ptr<const Matrix>> TensorList::find(const TensorRow& row, std::uint32_t layer, std::uint32_t expert) {
  for (const std::string& name : names_of(row, *model_.table_, model_.prefix_, model_.n_layers_, model_.layer_in_folder(layer), expert)) {
    std::shared_ptr<const Matrix> matrix;
    if (!quantisation_.is_none()) {
      TESSERA_TRY(matrix, quantisation_.find(model_.folder_, name));
      has_quantised_ = has_quantised_ || matrix != nullptr;
    }
    const SafetensorsTensor* tensor = matrix == nullptr ? model_.folder_.find(name) : nullptr;
    if (tensor != nullptr) {
      used_[static_cast<std::size_t>(tensor - model_.folder_.tensors().data())] = true;
      if (row.role == Role::output && is_tied_) continue;  // the table of embeddings is used, even if the checkpoint has a copy of it
      TESSERA_TRY(matrix, plain_matrix(model_.folder_, *tensor));
    }
    if (matrix == nullptr) continue;
    for (const std::uint32_t index : matrix->tensors()) used_[index] = true;
    return matrix;
  }
  return std::shared_ptr<const Matrix>();
}

bool TensorList::is_made(std::string_view name) const noexcept {
  // The tensors of a layer are added together, so the name is among the last names.
  const std::size_t first = model_.made_.size() > 64 ? model_.made_.size() - 64 : 0;
  return std::any_of(model_.made_.begin() + static_cast<std::ptrdiff_t>(first), model_.made_.end(),
                     [&](const HubModel::Made& made) { return made.name == name; });
}

Status TensorList::make_row(const TensorRow& row, std::uint32_t layer) {
  if (row.of == Of::models_with_experts && !has_experts_) return {};
  if (row.of == Of::models_without_experts && has_experts_) return {};
  if (row.of == Of::models_with_scores && !mapping_.has_scores) return {};
  TESSERA_TRY(const std::shared_ptr<const Matrix> first, find(row, layer, 0));
  if (first == nullptr) return {};  // if the model needs the tensor, the later check of all tensors reports the error
  std::string name = row_of(row.role).tensor_name(layer);
  if (is_made(name)) return {};
  const SafetensorsTensor& shown = model_.folder_.tensors()[first->tensors().front()];  // the tensor that errors name
  const std::span<const std::uint64_t> dims = first->dims();
  const bool is_stack = row.name.find('*') != std::string_view::npos;
  std::uint64_t values = 1;
  for (const std::uint64_t dim : dims) values *= dim;  // cannot overflow: the reader of the header has checked the product
  if (dims.empty() || dims.size() > (is_stack ? 2u : 3u) || values == 0) {
    return wrong(ErrorCode::corrupt_file, model_.folder_, shown, fmt::format("its shape is {}", shape_of(dims)));
  }
  Recipe recipe{.dtype = first->form(), .n_dims = static_cast<std::uint32_t>(dims.size())};
  for (std::size_t i = 0; i < dims.size(); ++i) recipe.dims[i] = dims[dims.size() - 1 - i];
  const std::uint64_t columns = recipe.dims[0];
  if (columns % formats::block_of(recipe.dtype)->values != 0) {
    return wrong(ErrorCode::unsupported, model_.folder_, shown, fmt::format("its rows of {} values are not whole blocks of {}", columns, to_string(recipe.dtype)));
  }
  std::vector<float> factors;
  const auto add_part = [&](std::shared_ptr<const Matrix> matrix) {
    factors.push_back(matrix->factor());
    recipe.parts.push_back({.matrix = std::move(matrix), .rows = values / columns, .columns = columns});
  };
  add_part(first);
  for (std::uint32_t expert = 1; is_stack; ++expert) {
    TESSERA_TRY(std::shared_ptr<const Matrix> next, find(row, layer, expert));
    if (next == nullptr) break;
    if (next->form() != first->form() || !std::ranges::equal(next->dims(), dims)) {
      return wrong(ErrorCode::corrupt_file, model_.folder_, model_.folder_.tensors()[next->tensors().front()],
                   fmt::format("it is {} of shape {}, but {} is {} of shape {}", to_string(next->form()), shape_of(next->dims()),
                               printable(shown.name), to_string(first->form()), shape_of(dims)));
    }
    add_part(std::move(next));
  }
  if (is_stack) recipe.dims[recipe.n_dims++] = recipe.parts.size();
  if ((row.arrange != nullptr && !row.arrange(shape_, recipe)) || !is_sound(recipe)) {
    const std::string absent = model_.settings_.absent_sizes();
    return wrong(ErrorCode::corrupt_file, model_.folder_, shown,
                 fmt::format("its shape {} does not fit config.json{}{}", shape_of(dims), absent.empty() ? "" : ", which lacks ", absent));
  }
  // As in GGUF files: then the product with a router is computed in float32.
  if (row.role == Role::router && recipe.dtype != DType::f32 && has_single_numbers(recipe.dtype)) recipe.numbers = Numbers::widened;
  if (!recipe.copies_rows() && !has_single_numbers(recipe.dtype)) {
    return wrong(ErrorCode::unsupported, model_.folder_, shown,
                 fmt::format("its numbers must be put into another order, which cannot be done in {}: take the model in BF16", to_string(recipe.dtype)));
  }
  const std::string kept = name;
  TESSERA_TRY_STATUS(add(std::move(name), std::move(recipe)));
  return add_factors(kept, factors);
}

// Adds the tensor with the factors of a matrix, NAME.scale for NAME.weight, if the matrix has factors.
Status TensorList::add_factors(std::string_view name, const std::vector<float>& factors) {
  constexpr std::string_view kEnd = "weight";
  if (!name.ends_with(kEnd) || std::ranges::all_of(factors, [](float factor) { return factor == 1.0f; })) return {};
  Recipe recipe{.dtype = DType::f32, .constants = factors};
  recipe.set_dims({factors.size()});
  return add(std::string(name.substr(0, name.size() - kEnd.size())).append("scale"), std::move(recipe));
}

Status TensorList::add(std::string name, Recipe recipe) {
  const bool copies = recipe.copies_rows();
  model_.made_.push_back({std::move(name), std::move(recipe)});
  const Recipe& kept = model_.made_.back().recipe;
  const DType dtype = kept.numbers == Numbers::same ? kept.dtype : DType::f32;
  const std::uint64_t bytes = bytes_of_values(dtype, kept.values());
  TensorInfo info{.name = {}, .dtype = dtype, .n_dims = kept.n_dims, .dims = kept.dims, .offset = 0, .bytes = bytes};
  if (!kept.parts.empty()) {
    const SafetensorsTensor& first = model_.folder_.tensors()[kept.parts.front().matrix->tensors().front()];
    info.offset = first.offset;
    info.part = first.part;
  }
  model_.infos_.push_back(info);
  if (!copies) model_.largest_whole_ = std::max(model_.largest_whole_, bytes);
  for (const SourceMatrix& part : kept.parts) model_.largest_staged_ = std::max(model_.largest_staged_, part.matrix->staging_bytes());
  return {};
}

// Adds the tensors whose numbers are in config.json instead of the weights' files (rope factors).
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

// Refuses the folder if the language model has a tensor that its table does not name: the model computes something with this tensor that
// tessera does not compute. Tensors of other parts of the model, such as a part that reads images, have other prefixes and are not
// checked.
Status TensorList::add_strangers() {
  const std::span<const SafetensorsTensor> all = model_.folder_.tensors();
  const std::string layers = model_.prefix_ + std::string(model_.table_->layers);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (used_[i] || !all[i].name.starts_with(layers)) continue;
    if (quantisation_.is_beside(all[i].name) || std::ranges::any_of(kUnused, [&](std::string_view end) { return all[i].name.ends_with(end); })) continue;
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
