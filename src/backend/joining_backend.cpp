#include "backend/joining_backend.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace tessera::backend {

Status JoiningBackend::linear(const Matrix& weight, Act in, Act out) {
  TESSERA_TRY_STATUS(inner().linear(weight, in, out));
  return joins(weight) ? join(weight, in, out) : Status();
}

Status JoiningBackend::head_linear(const Matrix& weight, Act in, Act out) {
  TESSERA_TRY_STATUS(inner().head_linear(weight, in, out));
  return joins(weight) ? join(weight, in, out) : Status();
}

Status JoiningBackend::experts(const Experts& of, Act in, Act router, Act out) {
  const auto joined = [&](const Matrix* weight) { return weight != nullptr && joins(*weight); };
  if (!joined(of.gate) && !joined(of.up) && !joined(of.down)) return inner().experts(of, in, router, out);
  Experts with = of;
  with.behind = this;
  return inner().experts(with, in, router, out);
}

void JoiningBackend::join(const Matrix& weight, std::uint32_t expert, std::uint32_t row, std::span<const float> in,
                          std::span<float> product) noexcept {
  if (joins(weight)) join_expert(weight, expert, row, in, product);
}

bool JoiningBackend::joins_any(std::span<const LinearPart> parts) const noexcept {
  return std::ranges::any_of(parts, [&](const LinearPart& part) { return joins(*part.weight); });
}

// Fused operations. If joins(weight) is false, the inner backend computes the fused operation. Otherwise Backend's default computes it
// from plain operations, among them linear() above, which adds the term.
Status JoiningBackend::linear_bias(const Matrix& weight, const Vector* bias, Act in, Act out) {
  return joins(weight) ? Backend::linear_bias(weight, bias, in, out) : inner().linear_bias(weight, bias, in, out);
}

Status JoiningBackend::linear_residual(const Matrix& weight, const Vector* bias, Act in, Act scratch, Act x) {
  return joins(weight) ? Backend::linear_residual(weight, bias, in, scratch, x)
                       : inner().linear_residual(weight, bias, in, scratch, x);
}

// The products are still computed together. The biases are added after the joined terms.
Status JoiningBackend::linear_group(std::span<const LinearPart> parts, Act in) {
  if (!joins_any(parts)) return inner().linear_group(parts, in);
  products_.assign(parts.begin(), parts.end());
  for (LinearPart& part : products_) part.bias = nullptr;
  TESSERA_TRY_STATUS(inner().linear_group(products_, in));
  TESSERA_TRY_STATUS(join_group(products_, in));
  for (const LinearPart& part : parts) {
    if (part.bias != nullptr) TESSERA_TRY_STATUS(inner().add_bias(*part.bias, part.out));
  }
  return {};
}

Status JoiningBackend::join_group(std::span<const LinearPart> parts, Act in) {
  for (const LinearPart& part : parts) {
    if (joins(*part.weight)) TESSERA_TRY_STATUS(join(*part.weight, in, part.out));
  }
  return {};
}

Status JoiningBackend::norm_linear_group(const Norm& norm, Act in, Act scratch, std::span<const LinearPart> parts) {
  return joins_any(parts) ? Backend::norm_linear_group(norm, in, scratch, parts)
                          : inner().norm_linear_group(norm, in, scratch, parts);
}

Status JoiningBackend::activated_linear(const Activated& of, const Matrix& weight, const Vector* bias, Act out) {
  return joins(weight) ? Backend::activated_linear(of, weight, bias, out) : inner().activated_linear(of, weight, bias, out);
}

Status JoiningBackend::activated_linear_residual(const Activated& of, const Matrix& weight, const Vector* bias, Act scratch, Act x) {
  return joins(weight) ? Backend::activated_linear_residual(of, weight, bias, scratch, x)
                       : inner().activated_linear_residual(of, weight, bias, scratch, x);
}

}  // namespace tessera::backend
