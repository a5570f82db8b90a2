// The place behind every product: a backend around another one that has something join products, before bias, residual and
// norm. Adapters, other ranks' outputs and observers stand there. A product that nothing joins is computed as without this
// backend, fused operations included; one that something joins is taken out of its fused operation, with the same bits.
#pragma once

#include "backend/forwarding_backend.hpp"

namespace tessera::backend {

class JoiningBackend : public ForwardingBackend, private ExpertProducts {
 public:
  using ForwardingBackend::ForwardingBackend;

  [[nodiscard]] std::string_view name() const noexcept override { return own().name(); }
  [[nodiscard]] bool invariant() const noexcept override { return own().invariant(); }
  [[nodiscard]] bool computes(Part part) const noexcept override { return own().computes(part); }
  [[nodiscard]] bool activates(ActivationKind kind) const noexcept override { return own().activates(kind); }

  Status linear(const Matrix& weight, Act in, Act out) final;
  Status head_linear(const Matrix& weight, Act in, Act out) final;
  Status experts(const Experts& of, Act in, Act router, Act out) final;

  Status linear_bias(const Matrix& weight, const Vector* bias, Act in, Act out) final;
  Status linear_residual(const Matrix& weight, const Vector* bias, Act in, Act scratch, Act x) final;
  Status linear_group(std::span<const LinearPart> parts, Act in) final;
  Status norm_linear_group(const Norm& norm, Act in, Act scratch, std::span<const LinearPart> parts) final;
  Status activated_linear(const Activated& of, const Matrix& weight, const Vector* bias, Act out) final;
  Status activated_linear_residual(const Activated& of, const Matrix& weight, const Vector* bias, Act scratch, Act x) final;
  Status rope_append(const HeadShape& shape, Act q, Act k, Act v) final { return inner().rope_append(shape, q, k, v); }

 protected:
  // Whether something joins the products of `weight`: the same in a whole step.
  [[nodiscard]] virtual bool joins(const Matrix& weight) const noexcept = 0;
  // Joins out = W in, of all rows of the step. `in` still has its value, and keeps it.
  virtual Status join(const Matrix& weight, Act in, Act out) = 0;
  // Joins a product of one row and one of its experts; joins(weight).
  virtual void join_expert(const Matrix& weight, std::uint32_t expert, std::uint32_t row, std::span<const float> in,
                           std::span<float> product) noexcept = 0;

 private:
  [[nodiscard]] bool joins_any(std::span<const LinearPart> parts) const noexcept;
  void join(const Matrix& weight, std::uint32_t expert, std::uint32_t row, std::span<const float> in,
            std::span<float> product) noexcept final;
};

}  // namespace tessera::backend
