#include "model/load/tensor_binding.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "files/ggml_types.hpp"
#include "formats/formats.hpp"
#include "model/draft_heads.hpp"
#include "core/checked.hpp"
#include "core/printable.hpp"
#include "core/error.hpp"

namespace tessera::detail {

namespace {

// The shape that a tensor must have for its role. A vector has 0 outputs.
struct Expected {
  std::uint64_t inputs = 0, outputs = 0, count = 1;
};

Expected expected_shape(const RoleRow& row, const ModelSpec& spec, const LayerSpec& layer) {
  return {.inputs = row.inputs(spec, layer),
          .outputs = row.is_matrix() ? row.outputs(spec, layer) : 0,
          .count = row.count != nullptr ? row.count(spec, layer) : 1};
}

// Returns whether the tensor can be ignored. There are two kinds. Tables that older converters wrote (rope frequencies, masks): the
// library computes them itself. Scales of a matrix's inputs: only hardware that rounds activations to 4 bits needs them.
bool is_redundant(std::string_view name) {
  return name.ends_with(".input_scale") || name.ends_with(".attn_rot_embd") || name.ends_with("rotary_emb.inv_freq") ||
         name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

// Returns whether the products of this matrix can be multiplied by factors from the file (Companion::factors). They cannot if the matrix
// is an embedding table or a per-head matrix (head_linear()).
bool can_be_scaled(const Binding& binding) {
  return binding.is_matrix && binding.role != Role::token_embd && binding.role != Role::position_embd && binding.role != Role::segment_embd &&
         binding.role != Role::per_layer_token_embd && binding.role != Role::mtp_token_embd && binding.role != Role::latent_k_b &&
         binding.role != Role::latent_v_b;
}

bool is_plain_ffn(Role role) { return role == Role::ffn_gate || role == Role::ffn_up || role == Role::ffn_down; }

// Limit for the length of a matrix's row, in values: about a thousand times the length in real models. With this limit every offset
// within a row is below 2^32.
constexpr std::uint64_t kMaxInputs = std::uint64_t{1} << 24;

std::string shape_text(const TensorInfo& tensor) {
  std::string text = "[";
  for (std::uint32_t i = 0; i < tensor.n_dims; ++i) text += (i == 0 ? "" : ", ") + std::to_string(tensor.dims[i]);
  return text + "]";
}

class Binder {
 public:
  Binder(const ModelSource& source, const Architecture& table, const ModelSpec& spec)
      : source_(source), table_(table), spec_(spec), used_(source.tensors().size(), false) {}

  Result<std::vector<Binding>> bind() {
    TESSERA_TRY_STATUS(check_tensors());
    TESSERA_TRY_STATUS(bind_roles_of(Owner::model, 0));
    for (std::uint32_t layer = 0; layer < spec_.n_layers_with_heads(); ++layer) {
      if (spec_.layer(layer).weights_back != 0) continue;
      TESSERA_TRY_STATUS(bind_roles_of(Owner::layer, layer));
      if (layer >= spec_.n_layers()) TESSERA_TRY_STATUS(bind_roles_of(Owner::draft_head, layer));
    }
    TESSERA_TRY_STATUS(bind_factors());
    for (std::size_t i = 0; i < used_.size(); ++i) {
      const TensorInfo& tensor = source_.tensors()[i];
      if (used_[i] || is_redundant(tensor.name) || is_left_out(tensor.name) || is_of_unused_keys(tensor.name)) continue;
      return error_at(ErrorCode::unsupported, place_of(tensor),
                      "architecture \"{}\" has no such tensor ({} layers); leaving it out would change the model",
                      table_.name, spec_.n_layers());
    }
    // Sort by the order of the tensors in the file, so that loading reads the file from front to back.
    std::stable_sort(bindings_.begin(), bindings_.end(), [&](const Binding& a, const Binding& b) {
      const TensorInfo& x = source_.tensors()[a.tensor];
      const TensorInfo& y = source_.tensors()[b.tensor];
      return x.part != y.part ? x.part < y.part : x.offset < y.offset;
    });
    return std::move(bindings_);
  }

 private:
  // Checks the source's descriptions of its tensors, because an application can implement the source, and later code relies on them:
  // bindings are indices into tensors(), and loading reads `bytes` bytes of each tensor.
  [[nodiscard]] Status check_tensors() const {
    for (const TensorInfo& tensor : source_.tensors()) {
      const std::string place = place_of(tensor);
      if (source_.find_tensor(tensor.name) != &tensor) {
        return error_at(ErrorCode::invalid_argument, place, "find_tensor() must return the element of tensors() that has this name");
      }
      const auto block = formats::block_of(tensor.dtype);
      if (!block) continue;  // bind_role() refuses the tensor if the model needs it
      std::optional<std::uint64_t> bytes = tensor.dims[0] % block->values == 0 ? tensor.dims[0] / block->values : std::optional<std::uint64_t>();
      for (std::size_t i = 1; bytes && i < tensor.dims.size(); ++i) bytes = checked_multiply(*bytes, tensor.dims[i]);
      if (bytes) bytes = checked_multiply(*bytes, block->bytes);
      if (tensor.n_dims <= tensor.dims.size() && bytes == tensor.bytes) continue;
      return error_at(ErrorCode::corrupt_file, place, "it has {} bytes, which its shape and its type {} do not take", tensor.bytes,
                      to_string(tensor.dtype));
    }
    return {};
  }

  Status bind_roles_of(Owner owner, std::uint32_t layer) {
    for (const RoleRow& row : kRoleTable) {
      if (row.owner == owner) TESSERA_TRY_STATUS(bind_role(row, layer));
    }
    return {};
  }

  Status bind_role(const RoleRow& row, std::uint32_t layer) {
    const Presence presence = presence_of(row, layer);
    if (presence == Presence::absent || !has_role(spec_, spec_.layer(layer), row.role)) return {};
    if (is_bound(row.role, layer)) return {};  // the weights are part of a fused tensor
    const std::string name = row.tensor_name(layer);
    const TensorInfo* tensor = found(name);
    if (tensor == nullptr) {
      if (presence == Presence::optional) return {};
      return error_at(ErrorCode::not_found, "tensor " + called(name), "architecture \"{}\" needs this tensor and the file has none{}", table_.name,
                      instead(row, layer));
    }
    const std::uint32_t index = index_of(*tensor);
    used_[index] = true;
    if (!formats::block_of(tensor->dtype)) {
      const auto id = static_cast<std::uint32_t>(tensor->dtype);
      return error_at(ErrorCode::unsupported, place_of(*tensor),
                      "its type is {} ({}), which tessera does not read: use another quantisation", ggml_type_name(id), id);
    }
    const Expected expected = expected_shape(row, spec_, spec_.layer(layer));
    // A last dimension of 1 may be missing in the file.
    const std::uint64_t second = row.is_matrix() ? expected.outputs : expected.count;
    const std::uint64_t third = row.is_matrix() ? expected.count : 1;
    if (tensor->dims[0] != expected.inputs || tensor->dims[1] != second || tensor->dims[2] != third || tensor->dims[3] != 1) {
      const std::string sentence = source_.wrong_shape(*tensor, {expected.inputs, second, third, 1});
      if (!sentence.empty()) return error_at(ErrorCode::corrupt_file, place_of(*tensor), "{}", sentence);
      return error_at(ErrorCode::corrupt_file, place_of(*tensor), "its shape is {}; the model's metadata says [{}{}{}]",
                      shape_text(*tensor), expected.inputs, row.is_matrix() ? fmt::format(", {}", expected.outputs) : "",
                      row.count != nullptr ? fmt::format(", {}", expected.count) : "");
    }
    if (row.is_matrix() && expected.inputs > kMaxInputs) {
      return error_at(ErrorCode::unsupported, place_of(*tensor),
                      "a row has {} values; {} are the most", expected.inputs, kMaxInputs);
    }
    if (!row.is_fused()) {
      add(row, layer, index, 0, expected, {});
      return {};
    }
    if (row.by_columns) return add_columns(row, layer, index, expected);
    const std::uint64_t turns = row.turns != nullptr ? row.turns(spec_, spec_.layer(layer)) : 1;
    std::uint64_t first = 0;
    for (const Role role : row.parts) {
      if (role == Role::count) break;
      const Expected part = expected_shape(row_of(role), spec_, spec_.layer(layer));
      // The rows of a part are not consecutive in two cases: the parts take turns (RoleRow::turns), or the tensor has several experts, each with
      // first its gate rows and then its up rows. Then the part has one range of rows in each turn or expert (Stretch).
      const bool apart = turns > 1 || expected.count > 1;
      const Stretch stretch = apart ? Stretch{part.outputs / turns, expected.outputs / turns} : Stretch{};
      add(row_of(role), layer, index, first, part, stretch);
      first += apart ? stretch.rows : row.is_matrix() ? part.outputs : part.inputs;
    }
    return {};
  }

  // Returns whether the layer must have, may have or does not have a tensor of this role. The architecture's table decides. Exception: for
  // layers of draft heads from a separate file, the table of the heads decides (DraftHeads::tensors).
  [[nodiscard]] Presence presence_of(const RoleRow& row, std::uint32_t layer) const noexcept {
    const bool is_of_heads = row.owner == Owner::draft_head || (row.owner == Owner::layer && layer >= spec_.n_layers());
    const DraftHeads* heads = is_of_heads ? draft_heads_of(spec_) : nullptr;
    return heads != nullptr && heads->tensors != nullptr ? (*heads->tensors)[row.role] : table_.tensors[row.role];
  }

  // Binds the parts of a fused matrix, if the parts are ranges of columns. Each part must begin at the start of one of the format's blocks.
  Status add_columns(const RoleRow& row, std::uint32_t layer, std::uint32_t index, const Expected& expected) {
    const TensorInfo& tensor = source_.tensors()[index];
    std::uint64_t first = 0;
    for (const Role role : row.parts) {
      if (role == Role::count) break;
      const Expected part = expected_shape(row_of(role), spec_, spec_.layer(layer));
      if (part.inputs % formats::block_of(tensor.dtype)->values != 0) {
        return error_at(ErrorCode::unsupported, place_of(tensor),
                        "its type is {}, whose blocks {} inputs cannot be cut into; use another quantisation", to_string(tensor.dtype),
                        part.inputs);
      }
      add(row_of(role), layer, index, 0, part, {});
      bindings_.back().first_column = first;
      bindings_.back().row_inputs = expected.inputs;
      first += part.inputs;
    }
    return {};
  }

  // Binds the factors by which the products of some matrices are multiplied (NVFP4 files have them). The factors of the matrix
  // NAME.weight are the tensor NAME.scale: one number, or one for each matrix of NAME.weight (each expert).
  Status bind_factors() {
    const std::vector<bool> has_role = used_;
    for (Binding& binding : bindings_) {
      const std::string_view weight = source_.tensors()[binding.tensor].name;
      if (!can_be_scaled(binding) || !weight.ends_with(".weight")) continue;
      const std::string stem(weight.substr(0, weight.size() - std::string_view("weight").size()));
      const TensorInfo* tensor = found(stem + "scale");
      if (tensor == nullptr || has_role[index_of(*tensor)]) continue;
      const bool fits = tensor->dims[0] == 1 || tensor->dims[0] == binding.shape.count;
      if (tensor->dtype != DType::f32 || !fits || tensor->bytes != tensor->dims[0] * sizeof(float)) {
        return error_at(ErrorCode::corrupt_file, place_of(*tensor),
                        "it is {} of shape {}; a scale of {} is one F32 number, or one for each of {} matrices", to_string(tensor->dtype),
                        shape_text(*tensor), called(weight), binding.shape.count);
      }
      // Refuse the file, because it is not clear whether the factor also multiplies the bias: llama.cpp adds the bias before it multiplies,
      // and says that this is wrong for NVFP4.
      if (is_plain_ffn(binding.role) && found(stem + "bias") != nullptr) {
        return error_at(ErrorCode::unsupported, place_of(*tensor),
                        "a scale beside a feed-forward matrix that has a bias; engines do not agree on what comes first");
      }
      binding.companions[Companion::factors] = index_of(*tensor);
      used_[index_of(*tensor)] = true;
    }
    return {};
  }

  // Returns whether two roles have the same weights in different arrangements: one role is a fused matrix, and the other role is a part of
  // it. This includes ssm_in (Role::state_in), which Qwen3-Next's first converter wrote: it has the rows of attn_qkv and attn_gate in
  // another order.
  [[nodiscard]] static bool holds_the_same(const RoleRow& a, const RoleRow& b) {
    const auto has = [](const RoleRow& row, Role part) { return std::ranges::find(row.parts, part) != std::end(row.parts); };
    const auto is_of_state = [](const RoleRow& row) { return row.role == Role::state_gate || row.role == Role::state_mixed; };
    return (a.is_fused() && has(a, b.role)) || (b.is_fused() && has(b, a.role)) || (a.role == Role::state_in && is_of_state(b));
  }

  // Returns a hint for the error that a tensor is missing; an empty text if there is no hint. The hint names a tensor that the file has
  // although the architecture's table does not. Either another converter wrote the missing weights under that name, or the model is a
  // variant (StableLM 2 12B has norms of queries and keys).
  [[nodiscard]] std::string instead(const RoleRow& missing, std::uint32_t layer) const {
    std::string strange;
    for (const RoleRow& row : kRoleTable) {
      const std::string name = row.tensor_name(layer);
      if (row.owner != missing.owner || found(name) == nullptr) continue;
      const bool known = std::any_of(std::begin(kRoleTable), std::end(kRoleTable), [&](const RoleRow& other) {
        return other.owner == missing.owner && table_.tensors[other.role] != Presence::absent && other.tensor_name(layer) == name;
      });
      if (known) continue;
      if (holds_the_same(row, missing)) {
        return fmt::format("; it has {} instead, as another converter writes it: convert the model with a newer one", called(name));
      }
      if (strange.empty()) strange = name;
    }
    if (strange.empty()) return {};
    return fmt::format("; it has {}, which \"{}\" has not: the model is a variant that tessera does not implement", called(strange), table_.name);
  }

  // Returns whether the tensor belongs to a layer that is not loaded: an MTP layer after the model's last layer (ModelSpec::n_left_out).
  [[nodiscard]] bool is_left_out(std::string_view name) const {
    const auto layer = layer_of(name);
    const std::uint32_t first = spec_.n_layers_with_heads();
    return layer && *layer >= first && *layer - first < spec_.n_left_out;
  }

  // Returns whether the tensor would compute keys or values of a layer that reads the keys and values of another layer. Some files have
  // such tensors. They are ignored, because nothing uses them.
  [[nodiscard]] bool is_of_unused_keys(std::string_view name) const {
    const auto layer = layer_of(name);
    if (!layer || *layer >= spec_.n_layers() || spec_.layers[*layer].keys_of == kOwnKeys) return false;
    return std::ranges::any_of(kRoleTable, [&](const RoleRow& row) { return is_of_keys(row.role) && row.tensor_name(*layer) == name; });
  }

  // Texts for error messages. called(): the tensor's name in the source's files. place_of(): this name and the offset of the tensor's
  // data.
  [[nodiscard]] std::string called(std::string_view name) const { return printable(source_.called(name)); }
  [[nodiscard]] std::string place_of(const TensorInfo& tensor) const {
    return fmt::format("tensor {} (offset {})", called(tensor.name), tensor.offset);
  }

  // Returns the source's tensor with that name; nullptr if there is none. An application can implement the source, so the result is checked:
  // a pointer outside of tensors(), or to a tensor of another name, counts as nullptr.
  [[nodiscard]] const TensorInfo* found(std::string_view name) const noexcept {
    const TensorInfo* tensor = source_.find_tensor(name);
    const std::span<const TensorInfo> all = source_.tensors();
    if (std::less<>()(tensor, all.data()) || !std::less<>()(tensor, all.data() + all.size())) return nullptr;
    return tensor->name == name ? tensor : nullptr;
  }

  [[nodiscard]] std::uint32_t index_of(const TensorInfo& tensor) const noexcept {
    return static_cast<std::uint32_t>(&tensor - source_.tensors().data());
  }

  [[nodiscard]] bool is_bound(Role role, std::uint32_t layer) const {
    // Bindings are added layer by layer, so the bindings of this layer are the last.
    for (auto b = bindings_.rbegin(); b != bindings_.rend() && b->layer == layer; ++b) {
      if (b->role == role) return true;
    }
    return false;
  }

  struct Stretch {
    std::uint64_t rows = 0, stride = 0;
  };
  void add(const RoleRow& row, std::uint32_t layer, std::uint32_t tensor, std::uint64_t first_row, Expected expected, Stretch stretch) {
    bindings_.push_back({.role = row.role,
                         .layer = layer,
                         .tensor = tensor,
                         .is_matrix = row.is_matrix(),
                         .first_row = first_row,
                         .stretch_rows = stretch.rows,
                         .stretch_stride = stretch.stride,
                         .shape = {.dtype = source_.tensors()[tensor].dtype,
                                   .outputs = row.is_matrix() ? expected.outputs : 1,
                                   .inputs = expected.inputs,
                                   .count = expected.count}});
  }

  const ModelSource& source_;
  const Architecture& table_;
  const ModelSpec& spec_;
  std::vector<bool> used_;
  std::vector<Binding> bindings_;
};

}  // namespace

Result<std::vector<Binding>> bind_tensors(const ModelSource& source, const Architecture& table, const ModelSpec& spec) {
  return Binder(source, table, spec).bind();
}

}  // namespace tessera::detail
