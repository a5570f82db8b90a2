#include "made_up.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <tessera/extend/files/gguf_writer.hpp>
#include <tessera/extend/formats/rows.hpp>

#include "failure.hpp"
#include "vocabulary.hpp"

namespace tessera::bench {

namespace {

constexpr double kDeviation = 0.02;  // standard deviation of the weights: models are initialised with it, so activations stay in range
constexpr std::size_t kPoolValues = std::size_t{1} << 18;
constexpr std::size_t kRunValues = 4096;  // values of a run (see Pool): whole blocks in every format

// splitmix64 (Steele, Lea, Flood 2014).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Returns a nearly normal random number of deviation kDeviation: the sum of the four 16-bit parts of `bits`, centred and scaled.
float nearly_normal(std::uint64_t bits) {
  const std::uint64_t sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
  const double centred = (static_cast<double>(sum) - 2.0 * 65535) / 65536.0;  // standard deviation: sqrt(4 / 12)
  return static_cast<float>(centred * (kDeviation / 0.57735));
}

// Makes the bytes of a model's tensors fast: a pool of random weights that are encoded in a format once. A tensor's bytes consist of runs
// of kRunValues values, each copied from a random place of the pool. This is as fast as copying memory, and no two tensors are equal.
class Pool {
 public:
  // Makes a pool in which every weight is `value`; if `value` is 0, a pool of random weights.
  Pool(DType type, float value) : block_(*formats::block_of(type)) {
    std::vector<float> values(kPoolValues, value);
    if (value == 0) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = nearly_normal(mix(i));
    }
    bytes_.resize(kPoolValues / block_.values * block_.bytes);
    check(formats::encode_row(type, values, bytes_));
  }

  // Writes bytes [offset, offset + out.size()) of the tensor with index `tensor` to `out`.
  void fill(std::uint64_t tensor, std::uint64_t offset, std::span<std::byte> out) const noexcept {
    const std::size_t run_blocks = kRunValues / block_.values, run_bytes = run_blocks * block_.bytes;
    const std::size_t places = kPoolValues / block_.values - run_blocks + 1;
    while (!out.empty()) {
      const std::uint64_t run = offset / run_bytes;
      const auto inside = static_cast<std::size_t>(offset % run_bytes);
      const std::size_t place = static_cast<std::size_t>(mix(mix(tensor) + run) % places);
      const std::size_t count = std::min(out.size(), run_bytes - inside);
      std::memcpy(out.data(), bytes_.data() + place * block_.bytes + inside, count);
      out = out.subspan(count);
      offset += count;
    }
  }

 private:
  formats::Block block_;
  std::vector<std::byte> bytes_;
};

struct Tensor {
  std::string name;
  DType type;
  std::vector<std::uint64_t> dims;  // innermost first
  std::uint64_t bytes;
  const Pool* pool;
};

// Returns a ModelSpec with the fields from which the shapes of tensors follow.
ModelSpec spec_of(const Shape& s, std::uint32_t context) {
  const LayerSpec layer{.n_heads = s.heads,
                        .n_kv_heads = s.kv_heads,
                        .key_dim = s.head_dim,
                        .value_dim = s.head_dim,
                        .ffn = s.experts > 0 ? s.architecture->experts.ffn : s.architecture->ffn,
                        .ffn_dim = s.ffn,
                        .n_experts = s.experts,
                        .n_used = s.used,
                        .shared_dim = s.dense.shared};
  ModelSpec spec;
  spec.vocab_size = s.vocab;
  spec.d_model = s.d_model;
  spec.context = context;
  spec.ropes = {{.dim = s.latent.rank != 0 ? s.latent.turned : s.head_dim}};
  spec.layers.assign(s.layers, layer);
  for (LayerSpec& one : spec.layers) {
    if (s.latent.rank == 0) break;
    one.value_dim = s.latent.rank;
    one.plain_dim = s.latent.plain;
    one.head_value_dim = s.latent.value;
    one.query_rank = s.latent.query_rank;
  }
  for (std::uint32_t i = 0; i < s.dense.layers; ++i) {
    LayerSpec& dense = spec.layers[i];
    dense.ffn = s.architecture->ffn;
    dense.ffn_dim = s.dense.ffn;
    dense.n_experts = dense.n_used = dense.shared_dim = 0;
  }
  const RecurrentShape& r = s.recurrent;
  for (std::uint32_t i = 0; i < s.layers; ++i) {
    if (!r.at(i)) continue;
    LayerSpec& mixed = spec.layers[i];
    mixed.mixer = s.architecture->recurrent.mixer;
    mixed.conv_width = r.conv_width;
    mixed.state_heads = r.heads;
    mixed.state_groups = r.groups;
    mixed.state_keys = r.keys;
    mixed.state_values = r.values;
  }
  const auto attends = [](const LayerSpec& one) { return one.mixer == Mixer::attention; };
  const auto last = std::find_if(spec.layers.rbegin(), spec.layers.rend(), attends);
  if (s.mtp_heads != 0 && last != spec.layers.rend()) {
    spec.draft_heads = {.kind = DraftHeadKind::mtp, .layers = std::vector<LayerSpec>(s.mtp_heads, *last)};
  }
  return spec;
}

void set_recurrent_metadata(GgufWriter& writer, const Shape& s) {
  const auto key = [&](std::string_view name) { return fmt::format("{}.{}", s.architecture->name, name); };
  const RecurrentShape& r = s.recurrent;
  if (s.architecture->recurrent.layers == RecurrentLayers::interval) {
    check(writer.set(key("full_attention_interval"), static_cast<std::uint32_t>(r.layers.size())));
  }
  if (r.heads == 0) {
    check(writer.set(key("shortconv.l_cache"), r.conv_width));
    return;
  }
  check(writer.set(key("ssm.conv_kernel"), r.conv_width));
  check(writer.set(key("ssm.state_size"), r.keys));
  check(writer.set(key("ssm.group_count"), r.groups));
  check(writer.set(key("ssm.time_step_rank"), r.heads));
  check(writer.set(key("ssm.inner_size"), r.heads * r.values));
}

void set_latent_metadata(GgufWriter& writer, const Shape& s) {
  const auto key = [&](std::string_view name) { return fmt::format("{}.attention.{}", s.architecture->name, name); };
  const LatentShape& l = s.latent;
  check(writer.set(key("kv_lora_rank"), l.rank));
  check(writer.set(key("key_length_mla"), l.plain + l.turned));
  check(writer.set(key("value_length_mla"), l.value));
  if (l.query_rank != 0) check(writer.set(key("q_lora_rank"), l.query_rank));
}

// Writes the number of KV heads to the model's metadata. Rule: one number for all layers. Exception: some architectures mark a recurrent
// layer by 0 KV heads; for such a model writes a list with one number for each layer.
void set_kv_heads(GgufWriter& writer, const Shape& s) {
  const std::string key = fmt::format("{}.attention.head_count_kv", s.architecture->name);
  if (s.recurrent.layers.empty() || s.architecture->recurrent.layers == RecurrentLayers::interval) return check(writer.set(key, s.kv_heads));
  std::vector<std::int32_t> heads(s.layers);
  for (std::uint32_t i = 0; i < s.layers; ++i) heads[i] = s.recurrent.at(i) ? 0 : static_cast<std::int32_t>(s.kv_heads);
  check(writer.set_array(key, heads));
}

void set_metadata(GgufWriter& writer, const Shape& s, const tool::Target& format, std::uint32_t context) {
  const auto key = [&](std::string_view name) { return fmt::format("{}.{}", s.architecture->name, name); };
  const bool rms = s.architecture->norm == NormKind::rms;
  check(writer.set_string("general.architecture", s.architecture->name));
  check(writer.set_string("general.name", fmt::format("{}, made-up weights", s.name)));
  check(writer.set("general.file_type", tool::file_type(format)));
  check(writer.set("general.quantization_version", std::uint32_t{2}));
  check(writer.set(key("context_length"), context));
  check(writer.set(key("embedding_length"), s.d_model));
  check(writer.set(key("block_count"), s.layers + s.mtp_heads));
  if (s.mtp_heads != 0) check(writer.set(key("nextn_predict_layers"), s.mtp_heads));
  check(writer.set(key("feed_forward_length"), s.dense.layers != 0 ? s.dense.ffn : s.ffn));
  if (s.dense.layers != 0) check(writer.set(key("leading_dense_block_count"), s.dense.layers));
  if (s.experts > 0) {
    if (s.dense.shared != 0) check(writer.set(key("expert_shared_feed_forward_length"), s.dense.shared));
    check(writer.set(key("expert_feed_forward_length"), s.ffn));
    check(writer.set(key("expert_count"), s.experts));
    check(writer.set(key("expert_used_count"), s.used));
  }
  check(writer.set(key("vocab_size"), s.vocab));
  check(writer.set(key("attention.head_count"), s.heads));
  set_kv_heads(writer, s);
  check(writer.set(key("attention.key_length"), s.head_dim));
  check(writer.set(key("attention.value_length"), s.latent.rank != 0 ? s.latent.rank : s.head_dim));
  check(writer.set(key(rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon"), 1e-5f));
  if (!s.recurrent.layers.empty()) set_recurrent_metadata(writer, s);
  if (s.latent.rank != 0) set_latent_metadata(writer, s);
  if (s.architecture->positions != Positions::rope) return;
  check(writer.set(key("rope.dimension_count"), s.latent.rank != 0 ? s.latent.turned : s.head_dim));
  check(writer.set(key("rope.freq_base"), static_cast<float>(s.rope_theta)));
  if (s.architecture->recurrent.mixer == Mixer::delta_net && !s.recurrent.layers.empty()) {
    // M-RoPE divides the pairs of a head among three positions (time, height, width), and this key says how many pairs each of them has. In
    // a text the three positions are equal, so any division would do, but llama.cpp requires the key.
    const auto third = static_cast<std::int32_t>(s.head_dim / 6), rest = static_cast<std::int32_t>(s.head_dim / 2) - 2 * third;
    check(writer.set_array(key("rope.dimension_sections"), std::span<const std::int32_t>(std::array{rest, third, third, 0})));
  }
}

tool::MixedModel mixed_model(const Shape& s) {
  tool::MixedModel mixed{std::string(s.architecture->name), s.layers, s.heads, s.kv_heads, {}};
  const bool all = s.architecture->recurrent.mixer == Mixer::delta_net;  // delta-net layers have a matrix with the name of attention's
  for (std::uint32_t layer = 0; layer < s.layers; ++layer) {
    if (all || !s.recurrent.at(layer)) mixed.value_layers.push_back(layer);
  }
  return mixed;
}

// Describes a made-up model: its metadata, its tensors in file order, and the pools that their values come from.
class Description {
 public:
  Description(const Shape& shape, const tool::Target& format, std::uint32_t context, bool vocabulary)
      : spec_(spec_of(shape, std::max(context, shape.context))), format_(format), rules_(mixed_model(shape), format) {
    set_metadata(writer_, shape, format, spec_.context);
    if (vocabulary) add_vocabulary(writer_, shape.vocab);
    add_all_of(Owner::model, shape, 0);
    for (std::uint32_t layer = 0; layer < shape.layers + shape.mtp_heads; ++layer) {
      add_all_of(Owner::layer, shape, layer);
      if (layer >= shape.layers) add_all_of(Owner::draft_head, shape, layer);
    }
  }

  [[nodiscard]] const GgufWriter& writer() const noexcept { return writer_; }
  [[nodiscard]] std::span<const Tensor> tensors() const noexcept { return tensors_; }

 private:
  void add_all_of(Owner owner, const Shape& shape, std::uint32_t layer) {
    for (const RoleRow& row : kRoleTable) {
      if (row.owner == owner) add(shape, row, layer);
    }
  }

  void add(const Shape& shape, const RoleRow& row, std::uint32_t layer) {
    const Role role = row.role;
    const LayerSpec& of = spec_.layer(layer);
    const bool required = role == Role::output ? !shape.tied : shape.architecture->tensors[role] == Presence::required;
    if (!required || !has_role(spec_, of, role)) return;
    Tensor tensor;
    tensor.name = row.tensor_name(layer);
    tensor.dims = {row.inputs(spec_, of)};
    if (row.is_matrix()) tensor.dims.push_back(row.outputs(spec_, of));
    if (row.count != nullptr) tensor.dims.push_back(row.count(spec_, of));
    const bool matrix = row.is_matrix() && role != Role::position_embd && role != Role::router;
    const bool output = role == Role::output || (shape.tied && role == Role::token_embd);
    const DType wanted = output ? rules_.output() : role == Role::token_embd ? format_.format : rules_.format_of(tensor.name);
    tensor.type = matrix ? tool::fitting(wanted, tensor.dims[0]) : DType::f32;
    // Norm weights are 1, so that a norm only normalises; decay rates are -1, so that a state fades with each token; others are random.
    const bool is_rate = role == Role::delta_rate || role == Role::scan_rate;
    tensor.pool = &pool(tensor.type, row.is_norm ? 1.0f : is_rate ? -1.0f : 0.0f);
    const formats::Block block = *formats::block_of(tensor.type);
    std::uint64_t values = 1;
    for (const std::uint64_t dim : tensor.dims) values *= dim;
    tensor.bytes = values / block.values * block.bytes;
    check(writer_.add_tensor(tensor.name, tensor.type, tensor.dims));
    tensors_.push_back(std::move(tensor));
  }

  const Pool& pool(DType type, float value) { return pools_.try_emplace({type, value}, type, value).first->second; }

  ModelSpec spec_;
  tool::Target format_;
  tool::Rules rules_;
  GgufWriter writer_;
  std::vector<Tensor> tensors_;
  std::map<std::pair<DType, float>, Pool> pools_;
};

class MadeUpSource final : public ByteSource {
 public:
  MadeUpSource(const Shape& shape, const tool::Target& format, std::uint32_t context)
      : name_(fmt::format("made-up {}", shape.name)), description_(shape, format, context, false) {
    // The writer passes the whole header to take(), and then calls stop() for the first tensor's data, which ends the writing.
    const auto take = [&](std::span<const std::byte> bytes) -> Status {
      header_.insert(header_.end(), bytes.begin(), bytes.end());
      return {};
    };
    const auto stop = [](std::string_view, const ByteSink&) -> Status { return Error(ErrorCode::cancelled, ""); };
    const Status written = description_.writer().write(take, stop);
    if (!written && written.error().code() != ErrorCode::cancelled) fail(written.error());
    std::uint64_t offset = header_.size();
    for (const Tensor& tensor : description_.tensors()) {
      offsets_.push_back(offset);
      offset += (tensor.bytes + kAlignment - 1) / kAlignment * kAlignment;
    }
    size_ = offset;
  }

  [[nodiscard]] std::uint64_t size() const noexcept override { return size_; }
  [[nodiscard]] std::string name() const override { return name_; }

  [[nodiscard]] Status read(std::uint64_t offset, std::span<std::byte> out) noexcept override {
    if (offset > size_ || out.size() > size_ - offset) return Error(ErrorCode::io, "read past the end", name_);
    while (!out.empty()) {
      const std::size_t count = static_cast<std::size_t>(read_piece(offset, out));
      out = out.subspan(count);
      offset += count;
    }
    return {};
  }

 private:
  static constexpr std::uint64_t kAlignment = 32;  // GGUF's default

  // Reads the bytes from `offset` on, up to the end of the header, tensor or padding in which `offset` lies. Returns how many it has read.
  std::uint64_t read_piece(std::uint64_t offset, std::span<std::byte> out) const noexcept {
    if (offset < header_.size()) {
      const auto count = std::min<std::uint64_t>(out.size(), header_.size() - offset);
      std::memcpy(out.data(), header_.data() + offset, count);
      return count;
    }
    const auto after = std::upper_bound(offsets_.begin(), offsets_.end(), offset);
    const auto index = static_cast<std::size_t>(after - offsets_.begin()) - 1;
    const Tensor& tensor = description_.tensors()[index];
    const std::uint64_t inside = offset - offsets_[index], next = after == offsets_.end() ? size_ : *after;
    const std::uint64_t end = inside < tensor.bytes ? tensor.bytes : next - offsets_[index];
    const auto count = std::min<std::uint64_t>(out.size(), end - inside);
    if (inside < tensor.bytes) {
      tensor.pool->fill(index, inside, out.first(count));
    } else {
      std::memset(out.data(), 0, count);
    }
    return count;
  }

  std::string name_;
  Description description_;
  std::vector<std::byte> header_;
  std::vector<std::uint64_t> offsets_;  // [tensors]: offset of the tensor's data in the file
  std::uint64_t size_ = 0;
};

}  // namespace

std::shared_ptr<ByteSource> made_up_model(const Shape& shape, const tool::Target& format, std::uint32_t context) {
  return std::make_shared<MadeUpSource>(shape, format, context);
}

void write_made_up_model(const Shape& shape, const tool::Target& format, std::uint32_t context,
                         const std::filesystem::path& path,
                         const std::function<bool(std::uint64_t done, std::uint64_t total)>& advance) {
  const Description description(shape, format, context, true);
  const auto tensors = description.tensors();
  std::uint64_t done = 0, total = 0, index = 0;
  for (const Tensor& tensor : tensors) total += tensor.bytes;
  std::vector<std::byte> piece(std::size_t{4} << 20);
  check(description.writer().write_file(path, [&](std::string_view, const ByteSink& write) -> Status {
    const Tensor& tensor = tensors[index];  // the writer calls for tensors in the order in which they were described
    for (std::uint64_t at = 0; at < tensor.bytes;) {
      const auto out = std::span(piece).first(std::min<std::uint64_t>(piece.size(), tensor.bytes - at));
      tensor.pool->fill(index, at, out);
      if (auto ok = write(out); !ok) return ok;
      at += out.size();
      done += out.size();
      if (!advance(done, total)) return Error(ErrorCode::cancelled, "interrupted");
    }
    ++index;
    return {};
  }));
}

}  // namespace tessera::bench
