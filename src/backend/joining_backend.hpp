// A base class for backends that add a term to the products of another backend (the inner backend), before bias, residual and norm: an
// adapter's change, or the outputs of other ranks. (ObservingBackend adds nothing: it only looks at the inputs.) A derived class says in
// joins() which matrices get a term, and adds it in join(). If a matrix gets no term, the inner backend computes its products unchanged,
// fused operations included. If it gets one, its product is computed outside of the fused operation, with the same bits.
#pragma once

#include "backend/forwarding_backend.hpp"

namespace tessera::backend {

class JoiningBackend : public ForwardingBackend, private ExpertProducts {
 public:
  using ForwardingBackend::ForwardingBackend;

  [[nodiscard]] std::string_view name() const noexcept override { return own().name(); }
  [[nodiscard]] bool invariant() const noexcept override { return own().invariant(); }
  [[nodiscard]] bool computes(Capability capability) const noexcept override { return own().computes(capability); }
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
  // Returns whether a term joins the products of `weight`. The answer must not change during a step.
  [[nodiscard]] virtual bool joins(const Matrix& weight) const noexcept = 0;
  // Adds a term to `out`, which is W in, for all rows of the step. Must not change `in`.
  virtual Status join(const Matrix& weight, Act in, Act out) = 0;
  // Adds terms to several products of the same input. Default: calls join() for each part whose weight joins().
  virtual Status join_group(std::span<const LinearPart> parts, Act in);
  // Adds a term to the product of one row and one of its experts. Called if joins(weight).
  virtual void join_expert(const Matrix& weight, std::uint32_t expert, std::uint32_t row, std::span<const float> in,
                           std::span<float> product) noexcept = 0;

 private:
  [[nodiscard]] bool joins_any(std::span<const LinearPart> parts) const noexcept;
  std::vector<LinearPart> products_;  // the parts of a group without their biases
  void join(const Matrix& weight, std::uint32_t expert, std::uint32_t row, std::span<const float> in,
            std::span<float> product) noexcept final;
};

}  // namespace tessera::backend
