#include "hub/hub_model.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "files/sorted_names.hpp"
#include "hub/embedding_settings.hpp"
#include "hub/tables/common.hpp"
#include "hub/tensor_list.hpp"
#include "hub/text_settings.hpp"
#include "os/file.hpp"

namespace tessera::detail::hub {

namespace {

constexpr std::uint64_t kMostGathered = std::uint64_t{4} << 20;  // bytes of rows that are read together and put in order in memory

std::uint64_t row_bytes_of_part(const Recipe& recipe, std::size_t part) noexcept {
  return bytes_of_values(recipe.dtype, recipe.parts[part].columns);
}

// Returns the bytes of a row of the recipe's result, for recipes that copy rows.
std::uint64_t row_bytes_of(const Recipe& recipe) noexcept { return bytes_of_values(recipe.dtype, recipe.parts.front().columns); }

// Returns whether a folder of the table's type can have a tensor of this role.
bool has_role(const Table& table, Role role) noexcept {
  return std::ranges::any_of(table.rows, [&](TensorRows rows) { return std::ranges::find(rows, role, &TensorRow::role) != rows.end(); });
}

}  // namespace

Result<std::shared_ptr<const ModelSource>> HubModel::open(const std::filesystem::path& folder, const std::stop_token& stop) {
  TESSERA_TRY(const Config config, Config::read(folder));
  const std::string_view type = config.model_type();
  const Table* table = find_table(type);
  if (type.empty()) {
    return error_at(ErrorCode::corrupt_file, os::text_of(folder / "config.json"),
                    "it has no model_type, which says what kind of model this is: download the file again, from where the weights came");
  }
  if (table == nullptr) {
    return error_at(ErrorCode::unsupported, os::text_of(folder / "config.json"),
                    "model_type is \"{}\", which tessera does not load from a folder; it loads {}", printable(type), known_types());
  }
  auto model = std::make_shared<HubModel>();
  TESSERA_TRY(model->quantisation_, Quantisation::read(config));
  model->table_ = table;
  TESSERA_TRY(const auto dense, read_dense_modules(folder));
  if (!dense.empty() && !has_role(*table, Role::embd_inner)) {
    return error_at(ErrorCode::unsupported, os::text_of(folder / "modules.json"), "modules of type Dense behind a model of type \"{}\"", printable(type));
  }
  TESSERA_TRY(model->folder_, SafetensorsFolder::open(folder, stop, dense));
  model->settings_.set_origin(os::text_of(folder));
  model->settings_.set(Setting::architecture, std::string(table->architecture), "model_type");
  Mapping mapping(config, model->settings_);
  table->map(mapping);
  model->n_groups_ = map_groups(mapping);
  TESSERA_TRY_STATUS(mapping.status());
  TESSERA_TRY_STATUS(model->settings_.unsigned_integer(Setting::n_layers));  // else each layer's tensor would count as unknown
  TESSERA_TRY_STATUS(read_text_settings(folder, config, mapping));
  TESSERA_TRY_STATUS(read_embedding_settings(folder, config, mapping));
  if (mapping.has_scores && !has_role(*table, Role::head_out)) {
    return error_at(ErrorCode::unsupported, os::text_of(folder / "config.json"), "architectures: a model that classifies or ranks, whose head tessera does not read for \"{}\"", printable(type));
  }
  model->prefix_ = prefix_of(model->folder_, *table);
  // Only some checkpoints have the layers of draft heads.
  const std::int64_t layers = mapping.given(Setting::n_layers);
  const std::int64_t further = count_further(model->folder_, *table, model->prefix_, layers, mapping.given(Setting::n_further_layers));
  model->n_layers_ = static_cast<std::uint32_t>(std::clamp<std::int64_t>(layers, 0, std::numeric_limits<std::int32_t>::max()));
  model->settings_.remove(Setting::n_further_layers);
  if (further > 0) {
    model->settings_.set(Setting::n_layers, layers + further, "num_hidden_layers");
    model->settings_.set(Setting::n_further_layers, further, "num_nextn_predict_layers");
  }
  TESSERA_TRY_STATUS(TensorList(*model, mapping, model->quantisation_).make());
  return std::shared_ptr<const ModelSource>(std::move(model));
}

std::uint32_t HubModel::layer_in_folder(std::uint32_t layer) const noexcept {
  return n_groups_ == 0 || layer >= n_layers_ ? layer : group_of(layer, n_groups_, n_layers_);
}

bool HubModel::has_weights(std::uint32_t layer) const noexcept {
  return layer == 0 || layer_in_folder(layer) != layer_in_folder(layer - 1);
}

const TensorInfo* HubModel::find_tensor(std::string_view name) const noexcept {
  return find_sorted(infos_, by_name_, name, [](const TensorInfo& info) { return info.name; });
}

Status HubModel::read_part(const Recipe& recipe, std::uint32_t part, std::uint64_t offset, std::span<std::byte> out) const {
  const Matrix* matrix = recipe.parts[part].matrix.get();
  {
    const std::lock_guard lock(matrix_mutex_);
    if (last_matrix_ != nullptr && last_matrix_ != matrix) last_matrix_->release();
    last_matrix_ = matrix;
  }
  return matrix->read(folder_, offset, out);
}

// Reads bytes of a tensor whose rows are copies of rows of its recipe's parts, in another order. Rows that follow each other in a part
// are read in one go. If the rows of a range lie scattered over a short piece of a part (such as the rows of a head), the whole piece is
// read in one go, and its rows are put in order in memory.
Status HubModel::read_ordered(const Recipe& recipe, std::uint64_t offset, std::span<std::byte> out) const {
  const std::uint64_t row_bytes = row_bytes_of(recipe);
  std::uint64_t start = 0;  // offset of the range in the result, in bytes
  std::vector<std::byte> stretch;
  for (const RowRange& range : recipe.order) {
    const std::uint64_t bytes = range.rows * row_bytes;
    if (offset >= start + bytes || out.empty()) {
      start += bytes;
      continue;
    }
    const bool is_scattered = range.step != 1 && range.rows > 1;
    const std::uint64_t last = range.first + (range.rows - 1) / range.run * range.stride + (std::min(range.run, range.rows) - 1) * range.step;
    const bool gathers = is_scattered && bytes <= kMostGathered && (last + 1 - range.first) * row_bytes <= 2 * bytes && offset == start && out.size() >= bytes;
    if (gathers) {
      stretch.resize((last + 1 - range.first) * row_bytes);
      TESSERA_TRY_STATUS(read_part(recipe, range.part, range.first * row_bytes, stretch));
      for (std::uint64_t i = 0; i < range.rows; ++i) {
        const std::uint64_t row = i / range.run * range.stride + i % range.run * range.step;
        std::memcpy(out.data() + i * row_bytes, stretch.data() + row * row_bytes, row_bytes);
      }
      out = out.subspan(bytes);
      offset += bytes;
    }
    while (offset < start + bytes && !out.empty()) {
      const std::uint64_t i = (offset - start) / row_bytes, in_row = (offset - start) % row_bytes;
      const std::uint64_t row = range.first + i / range.run * range.stride + i % range.run * range.step;
      const std::uint64_t together = range.step == 1 ? std::min(range.run - i % range.run, range.rows - i) : 1;
      const std::uint64_t size = std::min<std::uint64_t>(together * row_bytes - in_row, out.size());
      TESSERA_TRY_STATUS(read_part(recipe, range.part, row * row_bytes + in_row, out.first(size)));
      out = out.subspan(size);
      offset += size;
    }
    start += bytes;
  }
  return {};
}

Status HubModel::read_whole(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const {
  const std::lock_guard lock(mutex_);
  if (last_ != &tensor) {
    last_ = nullptr;
    last_bytes_ = {};
    const Recipe& recipe = made_[static_cast<std::size_t>(&tensor - infos_.data())].recipe;
    std::vector<std::vector<std::byte>> parts;
    for (std::uint32_t i = 0; i < recipe.parts.size(); ++i) {
      parts.emplace_back(recipe.parts[i].rows * row_bytes_of_part(recipe, i));
      TESSERA_TRY_STATUS(read_part(recipe, i, 0, parts.back()));
    }
    last_bytes_ = make_whole(recipe, std::move(parts));
    if (last_bytes_.size() != tensor.bytes) {
      return error_at(ErrorCode::corrupt_file, called(tensor.name), "{} bytes instead of {}: its shape does not fit config.json",
                      last_bytes_.size(), tensor.bytes);
    }
    last_ = &tensor;
  }
  if (!out.empty()) std::memcpy(out.data(), last_bytes_.data() + offset, out.size());
  if (offset + out.size() == tensor.bytes) {
    last_ = nullptr;
    last_bytes_ = {};
  }
  return {};
}

Status HubModel::read(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const noexcept {
  return guard([&]() -> Status {
    if (offset > tensor.bytes || out.size() > tensor.bytes - offset) {
      return error_at(ErrorCode::invalid_argument, fmt::format("tensor {}", printable(tensor.name)), "cannot read {} bytes at {} of its {} bytes",
                      out.size(), offset, tensor.bytes);
    }
    const Recipe& recipe = made_[static_cast<std::size_t>(&tensor - infos_.data())].recipe;
    if (!recipe.copies_rows()) return read_whole(tensor, offset, out);
    if (!recipe.order.empty()) return read_ordered(recipe, offset, out);
    const std::uint64_t part_bytes = recipe.parts.front().rows * row_bytes_of(recipe);
    while (!out.empty()) {
      const std::uint64_t size = std::min<std::uint64_t>(part_bytes - offset % part_bytes, out.size());
      TESSERA_TRY_STATUS(read_part(recipe, static_cast<std::uint32_t>(offset / part_bytes), offset % part_bytes, out.first(size)));
      out = out.subspan(size);
      offset += size;
    }
    return {};
  });
}

Result<InputRounding> HubModel::input_rounding(const TensorInfo& tensor) const noexcept {
  return guard([&]() -> Result<InputRounding> {
    const Recipe& recipe = made_[static_cast<std::size_t>(&tensor - infos_.data())].recipe;
    InputRounding all;
    if (quantisation_.is_none() || recipe.parts.empty()) return all;
    for (std::size_t i = 0; i < recipe.parts.size(); ++i) {  // the parts are a layer's experts
      const SafetensorsTensor& weight = folder_.tensors()[recipe.parts[i].matrix->tensors().front()];
      TESSERA_TRY(const InputRounding own, quantisation_.input_rounding(folder_, weight));
      if (own.group != 0 && !recipe.column_order.empty() && recipe.column_group % own.group != 0) {
        return error_at(ErrorCode::unsupported, folder_.file_name(weight.part),
                        "tensor {}: its inputs are in another order here, heads of {} inputs, so the groups of {} inputs that share a scale when they are rounded would be others: choose activations = automatic",
                        printable(weight.name), recipe.column_group, own.group);
      }
      if (i == 0) {
        all = own;
        continue;
      }
      if (own.to != all.to || own.group != all.group || own.scales.empty() != all.scales.empty()) {
        return error_at(ErrorCode::unsupported, folder_.file_name(weight.part), "tensor {}: its inputs are rounded in another way than those of the layer's other experts",
                        printable(weight.name));
      }
      all.scales.insert(all.scales.end(), own.scales.begin(), own.scales.end());
      all.zeros.insert(all.zeros.end(), own.zeros.begin(), own.zeros.end());
    }
    return all;
  });
}

std::string HubModel::called(std::string_view name) const {
  const std::uint32_t layer = layer_of(name).value_or(0);
  std::string found;
  for (const TensorRows rows : table_->rows) {
    for (const TensorRow& row : rows) {
      if (row_of(row.role).tensor_name(layer) != name) continue;
      for (std::string& own : names_of(row, *table_, prefix_, n_layers_, layer_in_folder(layer), 0)) {
        if (folder_.find(own) != nullptr) return own;
        if (found.empty()) found = std::move(own);
      }
    }
  }
  return found.empty() ? std::string(name) : found;
}

// A tensor of the folder lists rows first. If several tensors make one tensor of the model (experts), each of them has one matrix of it.
std::string HubModel::wrong_shape(const TensorInfo& tensor, const std::array<std::uint64_t, 4>& wanted) const {
  const Recipe& recipe = made_[static_cast<std::size_t>(&tensor - infos_.data())].recipe;
  const bool is_stack = recipe.parts.size() > 1;
  std::vector<std::uint64_t> own, expected;
  std::uint32_t n_dims = tensor.n_dims;
  for (std::uint32_t i = n_dims; i < wanted.size(); ++i) n_dims = wanted[i] > 1 ? i + 1 : n_dims;
  if (is_stack) --n_dims;
  for (std::uint32_t i = n_dims; i-- > 0;) expected.push_back(wanted[i]);
  if (recipe.parts.empty()) {
    for (std::uint32_t i = n_dims; i-- > 0;) own.push_back(tensor.dims[i]);
  } else {
    const std::span<const std::uint64_t> dims = recipe.parts.front().matrix->dims();
    own.assign(dims.begin(), dims.end());
  }
  const auto in_file_order = [&](std::vector<std::uint64_t>& dims) {
    if (recipe.transposed_rows != 0 && dims.size() >= 2) std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
  };
  in_file_order(expected);
  std::string text = fmt::format("its shape is [{}]", fmt::join(own, ", "));
  const auto values = [](std::span<const std::uint64_t> dims) { return std::accumulate(dims.begin(), dims.end(), std::uint64_t{1}, std::multiplies<>()); };
  const std::uint64_t used = values(std::span(tensor.dims).first(tensor.n_dims)) / std::max<std::uint64_t>(1, recipe.parts.size());
  if (values(own) != used) {  // one half of a fused matrix, for example
    std::vector<std::uint64_t> part(tensor.dims.begin(), tensor.dims.begin() + std::min(tensor.n_dims, n_dims));
    std::ranges::reverse(part);
    in_file_order(part);
    text += fmt::format(", of which the model uses [{}] here", fmt::join(part, ", "));
  }
  if (is_stack) text += fmt::format(", and there are {} of them", recipe.parts.size());
  text += fmt::format("; config.json says [{}]", fmt::join(expected, ", "));
  if (is_stack) text += fmt::format(" and {}", wanted[n_dims]);
  const std::string absent = settings_.absent_sizes();
  if (!absent.empty()) text += fmt::format(" (it lacks {}, so a default or another key counts)", absent);
  return text;
}

std::uint64_t HubModel::memory_bytes() const noexcept {
  std::uint64_t bytes = sizeof *this + folder_.memory_bytes() + settings_.memory_bytes() + largest_whole_ + largest_staged_;
  bytes += infos_.capacity() * sizeof(TensorInfo) + by_name_.capacity() * sizeof(std::uint32_t) + made_.capacity() * sizeof(Made);
  for (const Made& made : made_) {
    bytes += made.name.capacity() + made.recipe.parts.capacity() * sizeof(SourceMatrix) + made.recipe.order.capacity() * sizeof(RowRange) +
             made.recipe.column_order.capacity() * sizeof(std::uint64_t) + made.recipe.constants.capacity() * sizeof(float);
  }
  return bytes;
}

}  // namespace tessera::detail::hub
