// The backend of one rank, around a backend that has the rank's part of the weights. Each rank has all columns of the activations.
// Exception: if a rank computes only some heads (Act::q, k, v, attn and their gate), or only some columns of an FFN (gate, up), it has only
// the columns of these. A product that reads such divided activations first gathers the missing columns from the other ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "backend/forwarding_backend.hpp"
#include "ranks/communicator.hpp"
#include "ranks/division.hpp"

namespace tessera::detail {

// The division of a matrix of which each rank has some outputs.
struct DividedMatrix {
  Division inputs;   // the ranks' parts of the input, which are gathered before the product; empty: the input is whole
  Division outputs;  // the ranks' outputs, which are gathered after the product
};

class RankBackend final : public backend::ForwardingBackend {
 public:
  // The place of the other ranks. Connections to ranks elsewhere need buffers, which workspace_bytes() counts.
  enum class Ranks : std::uint8_t { in_this_process, elsewhere };

  RankBackend(std::unique_ptr<backend::Backend> inner, Communicator& ranks, Ranks where) noexcept
      : ForwardingBackend(std::move(inner)), ranks_(ranks), where_(where) {}

  // Tells how a matrix is divided whose outputs are gathered. Called after loading, for each such matrix.
  void divide(const Matrix& weight, DividedMatrix how) { divided_.emplace(&weight, std::move(how)); }
  // Tells how tables are divided by tokens. Called after loading.
  void divide_tokens(const Division& tokens) { tokens_ = tokens; }

  [[nodiscard]] std::string_view name() const noexcept override { return own().name(); }
  [[nodiscard]] bool invariant() const noexcept override { return own().invariant(); }
  [[nodiscard]] bool activates(ActivationKind kind) const noexcept override { return own().activates(kind); }
  [[nodiscard]] bool computes(backend::Capability capability) const noexcept override { return own().computes(capability); }
  [[nodiscard]] std::uint64_t workspace_bytes(const backend::WorkspaceShape& shape) const noexcept override;
  Status reserve_workspace(const backend::WorkspaceShape& shape) override;

  Status begin(const backend::StepTables& tables) override;
  Status embed(const Matrix& table, float scale, Act x) override;
  Status gather(const Matrix& table, float scale, Act out) override;
  Status share(std::uint32_t from, Act x) override;
  Status linear(const Matrix& weight, Act in, Act out) override;
  Status experts(const backend::Experts& of, Act in, Act router, Act out) override;

  // Fused operations. If the product needs no gather, the inner backend computes the fused operation.
  Status linear_bias(const Matrix& weight, const Vector* bias, Act in, Act out) override;
  Status linear_residual(const Matrix& weight, const Vector* bias, Act in, Act scratch, Act x) override;
  Status linear_group(std::span<const backend::LinearPart> parts, Act in) override;
  Status norm_linear_group(const backend::Norm& norm, Act in, Act scratch, std::span<const backend::LinearPart> parts) override;
  Status activated_linear(const backend::Activated& of, const Matrix& weight, const Vector* bias, Act out) override;
  Status activated_linear_residual(const backend::Activated& of, const Matrix& weight, const Vector* bias, Act scratch, Act x) override;
  Status rope_append(const backend::HeadShape& shape, Act q, Act k, Act v) override { return inner().rope_append(shape, q, k, v); }

 private:
  class Exchange;

  [[nodiscard]] const DividedMatrix* find(const Matrix& weight) const noexcept {
    const auto found = divided_.find(&weight);
    return found != divided_.end() ? &found->second : nullptr;
  }
  [[nodiscard]] bool any_divided(std::span<const backend::LinearPart> parts) const noexcept;
  // Gathers an activation's columns from all ranks, so that this rank has whole rows. `columns`: the columns that each rank has.
  Status make_whole(Act x, const Division& columns);
  Status make_whole(float* rows, std::size_t n, const Division& columns);
  // Looks up the rank's own tokens in `table`, by look_up(), which calls the inner backend.
  template <class LookUp>
  Status look_up(const Matrix& table, Act x, bool keep_embeddings, LookUp look_up);
  // Completes the rows of x after a lookup in a table whose rows (tokens) are divided among ranks: for each token that another rank has in
  // its part of the table, copies the row from that rank. `keep_embeddings`: true if rows may have an embedding instead of a token. Such
  // rows are left as they are, because they are the same at every rank.
  Status take_rows(Act x, bool keep_embeddings);

  Communicator& ranks_;
  Ranks where_;
  std::unordered_map<const Matrix*, DividedMatrix> divided_;
  Division tokens_;                      // empty: no table is divided
  std::span<const backend::RowTable> rows_;  // the step's rows
  std::vector<Token> whole_tokens_, own_tokens_;  // [rows]: the rows' tokens; the same tokens as row numbers of this rank's tables
  std::vector<std::uint32_t> owners_;    // [rows]: the rank that has the row's token
  std::vector<float> staging_;           // rows that are being exchanged
  std::vector<std::span<std::byte>> parts_;
};

}  // namespace tessera::detail
