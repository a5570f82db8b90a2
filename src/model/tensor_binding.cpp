#include "model/tensor_binding.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include "io/printable.hpp"
#include "support/error.hpp"

namespace tessera::detail {

namespace {

// What a role's tensor must be: outputs 0 for vectors.
struct Expected {
  std::uint64_t inputs = 0, outputs = 0;
};

Expected expected_shape(Role role, const ModelSpec& spec, const LayerSpec& layer) {
  const std::uint64_t d = spec.d_model;
  const std::uint64_t q = std::uint64_t{layer.n_heads} * layer.key_dim;
  const std::uint64_t k = std::uint64_t{layer.n_kv_heads} * layer.key_dim;
  const std::uint64_t v = std::uint64_t{layer.n_kv_heads} * layer.value_dim;
  const std::uint64_t ffn = layer.ffn_dim;
  switch (role) {
    case Role::token_embd:
    case Role::output: return {d, spec.vocab_size};
    case Role::position_embd: return {d, spec.context};
    case Role::rope_freqs: return {spec.rope_dim / 2};
    case Role::attn_qkv: return {d, q + k + v};
    case Role::attn_qkv_bias: return {q + k + v};
    case Role::attn_q: return {d, q};
    case Role::attn_q_bias: return {q};
    case Role::attn_k: return {d, k};
    case Role::attn_k_bias: return {k};
    case Role::attn_v: return {d, v};
    case Role::attn_v_bias: return {v};
    case Role::attn_q_norm:
    case Role::attn_k_norm: return {layer.key_dim};
    case Role::attn_output: return {std::uint64_t{layer.n_heads} * layer.value_dim, d};
    case Role::ffn_gate:
    case Role::ffn_up: return {d, ffn};
    case Role::ffn_gate_bias:
    case Role::ffn_up_bias: return {ffn};
    case Role::ffn_down: return {ffn, d};
    default: return {d};  // norms of the residual stream, and biases that are added to it
  }
}

std::string tensor_name(Role role, std::uint32_t layer) {
  const auto index = static_cast<std::size_t>(role);
  return index < kFirstLayerRole ? std::string(kRoleNames[index]) : fmt::format("blk.{}.{}", layer, kRoleNames[index]);
}

// Tensors that older converters wrote and that can be computed: they carry nothing of the model.
bool is_redundant(std::string_view name) {
  return name.ends_with(".attn_rot_embd") || name.ends_with("rotary_emb.inv_freq") || name.ends_with(".attn.bias") ||
         name.ends_with(".attn.masked_bias");
}

// Of a matrix's row. A thousand times what models have, and every offset within a row fits 32 bits.
constexpr std::uint64_t kMaxInputs = std::uint64_t{1} << 24;

std::string shape_text(const GgufTensor& tensor) {
  std::string text = "[";
  for (std::uint32_t i = 0; i < tensor.n_dims; ++i) text += (i == 0 ? "" : ", ") + std::to_string(tensor.dims[i]);
  return text + "]";
}

class Binder {
 public:
  Binder(const ModelFile& file, const Architecture& table, const ModelSpec& spec)
      : file_(file), table_(table), spec_(spec), used_(file.tensors().size(), false) {}

  Result<std::vector<Binding>> bind() {
    for (std::size_t i = 0; i < kFirstLayerRole; ++i) TESSERA_TRY_STATUS(bind_role(static_cast<Role>(i), 0));
    for (std::uint32_t layer = 0; layer < spec_.n_layers(); ++layer) {
      for (std::size_t i = kFirstLayerRole; i < kRoles; ++i) TESSERA_TRY_STATUS(bind_role(static_cast<Role>(i), layer));
    }
    for (std::size_t i = 0; i < used_.size(); ++i) {
      const GgufTensor& tensor = file_.tensors()[i];
      if (used_[i] || is_redundant(tensor.name)) continue;
      return error_at(ErrorCode::unsupported, fmt::format("tensor {} (offset {})", printable(tensor.name), tensor.offset),
                      "architecture \"{}\" has no such tensor ({} layers); leaving it out would change the model",
                      table_.name, spec_.n_layers());
    }
    // In file order, so that loading reads forward.
    std::stable_sort(bindings_.begin(), bindings_.end(), [&](const Binding& a, const Binding& b) {
      const GgufTensor& x = file_.tensors()[a.tensor];
      const GgufTensor& y = file_.tensors()[b.tensor];
      return x.part != y.part ? x.part < y.part : x.offset < y.offset;
    });
    return std::move(bindings_);
  }

 private:
  Status bind_role(Role role, std::uint32_t layer) {
    const Presence presence = table_.tensors[role];
    if (presence == Presence::absent) return {};
    const std::string name = tensor_name(role, layer);
    const GgufTensor* tensor = file_.find_tensor(name);
    if (tensor == nullptr) {
      if (presence == Presence::optional) return {};
      return error_at(ErrorCode::not_found, "tensor " + name, "architecture \"{}\" needs this tensor and the file has none",
                      table_.name);
    }
    const auto index = static_cast<std::uint32_t>(tensor - file_.tensors().data());
    used_[index] = true;
    const Expected expected = expected_shape(role, spec_, spec_.layers[layer]);
    const bool is_matrix = expected.outputs != 0;
    // A trailing dimension of 1 is no dimension.
    if (tensor->dims[0] != expected.inputs || tensor->dims[1] != std::max<std::uint64_t>(1, expected.outputs) ||
        tensor->dims[2] != 1 || tensor->dims[3] != 1) {
      return error_at(ErrorCode::corrupt_file, fmt::format("tensor {} (offset {})", name, tensor->offset), "its shape is {}; the model's metadata says [{}{}]",
                      shape_text(*tensor), expected.inputs, is_matrix ? fmt::format(", {}", expected.outputs) : "");
    }
    if (is_matrix && expected.inputs > kMaxInputs) {
      return error_at(ErrorCode::unsupported, fmt::format("tensor {} (offset {})", name, tensor->offset),
                      "a row has {} values; {} are the most", expected.inputs, kMaxInputs);
    }
    if (role == Role::attn_qkv || role == Role::attn_qkv_bias) return bind_fused(role, layer, index);
    add(role, layer, index, is_matrix, 0, expected);
    return {};
  }

  // The rows of a fused QKV tensor are Q's, then K's, then V's.
  Status bind_fused(Role role, std::uint32_t layer, std::uint32_t tensor) {
    const bool is_matrix = role == Role::attn_qkv;
    std::uint64_t first = 0;
    for (const auto& [weight, bias] : {std::pair{Role::attn_q, Role::attn_q_bias}, std::pair{Role::attn_k, Role::attn_k_bias},
                                      std::pair{Role::attn_v, Role::attn_v_bias}}) {
      const Role part = is_matrix ? weight : bias;
      const Expected expected = expected_shape(part, spec_, spec_.layers[layer]);
      add(part, layer, tensor, is_matrix, first, expected);
      first += is_matrix ? expected.outputs : expected.inputs;
    }
    return {};
  }

  void add(Role role, std::uint32_t layer, std::uint32_t tensor, bool is_matrix, std::uint64_t first_row, Expected expected) {
    bindings_.push_back({.role = role,
                         .layer = layer,
                         .tensor = tensor,
                         .is_matrix = is_matrix,
                         .first_row = first_row,
                         .shape = {.dtype = file_.tensors()[tensor].dtype,
                                   .outputs = is_matrix ? expected.outputs : 1,
                                   .inputs = expected.inputs}});
  }

  const ModelFile& file_;
  const Architecture& table_;
  const ModelSpec& spec_;
  std::vector<bool> used_;
  std::vector<Binding> bindings_;
};

}  // namespace

Result<std::vector<Binding>> bind_tensors(const ModelFile& file, const Architecture& table, const ModelSpec& spec) {
  return Binder(file, table, spec).bind();
}

}  // namespace tessera::detail
