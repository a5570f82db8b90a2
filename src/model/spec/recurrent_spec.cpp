#include "model/spec/recurrent_spec.hpp"

#include <string>

#include "backend/recurrent_state.hpp"
#include "core/error.hpp"

namespace tessera::detail {

namespace {

constexpr std::uint64_t kMostHeads = 4096;           // ten times what models have
constexpr std::uint64_t kMostOfHead = 4096;          // keys, or values
constexpr std::uint64_t kMostColumns = 1 << 24;      // of all heads

class MixerReader {
 public:
  MixerReader(const GgufFile& metadata, const Architecture& table, ModelSpec& spec) : meta_(metadata), table_(table), spec_(spec) {}

  Status read() {
    TESSERA_TRY_STATUS(read_numbers());
    for (std::uint32_t i = 0; i < spec_.n_layers(); ++i) {
      LayerSpec& layer = spec_.layers[i];
      const bool alone = table_.recurrent.layers == RecurrentLayers::neither_kv_heads_nor_feed;
      if (alone) {
        TESSERA_TRY(const std::uint64_t feed, of_layer("feed_forward_length", i));
        if (feed != 0) {
          layer.mixer = Mixer::none;
          continue;
        }
        layer.ffn = Ffn::none;
      }
      TESSERA_TRY(const bool recurrent, is_recurrent(i));
      if (!recurrent) continue;
      const Ffn ffn = layer.ffn;
      layer = numbers_;
      layer.ffn = ffn;
    }
    return {};
  }

 private:
  [[nodiscard]] std::string key(std::string_view name) const { return fmt::format("{}.{}", table_.name, name); }

  Result<std::uint32_t> count(std::string_view name, std::uint64_t most) const {
    TESSERA_TRY(const std::uint64_t value, meta_.unsigned_integer(key(name)));
    if (value >= 1 && value <= most) return static_cast<std::uint32_t>(value);
    return error_at(ErrorCode::corrupt_file, "key " + key(name), "the value is {}; expected 1 to {}", value, most);
  }

  // A number for all layers, or an array with one for each.
  Result<std::uint64_t> of_layer(std::string_view name, std::uint32_t layer) const {
    const GgufEntry* entry = meta_.find(key(name));
    if (entry == nullptr || entry->type != GgufType::array) return meta_.unsigned_integer(key(name));
    TESSERA_TRY(const GgufArray array, meta_.array(key(name)));
    if (!array.is_integer() || array.size() < spec_.n_layers() || array.integer(layer) < 0) {
      return error_at(ErrorCode::corrupt_file, "key " + key(name), "expected an array of {} numbers from 0 on, one per layer",
                      spec_.n_layers());
    }
    return static_cast<std::uint64_t>(array.integer(layer));
  }

  Result<bool> is_recurrent(std::uint32_t layer) const {
    if (table_.recurrent.layers != RecurrentLayers::interval) {
      TESSERA_TRY(const std::uint64_t kv_heads, of_layer("attention.head_count_kv", layer));
      return kv_heads == 0;
    }
    const std::string said = key("attention.recurrent_layers");
    if (meta_.find(said) != nullptr) {
      TESSERA_TRY(const GgufArray array, meta_.array(said));
      if ((array.type() != GgufType::boolean && !array.is_integer()) || array.size() < spec_.n_layers()) {
        return error_at(ErrorCode::corrupt_file, "key " + said, "expected an array of {} booleans, one per layer", spec_.n_layers());
      }
      return array.integer(layer) != 0;
    }
    const std::string name = key("full_attention_interval");
    TESSERA_TRY(const std::uint64_t interval, meta_.unsigned_integer_or(name, 4));
    if (interval == 0) return error_at(ErrorCode::corrupt_file, "key " + name, "the value is 0; expected a number from 1 on");
    return (layer + std::uint64_t{1}) % interval != 0;
  }

  Status read_numbers() {
    numbers_.mixer = table_.recurrent.mixer;
    numbers_.group_order = table_.recurrent.group_order;
    const bool is_short = numbers_.mixer == Mixer::short_convolution;
    TESSERA_TRY(numbers_.conv_width, count(is_short ? "shortconv.l_cache" : "ssm.conv_kernel", backend::kMostConvolved));
    if (is_short) return {};
    TESSERA_TRY(numbers_.state_keys, count("ssm.state_size", kMostOfHead));
    TESSERA_TRY(numbers_.state_heads, count("ssm.time_step_rank", kMostHeads));
    TESSERA_TRY(numbers_.state_groups, count("ssm.group_count", kMostHeads));
    TESSERA_TRY(const std::uint32_t columns, count("ssm.inner_size", kMostColumns));
    numbers_.state_values = columns / numbers_.state_heads;
    if (columns % numbers_.state_heads != 0 || numbers_.state_values > kMostOfHead) {
      return error_at(ErrorCode::corrupt_file, "key " + key("ssm.inner_size"), "{} values cannot be {} heads of up to {}", columns,
                      numbers_.state_heads, kMostOfHead);
    }
    if (numbers_.state_heads % numbers_.state_groups != 0) {
      return error_at(ErrorCode::corrupt_file, "key " + key("ssm.group_count"), "{} heads cannot share {} groups evenly",
                      numbers_.state_heads, numbers_.state_groups);
    }
    return {};
  }

  const GgufFile& meta_;
  const Architecture& table_;
  ModelSpec& spec_;
  LayerSpec numbers_;
};

}  // namespace

Status read_mixers(const GgufFile& metadata, const Architecture& table, ModelSpec& spec) {
  return table.recurrent.layers == RecurrentLayers::none ? Status() : MixerReader(metadata, table, spec).read();
}

std::uint64_t state_bytes(const ModelSpec& spec, const LayerSpec& layer) noexcept {
  if (!layer.is_recurrent()) return 0;
  const bool is_short = layer.mixer == Mixer::short_convolution;
  const std::uint64_t columns = is_short ? spec.d_model : extent::mixed(spec, layer);
  return sizeof(float) * (backend::convolution_floats(layer.conv_width, columns) +
                          layer.state_heads * backend::head_state_floats(layer.state_keys, layer.state_values));
}

}  // namespace tessera::detail
