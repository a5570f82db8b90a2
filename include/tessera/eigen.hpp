// Shows the library's numbers as Eigen expressions, without a copy: logits, result rows, keys and values. Also makes a sampler's stage of a
// function over an Eigen array. No other header includes this one: the library does not use Eigen (3.3 or newer), the application brings
// its own.
//
//   auto logits = session.append(tokens);
//   if (logits) std::printf("%g\n", static_cast<double>(tessera::eigen::matrix(*logits).row(0).maxCoeff()));
//   auto softer = tessera::eigen::stage([](auto logits) { logits /= 2.0f; });
//   auto sampler = tessera::sampling::chain().stage(softer).seed(1).build();
//
// A view of logits is valid until the next call on the session that has computed the logits. A view of keys or values is valid until the KV
// cache is changed next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include <Eigen/Core>

#include <tessera/batch.hpp>
#include <tessera/core/result.hpp>
#include <tessera/extend/kv/kv_view.hpp>
#include <tessera/extend/sampling/stage.hpp>
#include <tessera/session.hpp>

namespace tessera::eigen {

using Vector = Eigen::Map<const Eigen::VectorXf>;
using Matrix = Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
using Array = Eigen::Map<Eigen::ArrayXf>;

// Returns a column vector of the numbers: Session::logits(), Outputs::row(), an embedding.
[[nodiscard]] inline Vector vector(std::span<const float> values) noexcept {
  return {values.data(), static_cast<Eigen::Index>(values.size())};
}

// Returns logits as a matrix  [rows, vocab].
[[nodiscard]] inline Matrix matrix(const Logits& logits) noexcept {
  return {logits.values.data(), static_cast<Eigen::Index>(logits.rows()), static_cast<Eigen::Index>(logits.vocab)};
}

// Returns the numbers as a matrix whose rows have `columns` numbers each  [rows, columns]. Precondition: columns > 0. Numbers after the
// last complete row are left out.
[[nodiscard]] inline Matrix matrix(std::span<const float> values, std::size_t columns) noexcept {
  return {values.data(), static_cast<Eigen::Index>(values.size() / columns), static_cast<Eigen::Index>(columns)};
}

// Says how numbers of a KV type lie in memory, for keys() and values() below. Scalar: Eigen's type of one number. group: how many numbers
// are interleaved in memory, because kernels multiply them at once. In keys these are neighbouring dimensions of one token, in values the
// same dimension of neighbouring tokens (src/kv/block.hpp). Only F32, F16 and BF16 can be viewed. INT8, FP8 and INT4 are stored with
// scales; decode them with kv::decode() (extend/kv/records.hpp).
template <class Scalar>
struct KvScalar;
template <>
struct KvScalar<float> {
  static constexpr DType dtype = DType::f32;
  static constexpr Eigen::Index group = 1;
};
template <>
struct KvScalar<Eigen::half> {
  static constexpr DType dtype = DType::f16;
  static constexpr Eigen::Index group = 2;
};
template <>
struct KvScalar<Eigen::bfloat16> {
  static constexpr DType dtype = DType::bf16;
  static constexpr Eigen::Index group = 2;
};

template <class Scalar>
using KvMatrix = Eigen::Map<const Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>, 0, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;

// Returns the keys of one KV head in a page of a layer. Shape: [page_tokens, dimensions / group], where `group` is KvScalar::group. Row t
// is token t of the page. The columns are the dimensions member, member + group, member + 2 * group, ... So for float (group 1) the view
// shows all dimensions. For types of 16 bits (group 2) a view shows half of them: the even ones if `member` is 0, the odd ones if it is 1.
// Rows of tokens that are not computed yet hold arbitrary numbers. The view is empty if the layer has another KV type or no keys, if the
// page was freed, or if `member` is not below `group`.
template <class Scalar>
[[nodiscard]] KvMatrix<Scalar> keys(const KvLayerView& layer, std::size_t kv_head, std::size_t page, std::size_t member = 0) noexcept {
  constexpr Eigen::Index kGroup = KvScalar<Scalar>::group;
  const auto tokens = static_cast<Eigen::Index>(layer.page_tokens), dims = static_cast<Eigen::Index>(layer.layout->shape.key_dim);
  const bool there = layer.dtype == KvScalar<Scalar>::dtype && member < static_cast<std::size_t>(kGroup) && dims > 0 &&
                     layer.pages[page] != nullptr;
  const Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic> strides(tokens * kGroup, kGroup);  // from dimension to dimension, token to token
  if (!there) return {nullptr, 0, 0, strides};
  const auto* block = reinterpret_cast<const Scalar*>(layer.k_block(kv_head, page));
  const auto m = static_cast<Eigen::Index>(member);
  return {block + member, tokens, (dims - m + kGroup - 1) / kGroup, strides};
}

// Returns the values of one KV head in a page of a layer. Shape: [value_dim, page_tokens / group], where `group` is KvScalar::group. Row d
// is dimension d. The columns are the page's tokens member, member + group, member + 2 * group, ... So for float the view shows all tokens,
// and for types of 16 bits half of them (in values neighbouring tokens are interleaved, in keys neighbouring dimensions).
// The view is empty in the same cases as for keys(), and if the layer's values are part of its keys (latent attention).
template <class Scalar>
[[nodiscard]] KvMatrix<Scalar> values(const KvLayerView& layer, std::size_t kv_head, std::size_t page, std::size_t member = 0) noexcept {
  constexpr Eigen::Index kGroup = KvScalar<Scalar>::group;
  const auto tokens = static_cast<Eigen::Index>(layer.page_tokens);
  const auto dims = static_cast<Eigen::Index>(layer.layout->shape.own_value_dim());
  const bool there = layer.dtype == KvScalar<Scalar>::dtype && member < static_cast<std::size_t>(kGroup) && dims > 0 &&
                     layer.pages[page] != nullptr;
  const Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic> strides(dims * kGroup, kGroup);  // from pair to pair, dimension to dimension
  if (!there) return {nullptr, 0, 0, strides};
  const auto* block = reinterpret_cast<const Scalar*>(layer.v_block(kv_head, page));
  return {block + member, dims, tokens / kGroup, strides};
}

// A sampler's stage (extend/sampling/stage.hpp) made of a function that changes logits. The stage calls function(logits) or
// function(logits, tokens, context), whichever the function accepts. `logits` is an Array that the function changes in place; a logit of
// -infinity removes the candidate. tokens[i] is the token whose logit is logits[i]. The first stage of a chain sees the whole vocabulary,
// in its order. The function must be copyable. If it throws, the draw fails with callback_failed.
//
//   auto long_text = eigen::stage([](eigen::Array logits, std::span<const Token>, const sampling::Context& context) {
//     if (context.history.size() < 10) logits[2] = -HUGE_VALF;  // the first ten tokens are not token 2, the end of the text
//   });
//   auto sampler = sampling::chain().stage(long_text).seed(1).build();
template <class Function>
class LogitStage {
 public:
  static constexpr std::string_view kName = "Eigen stage";

  explicit LogitStage(Function function) : function_(std::move(function)) {}

  void operator()(sampling::Candidates& candidates, const sampling::Context& context) {
    const std::span<float> logits = candidates.change_logits();
    const Array array(logits.data(), static_cast<Eigen::Index>(logits.size()));
    if constexpr (std::is_invocable_v<Function&, Array, std::span<const Token>, const sampling::Context&>) {
      function_(array, candidates.tokens(), context);
    } else {
      function_(array);
    }
  }

 private:
  Function function_;
};

// Makes a stage for sampling::Chain::stage().
template <class Function>
[[nodiscard]] LogitStage<std::decay_t<Function>> stage(Function&& function) {
  return LogitStage<std::decay_t<Function>>(std::forward<Function>(function));
}

}  // namespace tessera::eigen
