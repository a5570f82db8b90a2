#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/hasher.hpp"
#include "core/math.hpp"
#include "core/printable.hpp"
#include "formats/formats.hpp"
#include "model/draft_heads.hpp"
#include "model/load/weight_rows.hpp"
#include "model/model.hpp"

namespace tessera::detail {

namespace {

// Returns the role of the tensor with the divisors of the first rope's frequencies, one for each pair of dimensions. With LongRoPE this
// is the tensor of long or of short factors; otherwise rope_freqs (Llama 3.1), which a file need not have.
constexpr Role factors_of(const RopeSpec& rope) noexcept {
  return rope.factors == LongRope::long_context    ? Role::rope_factors_long
         : rope.factors == LongRope::short_context ? Role::rope_factors_short
                                                   : Role::rope_freqs;
}

// Returns how many bytes of the file belong to the binding's vectors: all bytes of the tensor. Exception: if the tensor fuses vectors of
// several roles (biases of Q, K and V), only the bytes of the binding's vector.
std::uint64_t vector_file_bytes(const Binding& binding, const TensorInfo& tensor) noexcept {
  return binding.shape.count != 1 ? tensor.bytes : binding.whole_shape().inputs * tensor.bytes / tensor.dims[0];
}

// Returns how much YaRN lowers the frequency f of a rope pair, as a share s between 0 and 1 (Peng et al. 2023, section 3.2). `pair`: the
// pair's index.
// - s = 0: the frequency stays f.
// - s = 1: the frequency becomes f / factor (the factor by which YaRN stretches the context).
// - Between 0 and 1: the frequency becomes (1 - s) * f + s * f / factor.
double slowed_share(const RopeSpec& rope, double pair) noexcept {
  return std::clamp((pair - rope.first_slowed) / std::max(0.001, rope.all_slowed - rope.first_slowed), 0.0, 1.0);
}

// Returns the frequency of each pair of a rope. For pair i (from 0) the frequency is theta^(-2i/d): theta is the rope's base, and d the
// number of rotated elements (Su et al. 2021, section 3.2.2). Scaling divides the frequencies. Linear scaling divides all frequencies
// by one number (slowed_share() is 1 for all pairs); YaRN leaves some frequencies unchanged. `factors` (Llama 3.1, LongRoPE) has a further
// divisor for each frequency; empty: there are none.
Result<std::vector<double>> frequencies_of(const RopeSpec& rope, std::span<const float> factors, const ModelSource& source) {
  std::vector<double> frequencies(rope.dim / 2);
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(rope.dim);
    const double frequency = math::pow(rope.theta, exponent);
    const double slowed = slowed_share(rope, static_cast<double>(i));
    frequencies[i] = slowed == 1.0 ? frequency / rope.linear_factor
                                   : frequency * (1.0 - slowed) + frequency / rope.linear_factor * slowed;
    if (factors.empty()) continue;
    if (!(factors[i] > 0.0f) || !std::isfinite(factors[i])) {
      return error_at(ErrorCode::corrupt_file, fmt::format("tensor {}", printable(source.called(row_of(factors_of(rope)).tensor_name()))),
                      "factor {} is {}; expected a positive number", i, factors[i]);
    }
    frequencies[i] /= static_cast<double>(factors[i]);
  }
  return frequencies;
}

// Fills the model's rope tables. `factors` divide the frequencies of the first rope only.
Status make_ropes(Model& model, std::span<const float> factors, const ModelSource& source) {
  const ModelSpec& spec = model.spec;
  for (const RopeSpec& rope : spec.ropes) {
    TESSERA_TRY(auto frequencies, frequencies_of(rope, model.rope_frequencies.empty() ? factors : std::span<const float>(), source));
    model.rope_frequencies.push_back(std::move(frequencies));
  }
  for (std::size_t i = 0; i < spec.ropes.size(); ++i) {
    model.ropes.push_back({.pairs = spec.ropes[i].pairs,
                           .frequencies = model.rope_frequencies[i],
                           .magnitude = spec.ropes[i].magnitude});
  }
  for (const LayerSpec& layer : spec.layers) {
    model.layer_ropes.push_back(layer.rope != kNoRope ? model.ropes[layer.rope] : backend::RopeTable());
  }
  return {};
}

// Returns whether the tensor is a single number, which the Model keeps as a float instead of giving it to the backend.
constexpr bool is_number(const Binding& binding) noexcept { return binding.role == Role::output_scale; }

// Returns the head sizes of the layers that norm their values, each size once.
std::vector<std::uint32_t> normed_value_dims(const ModelSpec& spec) {
  std::vector<std::uint32_t> dims;
  for (const LayerSpec& layer : spec.layers) {
    if (layer.value_norm != ValueNorm::none && std::ranges::find(dims, layer.value_dim) == dims.end()) dims.push_back(layer.value_dim);
  }
  return dims;
}

// Adds a vector of ones for each head size, as the weights of norms of values: the backend's norm needs weights, and the file has none.
Status add_value_norms(Model& model, backend::Backend& backend) {
  for (const std::uint32_t dim : normed_value_dims(model.spec)) {
    TESSERA_TRY(const backend::Vector* ones, backend.add_vector(std::vector<float>(dim, 1.0f)));
    for (std::size_t i = 0; i < model.spec.layers.size(); ++i) {
      const LayerSpec& layer = model.spec.layers[i];
      if (layer.value_norm != ValueNorm::none && layer.value_dim == dim) model.layer_weights[i].value_norm = ones;
    }
  }
  return {};
}

// Adds the weights for shift_hidden(), by which draft heads give each row the hidden state of the row before it. The shift is computed as
// a convolution of width 2, which backends have already: the weights are 1 for the row before and 0 for the row itself. Does nothing if
// the heads do not keep hidden states as a state.
Status add_hidden_shift(Model& model, backend::Backend& backend) {
  if (!keeps_hidden(model.spec, HiddenKept::as_state)) return {};
  std::vector<float> shift(2 * std::size_t{model.spec.d_model}, 0.0f);
  std::fill_n(shift.begin(), model.spec.d_model, 1.0f);
  TESSERA_TRY(model.hidden_shift, backend.add_vector(shift));
  return {};
}

// Returns how many of a tensor's `bytes` in the file are read to compute one token: all of them. Exception: of a tensor with the matrices
// of all experts, only the matrices of the experts that a token uses (n_used).
std::uint64_t read_for_a_token(std::uint64_t bytes, const Binding& binding, const ModelSpec& spec) noexcept {
  const bool is_experts = row_of(binding.role).count == extent::experts;
  return !is_experts || binding.shape.count == 1 ? bytes
                                                 : bytes / binding.shape.count * spec.layer(binding.layer).n_used;
}

// Returns how many layers use a weight.
std::uint64_t users_of(const Binding& binding, const ModelSpec& spec) noexcept {
  if (row_of(binding.role).owner == Owner::model || binding.layer >= spec.n_layers()) return 1;
  std::uint64_t users = 0;
  for (std::uint32_t i = binding.layer; i < spec.n_layers(); ++i) users += i - spec.layers[i].weights_back == binding.layer ? 1 : 0;
  return users;
}

// Copies the pointers to an earlier layer's weights to the layers that use that layer's weights (LayerSpec::weights_back).
void share_weights(Model& model) noexcept {
  for (std::uint32_t i = 0; i < model.spec.n_layers(); ++i) {
    const std::uint32_t back = model.spec.layers[i].weights_back;
    if (back != 0) model.layer_weights[i] = model.layer_weights[i - back];
  }
}

}  // namespace

std::uint64_t model_bytes(const ModelSpec& spec) noexcept {
  std::uint64_t bytes = spec.n_layers_with_heads() * (sizeof(LayerSpec) + sizeof(Weights) + sizeof(backend::RopeTable) +
                                                      sizeof(backend::AttentionShape));
  for (const RopeSpec& rope : spec.ropes) {
    bytes += sizeof(RopeSpec) + sizeof(std::vector<double>) + sizeof(backend::RopeTable) + rope.dim / 2 * sizeof(double);
  }
  return bytes + spec.draft_heads.vocab_size * sizeof(Token);
}

WeightBytes weight_bytes(std::span<const Binding> bindings, const ModelSource& source, const ModelSpec& spec,
                         const backend::Backend& backend) {
  WeightBytes bytes;
  const bool tied = std::none_of(bindings.begin(), bindings.end(), [](auto& b) { return b.role == Role::output; });
  for (const Binding& binding : bindings) {
    const std::uint64_t in_file =
        binding.is_matrix ? binding.whole_shape().rows() * file_row_bytes(binding.shape)
                          : vector_file_bytes(binding, source.tensors()[binding.tensor]);
    bytes.file += in_file;
    const bool gathered = binding.role == Role::position_embd || binding.role == Role::per_layer_token_embd ||
                          (binding.role == Role::token_embd && !tied);
    const bool is_of_head = row_of(binding.role).owner != Owner::model && binding.layer >= spec.n_layers();
    if (!gathered && !is_of_head) bytes.streamed += users_of(binding, spec) * read_for_a_token(in_file, binding, spec);
    bytes.all_f32 = bytes.all_f32 && (!binding.is_matrix || binding.shape.dtype == DType::f32);
    if (!binding.own.here) continue;
    if (!binding.is_matrix) {
      if (!is_number(binding)) bytes.packed += backend.vector_bytes(vector_values(binding));
      continue;
    }
    bytes.packed += backend.matrix_bytes(binding.shape);
    if (binding.companions.has(Companion::factors)) bytes.packed += backend.vector_bytes(binding.shape.count);
    bytes.staging = std::max(bytes.staging, backend.staging_bytes(binding.shape));
  }
  for (const std::uint32_t dim : normed_value_dims(spec)) bytes.packed += backend.vector_bytes(dim);
  if (keeps_hidden(spec, HiddenKept::as_state)) bytes.packed += backend.vector_bytes(2 * std::uint64_t{spec.d_model});
  return bytes;
}

namespace {

// Reads the weights, one binding after another. With ReadBytes::all it reads and hashes every byte of every weight, in the file's order,
// also rows that other ranks have: the hash of all weights must be the same on all ranks.
class BindingReader {
 public:
  using Progress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

  BindingReader(const ModelSource& source, std::span<const Binding> bindings, const Progress& progress, const std::stop_token& stop, ReadBytes bytes)
      : source_(source), progress_(progress), stop_(stop), reads_all_(bytes == ReadBytes::all) {
    for (const Binding& binding : bindings) total_ += bytes_of(binding);
  }

  // Lets the backend pack the rows of the matrix that this rank has, and returns the packed matrix; nullptr if this rank has no row of it.
  Result<const backend::Matrix*> matrix(const Binding& binding, backend::Backend& backend) {
    const std::uint64_t whole = binding.whole_shape().outputs, own = binding.shape.outputs;
    std::uint64_t next = 0;  // the first row of the whole weight that was not read
    const backend::Matrix* packed = nullptr;
    if (binding.own.here) {
      const auto read = [&](std::uint64_t first, std::uint64_t count, std::span<std::byte> out) -> Status {
        const std::uint64_t row_bytes = file_row_bytes(binding.shape);
        while (count != 0) {  // one iteration for each matrix of the weight
          const std::uint64_t n = std::min(count, own - first % own), at = first / own * whole + binding.own.first + first % own;
          TESSERA_TRY_STATUS(pass(binding, next, at));
          TESSERA_TRY_STATUS(rows(binding, at, out.first(n * row_bytes)));
          next = at + n;
          first += n;
          count -= n;
          out = out.subspan(n * row_bytes);
        }
        return {};
      };
      TESSERA_TRY(packed, backend.add_matrix(binding.shape, read));
    }
    TESSERA_TRY_STATUS(pass(binding, next, binding.whole_shape().rows()));
    if (binding.companions.has(Companion::factors)) {
      TESSERA_TRY(const std::vector<float> factors, read_factors(source_, binding, hasher_));
      if (packed != nullptr) TESSERA_TRY_STATUS(backend.scale_products(*packed, factors));
    }
    if (binding.rounds_inputs) {
      TESSERA_TRY(const InputRounding how, source_.input_rounding(source_.tensors()[binding.tensor]));
      hasher_.add(std::as_bytes(std::span(how.scales)));  // scales change results. The kernel family's name says the kind of rounding
      hasher_.add(std::as_bytes(std::span(how.zeros)));
      if (packed != nullptr) TESSERA_TRY_STATUS(backend.round_inputs(*packed, how));
    }
    return packed;
  }

  Result<std::vector<float>> vector(const Binding& binding) {
    TESSERA_TRY(std::vector<float> values, read_vector(source_, source_.tensors()[binding.tensor], binding, hasher_));
    TESSERA_TRY_STATUS(advance(bytes_of(binding)));
    return values;
  }

  // Counts bytes as read. Error: cancelled.
  Status advance(std::uint64_t bytes) {
    done_ += bytes;
    if (stop_.stop_requested() || (progress_ && !progress_(std::min(done_, total_), total_))) {
      return make_error(ErrorCode::cancelled, "loading was cancelled after {} of {} bytes", done_, total_);
    }
    return {};
  }
  [[nodiscard]] Hash128 hash() const noexcept { return hasher_.digest(); }

 private:
  [[nodiscard]] std::uint64_t bytes_of(const Binding& binding) const {
    const backend::MatrixShape& shape = reads_all_ ? binding.whole_shape() : binding.shape;
    return !reads_all_ && !binding.own.here ? 0 : shape.rows() * file_row_bytes(shape);
  }
  Status rows(const Binding& binding, std::uint64_t first, std::span<std::byte> out) {
    TESSERA_TRY_STATUS(read_rows(source_, source_.tensors()[binding.tensor], binding, first, out));
    if (reads_all_) hasher_.add(out);
    return advance(out.size());
  }
  // Reads rows [first, last), which other ranks have, to hash them. Does nothing if the hash needs no rows of other ranks (reads_all_).
  Status pass(const Binding& binding, std::uint64_t first, std::uint64_t last) {
    if (!reads_all_ || first == last) return {};
    constexpr std::uint64_t kBytesAtOnce = 1u << 20;
    const std::uint64_t row_bytes = file_row_bytes(binding.shape), rows_at_once = std::max<std::uint64_t>(1, kBytesAtOnce / row_bytes);
    for (; first < last; first += std::min(rows_at_once, last - first)) {
      passed_.resize(std::min(rows_at_once, last - first) * row_bytes);
      TESSERA_TRY_STATUS(rows(binding, first, passed_));
    }
    return {};
  }

  const ModelSource& source_;
  const Progress& progress_;
  const std::stop_token& stop_;
  bool reads_all_;
  Hasher128 hasher_;
  std::uint64_t done_ = 0, total_ = 0;
  std::vector<std::byte> passed_;
};

}  // namespace

Status load_weights(Model& model, const ModelSource& source, std::span<const Binding> bindings,
                    backend::Backend& backend,
                    const std::function<bool(std::uint64_t done, std::uint64_t total)>& progress,
                    const std::stop_token& stop, ReadBytes bytes) {
  BindingReader reader(source, bindings, progress, stop, bytes);
  TESSERA_TRY_STATUS(reader.advance(0));
  model.layer_weights.resize(model.spec.n_layers_with_heads());
  std::vector<float> rope_factors;
  for (const Binding& binding : bindings) {
    const auto role = static_cast<std::size_t>(binding.role);
    const bool once = row_of(binding.role).owner == Owner::model;
    Weights& weights = once ? model.weights : model.layer_weights[binding.layer];
    if (!binding.own.here && bytes == ReadBytes::own) continue;
    if (binding.is_matrix) {
      TESSERA_TRY(weights.matrices[role], reader.matrix(binding, backend));
      continue;
    }
    TESSERA_TRY(const std::vector<float> values, reader.vector(binding));
    if (is_number(binding)) {
      weights.output_scale = values.front();
    } else if (binding.own.here) {
      TESSERA_TRY(weights.vectors[role], backend.add_vector(values));
    }
    if (!model.spec.ropes.empty() && binding.role == factors_of(model.spec.ropes.front())) rope_factors = values;
  }
  share_weights(model);
  TESSERA_TRY_STATUS(add_value_norms(model, backend));
  TESSERA_TRY_STATUS(add_hidden_shift(model, backend));
  backend.finish_loading();
  if (bytes == ReadBytes::all) model.weights_hash = reader.hash();
  return make_ropes(model, rope_factors, source);
}

}  // namespace tessera::detail
