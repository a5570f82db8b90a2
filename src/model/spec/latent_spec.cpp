#include "model/spec/latent_spec.hpp"

#include <cmath>
#include <limits>
#include <string>

#include "core/error.hpp"
#include "core/math.hpp"
#include "model/spec/rope_spec.hpp"

namespace tessera::detail {

namespace {

class LatentReader {
 public:
  LatentReader(const ModelFile& file, const Architecture& table, ModelSpec& spec)
      : file_(file), meta_(file.metadata()), table_(table), spec_(spec) {}

  Status read() {
    if (meta_.find(key("attention.key_length_mla")) == nullptr) {
      return error_at(ErrorCode::unsupported, "key " + key("attention.key_length_mla"),
                      "the file has none: its attention is as converters wrote it before they split attn_kv_b; convert the model again");
    }
    TESSERA_TRY(const std::uint32_t head, count("attention.key_length_mla"));
    TESSERA_TRY(const std::uint32_t value, count("attention.value_length_mla"));
    TESSERA_TRY(const std::uint32_t rank, count("attention.kv_lora_rank"));
    TESSERA_TRY(const std::uint64_t query_rank, meta_.unsigned_integer_or(key("attention.q_lora_rank"), 0));
    if (query_rank > std::numeric_limits<std::int32_t>::max()) {
      return error_at(ErrorCode::corrupt_file, "key " + key("attention.q_lora_rank"), "the value is {}", query_rank);
    }
    TESSERA_TRY(const double growth, growth_of_scores());
    const std::uint32_t turned = spec_.ropes.front().dim;
    if (head <= turned) {
      return error_at(ErrorCode::corrupt_file, "key " + key("attention.key_length_mla"),
                      "of {} elements {} rotate; expected some that do not", head, turned);
    }
    for (LayerSpec& layer : spec_.layers) {
      if (layer.n_kv_heads != 1 || layer.value_dim != rank || layer.key_dim != std::uint64_t{rank} + turned) {
        return error_at(ErrorCode::corrupt_file, "key " + key("attention.key_length"),
                        "{} KV heads with keys of {} and values of {}; of a latent of {} and {} that rotate expected 1 of {} and {}",
                        layer.n_kv_heads, layer.key_dim, layer.value_dim, rank, turned, std::uint64_t{rank} + turned, rank);
      }
      layer.plain_dim = head - turned;
      layer.head_value_dim = value;
      layer.query_rank = static_cast<std::uint32_t>(query_rank);
      if (meta_.find(key("attention.scale")) == nullptr) layer.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(head)));
      layer.scale = static_cast<float>(static_cast<double>(layer.scale) * growth * growth);
    }
    return read_routing();
  }

 private:
  [[nodiscard]] std::string key(std::string_view name) const { return fmt::format("{}.{}", table_.name, name); }

  Result<std::uint32_t> count(std::string_view name) const {
    TESSERA_TRY(const std::uint64_t value, meta_.unsigned_integer(key(name)));
    if (value >= 1 && value <= std::numeric_limits<std::int32_t>::max()) return static_cast<std::uint32_t>(value);
    return error_at(ErrorCode::corrupt_file, "key " + key(name), "the value is {}; expected 1 to {}", value,
                    std::numeric_limits<std::int32_t>::max());
  }

  // With YaRN it is scores that grow, by its square, where the file has a multiplier, which the converter has multiplied by 0.1. What
  // rotates then keeps its size, unless the file names a magnitude.
  Result<double> growth_of_scores() {
    RopeSpec& rope = spec_.ropes.front();
    TESSERA_TRY(const auto type, meta_.string_or(key("rope.scaling.type"), ""));
    TESSERA_TRY(const double multiplier, meta_.number_or(key("rope.scaling.yarn_log_multiplier"), 0.0));
    if (type != "yarn" || multiplier == 0.0) return 1.0;
    if (meta_.find(key(kYarnMagnitudeKey)) == nullptr) {
      TESSERA_TRY(const double magnitude, meta_.number_or(key("rope.scaling.attn_factor"), 1.0));
      rope.magnitude = static_cast<float>(magnitude);
    }
    return rope.linear_factor > 1.0 ? multiplier * math::log(rope.linear_factor) + 1.0 : 1.0;
  }

  // Scores of a choice with a bias are sigmoids, also in a file that does not say so.
  Status read_routing() {
    TESSERA_TRY(const std::uint64_t said, meta_.unsigned_integer_or(key("expert_gating_func"), 0));
    for (std::uint32_t i = 0; i < spec_.n_layers(); ++i) {
      LayerSpec& layer = spec_.layers[i];
      if (layer.ffn != Ffn::experts) continue;
      if (said == 0 && file_.find_tensor(row_of(Role::choice_bias).tensor_name(i)) != nullptr) layer.routing = RoutingKind::sigmoid;
      if (layer.routing == RoutingKind::softmax) layer.group_score = table_.experts.softmax_groups;
    }
    return {};
  }

  const ModelFile& file_;
  const GgufFile& meta_;
  const Architecture& table_;
  ModelSpec& spec_;
};

}  // namespace

Status read_latent(const ModelFile& file, const Architecture& table, ModelSpec& spec) {
  return table.is_latent ? LatentReader(file, table, spec).read() : Status();
}

}  // namespace tessera::detail
