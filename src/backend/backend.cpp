// Backend's default implementations: fused operations call the plain ones; operations that a backend may lack return an error.
#include "backend/backend.hpp"

#include "core/error.hpp"

namespace tessera::backend {

Status Backend::linear_bias(const Matrix& weight, const Vector* bias, Act in, Act out) {
  TESSERA_TRY_STATUS(linear(weight, in, out));
  return bias != nullptr ? add_bias(*bias, out) : Status();
}

Status Backend::linear_residual(const Matrix& weight, const Vector* bias, Act in, Act scratch, Act x) {
  TESSERA_TRY_STATUS(linear_bias(weight, bias, in, scratch));
  return add(scratch, x);
}

Status Backend::linear_group(std::span<const LinearPart> parts, Act in) {
  for (const LinearPart& part : parts) TESSERA_TRY_STATUS(linear_bias(*part.weight, part.bias, in, part.out));
  return {};
}

Status Backend::norm_linear_group(const Norm& norm, Act in, Act scratch, std::span<const LinearPart> parts) {
  TESSERA_TRY_STATUS(this->norm(norm, in, scratch));
  return linear_group(parts, scratch);
}

Status Backend::activated_linear(const Activated& of, const Matrix& weight, const Vector* bias, Act out) {
  TESSERA_TRY_STATUS(of.gate == Act::count ? activate(of.kind, of.up) : activate_gated(of.kind, of.gate, of.up));
  return linear_bias(weight, bias, of.up, out);
}

Status Backend::activated_linear_residual(const Activated& of, const Matrix& weight, const Vector* bias, Act scratch,
                                          Act x) {
  TESSERA_TRY_STATUS(of.gate == Act::count ? activate(of.kind, of.up) : activate_gated(of.kind, of.gate, of.up));
  return linear_residual(weight, bias, of.up, scratch, x);
}

Status Backend::rope_append(const HeadShape& shape, Act q, Act k, Act v) {
  const auto norm_heads = [&](const Vector* weight, std::uint32_t n_heads, Act x) -> Status {
    if (weight == nullptr) return {};
    if (shape.norms_together) return norm({.kind = NormKind::rms, .weight = weight, .eps = shape.eps}, x, x);
    return head_norm(*weight, shape.eps, n_heads, x);
  };
  const auto norm_both = [&]() -> Status {
    TESSERA_TRY_STATUS(norm_heads(shape.q_norm, shape.n_heads, q));
    return shape.queries_alone ? Status() : norm_heads(shape.k_norm, shape.n_kv_heads, k);
  };
  if (!shape.norms_behind_rope) TESSERA_TRY_STATUS(norm_both());
  if (shape.rope != kNoRope) {
    TESSERA_TRY_STATUS(rope(shape.rope, shape.n_heads, q));
    if (!shape.queries_alone) TESSERA_TRY_STATUS(rope(shape.rope, shape.n_kv_heads, k));
  }
  if (shape.norms_behind_rope) TESSERA_TRY_STATUS(norm_both());
  if (shape.queries_alone) return {};
  if (shape.v_norm != nullptr) TESSERA_TRY_STATUS(head_norm(*shape.v_norm, shape.eps, shape.n_kv_heads, v));
  return append_kv(shape.layer, k, v);
}

Result<HostRows> Backend::host_rows(Act, std::size_t) {
  return detail::make_error(ErrorCode::unsupported, "backend {} cannot be divided among ranks", name());
}

Status Backend::set_tokens(std::span<const Token>) {
  return detail::make_error(ErrorCode::unsupported, "backend {} cannot be divided among ranks", name());
}

Status Backend::share(std::uint32_t, Act) { return {}; }

Status Backend::softcap(float, Act) {
  return detail::make_error(ErrorCode::unsupported, "backend {} does not compute softcaps", name());
}

Status Backend::scale_products(const Matrix&, std::span<const float>) {
  return detail::make_error(ErrorCode::unsupported, "backend {} does not scale products", name());
}

Status Backend::round_inputs(const Matrix&, const InputRounding&) {
  return detail::make_error(ErrorCode::unsupported, "backend {} does not round inputs as a model says; the cpu backend does", name());
}

Status Backend::scale_by_position(double, std::uint64_t, Act) {
  return detail::make_error(ErrorCode::unsupported, "backend {} does not scale by position", name());
}

Status Backend::experts(const Experts&, Act, Act, Act) {
  return detail::make_error(ErrorCode::unsupported, "backend {} does not compute experts", name());
}

Status Backend::gather(const Matrix&, float, Act) {
  return detail::make_error(ErrorCode::unsupported, "backend {} does not look up vectors of tokens", name());
}

Status Backend::take_columns(Act, std::uint64_t, std::uint64_t, Act) {
  return detail::make_error(ErrorCode::unsupported, "backend {} does not take columns", name());
}

Status Backend::add_segments(const Matrix&, Act, Act) {
  return detail::make_error(ErrorCode::unsupported, "backend {} does not add embeddings of segments", name());
}

Status Backend::weigh(Act, Act) {
  return detail::make_error(ErrorCode::unsupported, "backend {} does not weigh rows", name());
}

Status Backend::head_linear(const Matrix&, Act, Act) {
  return detail::make_error(ErrorCode::unsupported, "backend {} does not compute latent attention", name());
}

Status Backend::latent_append(const LatentShape&, Act, Act, Act, Act, Act) {
  return detail::make_error(ErrorCode::unsupported, "backend {} does not compute latent attention", name());
}

namespace {

Error no_recurrence(const Backend& backend) {
  return detail::make_error(ErrorCode::unsupported, "backend {} does not compute recurrent layers", backend.name());
}

}  // namespace

Status Backend::shift_rows(std::uint32_t, Act) { return no_recurrence(*this); }
Status Backend::convolve(const Convolution&, Act) { return no_recurrence(*this); }
Status Backend::delta_rule(const Recurrence&, Act, Act, Act, Act) { return no_recurrence(*this); }
Status Backend::scan(const Recurrence&, Act, Act, Act, Act) { return no_recurrence(*this); }
Status Backend::group_norm(const Vector&, float, std::uint32_t, Act) { return no_recurrence(*this); }
Status Backend::multiply(Act, Act) { return no_recurrence(*this); }

namespace {

Error no_adapters(const Backend& backend) {
  return detail::make_error(ErrorCode::unsupported, "backend {} does not compute adapters", backend.name());
}

}  // namespace

Result<std::shared_ptr<const LowRank>> Backend::hold_low_rank(const LowRankShape&, const LowRankValues&) const { return no_adapters(*this); }
Status Backend::add_low_rank(std::span<const LowRankTerm>, Act) { return no_adapters(*this); }
Status Backend::add_low_rank_of_tokens(std::span<const LowRankTerm>, float) { return no_adapters(*this); }
void Backend::change_product(const LowRank&, float, std::uint32_t, std::span<const float>, std::span<float>) noexcept {}

Status Backend::sample(Act, std::size_t, std::span<Token>) {
  return detail::make_error(ErrorCode::unsupported, "backend {} does not draw tokens", name());
}

}  // namespace tessera::backend
