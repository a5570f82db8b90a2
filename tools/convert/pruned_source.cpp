#include "pruned_source.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <exception>
#include <numeric>

#include <fmt/format.h>

#include <tessera/extend/formats/rows.hpp>

namespace tessera::convert {

namespace {

// Says which rows or columns of a layer's tensor are cut when heads or FFN columns are left out; none: the tensor stays whole.
enum class Side : std::uint8_t { none, query_rows, key_rows, value_rows, query_columns, ffn_rows, ffn_columns };

struct Row {
  std::string_view name;  // name of the tensor after "blk.N."
  Side side;
};

// The tensors that a layer may have if its model can be pruned.
constexpr Row kRows[] = {
    {"attn_norm.weight", Side::none},          {"ffn_norm.weight", Side::none},          {"attn_q_norm.weight", Side::none},
    {"attn_k_norm.weight", Side::none},        {"attn_q.weight", Side::query_rows},      {"attn_q.bias", Side::query_rows},
    {"attn_k.weight", Side::key_rows},         {"attn_k.bias", Side::key_rows},          {"attn_v.weight", Side::value_rows},
    {"attn_v.bias", Side::value_rows},         {"attn_output.weight", Side::query_columns}, {"attn_output.bias", Side::none},
    {"ffn_gate.weight", Side::ffn_rows},       {"ffn_up.weight", Side::ffn_rows},        {"ffn_down.weight", Side::ffn_columns},
    {"ffn_gate.bias", Side::ffn_rows},         {"ffn_up.bias", Side::ffn_rows},          {"ffn_down.bias", Side::none},
};

struct LayerTensor {
  std::uint32_t layer;
  std::string_view rest;
};

std::optional<LayerTensor> layer_tensor(std::string_view name) {
  constexpr std::string_view kBegin = "blk.";
  LayerTensor result{};
  if (!name.starts_with(kBegin)) return std::nullopt;
  name.remove_prefix(kBegin.size());
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), result.layer);
  if (error != std::errc() || end == name.data() + name.size() || *end != '.') return std::nullopt;
  result.rest = name.substr(static_cast<std::size_t>(end - name.data()) + 1);
  return result;
}

const Row* row_named(std::string_view rest) {
  const auto at = std::ranges::find(kRows, rest, &Row::name);
  return at == std::end(kRows) ? nullptr : at;
}

// Returns the elements of the kept groups. A group is `each` consecutive elements.
std::vector<std::uint32_t> spread(const std::vector<std::uint32_t>& groups, std::uint32_t each) {
  std::vector<std::uint32_t> elements;
  for (const std::uint32_t group : groups) {
    for (std::uint32_t i = 0; i < each; ++i) elements.push_back(group * each + i);
  }
  return elements;
}

std::vector<std::uint32_t> kept_elements(Side side, const KeptLayer& kept, const LayerSpec& layer) {
  const std::uint32_t shared = layer.n_heads / layer.n_kv_heads;
  switch (side) {
    case Side::query_rows: return spread(kept.groups, shared * layer.key_dim);
    case Side::key_rows: return spread(kept.groups, layer.key_dim);
    case Side::value_rows: return spread(kept.groups, layer.value_dim);
    case Side::query_columns: return spread(kept.groups, shared * layer.value_dim);
    default: return kept.columns;
  }
}

std::optional<SettingValue> list_or_number(const std::vector<std::int32_t>& values) {
  const bool is_one = std::ranges::all_of(values, [&](std::int32_t value) { return value == values.front(); });
  if (is_one) return SettingValue(static_cast<std::int64_t>(values.front()));
  return SettingValue(ValueList(std::span(values)));
}

}  // namespace

Cut whole_cut(const ModelSpec& spec) {
  Cut cut;
  for (std::uint32_t i = 0; i < spec.n_layers(); ++i) {
    KeptLayer kept{.index = i, .groups = std::vector<std::uint32_t>(spec.layers[i].n_kv_heads), .columns = std::vector<std::uint32_t>(spec.layers[i].ffn_dim)};
    std::iota(kept.groups.begin(), kept.groups.end(), 0u);
    std::iota(kept.columns.begin(), kept.columns.end(), 0u);
    cut.push_back(std::move(kept));
  }
  return cut;
}

Status check_prunable(const ModelSource& model, const ModelSpec& spec) {
  const auto refuse = [](std::string what) { return Error(ErrorCode::unsupported, std::move(what) + ": --prune is for models like Llama and Qwen"); };
  if (!spec.has_logits || spec.sight != Sight::back) return refuse("the model writes no text");
  if (spec.n_left_out != 0) return refuse("the model has an MTP head");
  for (const LayerSpec& layer : spec.layers) {
    const bool is_usual = layer.mixer == Mixer::attention && layer.ffn == Ffn::gated && !layer.is_latent() && layer.head_norms == HeadNorms::each &&
                          layer.keys_of == kOwnKeys && layer.output_gate == OutputGate::none && layer.weights_back == 0 && layer.window == 0 && layer.key_dim == spec.layers.front().key_dim &&
                          layer.value_dim == spec.layers.front().value_dim && layer.rope == spec.layers.front().rope;
    if (!is_usual) return refuse(fmt::format("layer {} is not one of attention over all keys and a gated FFN, as the others are", &layer - spec.layers.data()));
  }
  for (const TensorInfo& tensor : model.tensors()) {
    const auto name = layer_tensor(tensor.name);
    if (name && row_named(name->rest) == nullptr) return refuse(fmt::format("tensor {}: unknown to --prune", tensor.name));
    if (name && !formats::block_of(tensor.dtype)) return Error(ErrorCode::unsupported, "its format is not one of tessera's", std::string(tensor.name));
  }
  return {};
}

std::optional<SettingValue> PrunedSource::CutSettings::find(Setting setting) const noexcept {
  switch (setting) {
    case Setting::n_layers: return SettingValue(static_cast<std::uint64_t>(heads.size()));
    case Setting::n_heads: return list_or_number(heads);
    case Setting::n_kv_heads: return list_or_number(kv_heads);
    case Setting::ffn_dim: return list_or_number(columns);
    case Setting::key_dim: return SettingValue(std::uint64_t{key_dim});
    case Setting::value_dim: return SettingValue(std::uint64_t{value_dim});
    default: return whole_.find(setting);
  }
}

PrunedSource::PrunedSource(std::shared_ptr<const ModelSource> model, const ModelSpec& spec, const Cut& cut)
    : model_(std::move(model)), settings_(model_->settings()) {
  settings_.key_dim = spec.layers.front().key_dim;
  settings_.value_dim = spec.layers.front().value_dim;
  for (const KeptLayer& kept : cut) {
    const LayerSpec& layer = spec.layers[kept.index];
    settings_.kv_heads.push_back(static_cast<std::int32_t>(kept.groups.size()));
    settings_.heads.push_back(static_cast<std::int32_t>(kept.groups.size() * (layer.n_heads / layer.n_kv_heads)));
    settings_.columns.push_back(static_cast<std::int32_t>(kept.columns.size()));
  }
  const auto all = model_->tensors();
  names_.reserve(all.size());  // tensors_ views the names
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    const auto name = layer_tensor(all[i].name);
    if (!name) {
      add(i, std::string(all[i].name), nullptr, nullptr);
      continue;
    }
    const auto kept = std::ranges::find(cut, name->layer, &KeptLayer::index);
    if (kept == cut.end()) continue;
    add(i, fmt::format("blk.{}.{}", kept - cut.begin(), name->rest), &*kept, &spec.layers[kept->index]);
  }
}

void PrunedSource::add(std::uint32_t tensor, std::string name, const KeptLayer* kept, const LayerSpec* layer) {
  TensorInfo info = model_->tensors()[tensor];
  KeptPart part{.tensor = tensor, .rows = {}, .blocks = {}};
  const auto of_layer = layer_tensor(name);
  const Side side = kept != nullptr ? row_named(of_layer->rest)->side : Side::none;
  if (side != Side::none) {
    const auto block = formats::block_of(info.dtype);
    std::vector<std::uint32_t> elements = kept_elements(side, *kept, *layer);
    const bool is_columns = side == Side::query_columns || side == Side::ffn_columns || info.n_dims == 1;
    info.dims[is_columns ? 0 : 1] = elements.size();
    if (is_columns) {
      for (std::size_t i = 0; i < elements.size(); i += block->values) part.blocks.push_back(static_cast<std::uint32_t>(elements[i] / block->values));
    } else {
      part.rows = std::move(elements);
    }
    info.bytes = info.dims[0] / block->values * block->bytes * info.dims[1] * info.dims[2] * info.dims[3];
  }
  info.name = names_.emplace_back(std::move(name));
  tensors_.push_back(info);
  parts_.push_back(std::move(part));
}

const TensorInfo* PrunedSource::find_tensor(std::string_view name) const noexcept {
  const auto at = std::ranges::find(tensors_, name, &TensorInfo::name);
  return at == tensors_.end() ? nullptr : &*at;
}

Status PrunedSource::read(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const noexcept {
  const KeptPart& part = parts_[static_cast<std::size_t>(&tensor - tensors_.data())];
  if (part.rows.empty() && part.blocks.empty()) return model_->read(model_->tensors()[part.tensor], offset, out);
  try {
    return read_part(part, tensor, offset, out);
  } catch (const std::exception&) {
    return Error(ErrorCode::out_of_memory, "no memory to read a part of a tensor");
  }
}

Status PrunedSource::read_part(const KeptPart& part, const TensorInfo& to, std::uint64_t offset, std::span<std::byte> out) const {
  const TensorInfo& from = model_->tensors()[part.tensor];
  const auto block = formats::block_of(from.dtype);
  const std::uint64_t from_bytes = from.dims[0] / block->values * block->bytes, to_bytes = to.dims[0] / block->values * block->bytes;
  std::vector<std::byte> whole(from_bytes), row(to_bytes);
  for (std::size_t done = 0; done < out.size();) {
    const std::uint64_t at = (offset + done) / to_bytes, skipped = (offset + done) % to_bytes;
    if (auto ok = model_->read(from, (part.rows.empty() ? at : part.rows[at]) * from_bytes, whole); !ok) return ok;
    if (part.blocks.empty()) row = whole;
    for (std::size_t i = 0; i < part.blocks.size(); ++i) {
      std::memcpy(row.data() + i * block->bytes, whole.data() + std::size_t{part.blocks[i]} * block->bytes, block->bytes);
    }
    const std::size_t count = std::min<std::size_t>(out.size() - done, to_bytes - skipped);
    std::memcpy(out.data() + done, row.data() + skipped, count);
    done += count;
  }
  return {};
}

std::uint64_t PrunedSource::memory_bytes() const noexcept {
  std::uint64_t bytes = model_->memory_bytes() + tensors_.capacity() * sizeof(TensorInfo) + parts_.capacity() * sizeof(KeptPart);
  for (const KeptPart& part : parts_) bytes += (part.rows.capacity() + part.blocks.capacity()) * sizeof(std::uint32_t);
  for (const std::string& name : names_) bytes += sizeof name + name.capacity();
  return bytes;
}

Status PrunedSource::write_keys(GgufWriter& writer) const {
  const auto write = [&](Setting setting) -> Status {
    const std::string key = settings_.called(setting);
    const auto value = settings_.find(setting);
    if (const auto* list = std::get_if<ValueList>(&*value)) return writer.set_list(key, *list);
    if (const auto* number = std::get_if<std::int64_t>(&*value)) return writer.set(key, static_cast<std::uint32_t>(*number));
    return writer.set(key, static_cast<std::uint32_t>(std::get<std::uint64_t>(*value)));
  };
  for (const Setting setting : {Setting::n_layers, Setting::n_heads, Setting::n_kv_heads, Setting::ffn_dim, Setting::key_dim, Setting::value_dim}) {
    if (auto ok = write(setting); !ok) return ok;
  }
  return {};
}

}  // namespace tessera::convert
