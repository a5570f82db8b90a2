#include "model/spec/spec_reader.hpp"

#include <algorithm>
#include <string>

#include "core/printable.hpp"
#include "model/architectures.hpp"
#include "model/spec/parts/attention_spec.hpp"
#include "model/spec/parts/embedding_spec.hpp"
#include "model/spec/parts/feed_spec.hpp"
#include "model/spec/parts/latent_spec.hpp"
#include "model/spec/parts/mtp_spec.hpp"
#include "model/spec/parts/recurrent_spec.hpp"
#include "model/spec/parts/rope_spec.hpp"
#include "model/spec/parts/scale_spec.hpp"
#include "model/spec/parts/shared_keys_spec.hpp"
#include "model/spec/parts/shared_weights_spec.hpp"
#include "model/spec/refused_settings.hpp"
#include "model/spec/setting_reader.hpp"

namespace tessera::detail {

namespace {

Status read_norm(const SettingReader& from, ModelSpec& spec) {
  spec.norm = from.table.norm;
  TESSERA_TRY(const double eps, from.settings.number(spec.norm == NormKind::rms ? Setting::rms_norm_eps : Setting::layer_norm_eps));
  if (!(eps >= 0.0 && eps < 1.0)) return make_error(ErrorCode::corrupt_file, "the norm's epsilon is {}; expected 0 to 1", eps);
  spec.norm_eps = static_cast<float>(eps);
  return {};
}

Status read_vocabulary(const SettingReader& from, ModelSpec& spec) {
  const std::string name = from.called(Role::token_embd);
  const TensorInfo* embedding = from.source.find_tensor(row_of(Role::token_embd).tensor_name());
  if (embedding == nullptr) {
    return error_at(ErrorCode::not_found, fmt::format("tensor {}", name), "the file has no such tensor{}",
                    from.source.tensors().empty() ? ": it holds a vocabulary and no weights" : "");
  }
  const std::string place = fmt::format("tensor {} (offset {})", name, embedding->offset);
  const std::uint64_t rows = embedding->dims[1];
  if (rows == 0 || rows > SettingReader::kMostCount) {
    return error_at(ErrorCode::corrupt_file, place, "it has {} rows; expected 1 to {}", rows, SettingReader::kMostCount);
  }
  spec.vocab_size = static_cast<std::uint32_t>(rows);
  TESSERA_TRY(const std::uint64_t stated, from.settings.unsigned_integer_or(Setting::vocab_size, rows));
  if (stated == rows) return {};
  return error_at(ErrorCode::corrupt_file, place, "it has {} rows, but {} says {}", rows, from.settings.called(Setting::vocab_size), stated);
}

// Reads the number of layers. MTP layers come last in the file; the count leaves them out.
Status count_layers(const SettingReader& from, ModelSpec& spec) {
  TESSERA_TRY(const std::uint32_t n_layers, from.count(Setting::n_layers));
  const std::size_t n_tensors = from.source.tensors().size();
  // A false number of layers could make us allocate much memory. So the number is checked: each layer has at least one tensor in the
  // file, or an element in the list of shared weights.
  TESSERA_TRY(const std::size_t n_listed, listed_layers(from));
  if (n_listed > kMostSharingLayers) {
    return from.corrupt(Setting::weights_of, "weights of {} layers; expected at most {}", n_listed, kMostSharingLayers);
  }
  if (n_layers > std::max(n_tensors, n_listed)) return from.corrupt(Setting::n_layers, "{} layers in a file of {} tensors", n_layers, n_tensors);
  TESSERA_TRY(const std::uint64_t left_out, from.settings.unsigned_integer_or(Setting::n_further_layers, 0));
  if (left_out >= n_layers) return from.corrupt(Setting::n_further_layers, "{} of {} layers", left_out, n_layers);
  spec.n_left_out = static_cast<std::uint32_t>(left_out);
  spec.layers.resize(n_layers - spec.n_left_out);
  return {};
}

Status read_layers(const SettingReader& from, const SpecOverrides& overrides, ModelSpec& spec) {
  TESSERA_TRY_STATUS(count_layers(from, spec));
  TESSERA_TRY_STATUS(read_mixers(from, spec));
  for (std::uint32_t i = 0; i < spec.n_layers(); ++i) {
    LayerSpec& layer = spec.layers[i];
    layer.activation = from.table.activation;
    if (layer.ffn != Ffn::none) TESSERA_TRY_STATUS(read_feed(from, layer, i, spec.n_layers()));
    if (layer.mixer == Mixer::attention) TESSERA_TRY_STATUS(read_attention(from, overrides, i, spec));
  }
  return {};
}

// Reads the size of the per-layer embeddings: the vectors that each layer has for a token in addition to the token's embedding.
Status read_per_layer_inputs(const SettingReader& from, ModelSpec& spec) {
  TESSERA_TRY(const std::uint64_t dim, from.settings.unsigned_integer_or(Setting::per_layer_dim, 0));
  if (!from.table.has_per_layer_inputs || dim == 0) return {};
  TESSERA_TRY(spec.per_layer_dim, from.to_count(Setting::per_layer_dim, dim));
  return {};
}

}  // namespace

Result<const Architecture*> find_architecture(const Settings& settings) {
  TESSERA_TRY(const auto name, settings.string(Setting::architecture));
  if (const Architecture* table = arch::find(name)) return table;
  std::string known;
  for (const Architecture* table : arch::kAll) known += (known.empty() ? "" : ", ") + std::string(table->name);
  return error_at(ErrorCode::unsupported, "key " + settings.called(Setting::architecture), "unknown architecture \"{}\"; tessera has {}",
                  printable(name), known);
}

Result<ModelSpec> read_spec(const ModelSource& source, const Architecture& table, const SpecOverrides& overrides) {
  const SettingReader from(source, table);
  TESSERA_TRY_STATUS(refuse_unsupported(from));
  ModelSpec spec;
  spec.architecture = table.name;
  TESSERA_TRY(spec.name, from.settings.string_or(Setting::name, ""));
  const bool is_usual = table.wiring == Wiring::parallel, has_both = is_usual && table.tensors[Role::ffn_norm] == Presence::required;
  TESSERA_TRY(const bool is_parallel, from.settings.boolean_or(Setting::parallel_residual, is_usual));
  if (is_parallel != is_usual && !has_both) {
    return from.unsupported(Setting::parallel_residual, "tessera does not implement this architecture with {}", is_parallel ? "attention and FFN in parallel" : "attention before the FFN");
  }
  spec.wiring = is_parallel ? Wiring::parallel : Wiring::sequential;
  spec.positions = table.positions;
  TESSERA_TRY_STATUS(read_norm(from, spec));
  TESSERA_TRY(spec.d_model, from.count(Setting::d_model));
  TESSERA_TRY(spec.context, from.count(Setting::context));
  TESSERA_TRY_STATUS(read_vocabulary(from, spec));
  TESSERA_TRY_STATUS(read_layers(from, overrides, spec));
  TESSERA_TRY_STATUS(read_shared_keys(from, spec));
  TESSERA_TRY_STATUS(read_per_layer_inputs(from, spec));
  TESSERA_TRY_STATUS(read_rope(from, overrides, spec));
  TESSERA_TRY_STATUS(read_scales(from, spec));
  TESSERA_TRY_STATUS(read_latent(from, spec));
  TESSERA_TRY_STATUS(read_shared_weights(from, spec));
  TESSERA_TRY_STATUS(read_embedding(from, spec));
  if (overrides.mtp == MtpHeads::load) TESSERA_TRY_STATUS(read_mtp_head(from, spec));
  return spec;
}

}  // namespace tessera::detail
