// A backend that watches activations: that no operation reads one without a value, that none changes what its signature does
// not name, and that rows are selected, attention computed and tokens drawn by lists that begin() was given. What it finds is in `complaints`; the other backend computes.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "engine/forwarding_backend.hpp"

namespace tessera::test {

class StrictBackend final : public ForwardingBackend {
 public:
  StrictBackend(std::unique_ptr<Backend> watched, std::set<std::string>& found)
      : ForwardingBackend(std::move(watched)), complaints(found) {}

  std::set<std::string>& complaints;

  [[nodiscard]] std::string_view name() const noexcept override { return "strict"; }

  Status begin(const backend::StepTables& tables) override {
    has_value_ = {};
    rows_ = rows_here_ = tables.rows.size();
    wanted_ = tables.wanted.size();
    selected_ = tables.selected;
    attentions_ = tables.attentions;
    draws_ = tables.draws.size();
    const bool ascends = std::ranges::adjacent_find(tables.wanted, std::greater_equal<>()) == tables.wanted.end();
    if (!ascends || (wanted_ > 0 && tables.wanted.back() >= rows_)) {
      complaints.insert("begin: wanted rows are not rows of the step, ascending");
    }
    return inner().begin(tables);
  }
  Status embed(const Matrix& table, float scale, Act x) override {
    return run("embed", {}, {x}, {}, [&] { return inner().embed(table, scale, x); });
  }
  Status add_positions(const Matrix& table, Act scratch, Act x) override {
    return run("add_positions", {x}, {x}, {scratch}, [&] { return inner().add_positions(table, scratch, x); });
  }
  Status scale(float factor, Act x) override {
    return run("scale", {x}, {x}, {}, [&] { return inner().scale(factor, x); });
  }
  Status softcap(float cap, Act x) override {
    return run("softcap", {x}, {x}, {}, [&] { return inner().softcap(cap, x); });
  }
  Status scale_by_position(double rate, std::uint64_t length, Act x) override {
    return run("scale_by_position", {x}, {x}, {}, [&] { return inner().scale_by_position(rate, length, x); });
  }
  Status experts(const backend::Experts& of, Act in, Act router, Act out) override {
    return run("experts", {in, router}, {out}, {router}, [&] { return inner().experts(of, in, router, out); });
  }
  Status gather(const Matrix& table, float scale, Act out) override {
    return run("gather", {}, {out}, {}, [&] { return inner().gather(table, scale, out); });
  }
  Status take_columns(Act in, std::uint64_t first, std::uint64_t count, Act out) override {
    return run("take_columns", {in}, {out}, {}, [&] { return inner().take_columns(in, first, count, out); });
  }
  Status add_segments(const Matrix& table, Act scratch, Act x) override {
    return run("add_segments", {x}, {x}, {scratch}, [&] { return inner().add_segments(table, scratch, x); });
  }
  Status weigh(Act gate, Act x) override {
    return run("weigh", {gate, x}, {x}, {}, [&] { return inner().weigh(gate, x); });
  }
  Status head_linear(const Matrix& weight, Act in, Act out) override {
    return run("head_linear", {in}, {out}, {}, [&] { return inner().head_linear(weight, in, out); });
  }
  Status latent_append(const backend::LatentShape& shape, Act turned_q, Act latent_q, Act turned_k, Act latent, Act q) override {
    return run("latent_append", {turned_q, latent_q, turned_k, latent}, {turned_q, turned_k, latent, q}, {},
               [&] { return inner().latent_append(shape, turned_q, latent_q, turned_k, latent, q); });
  }
  Status shift_rows(std::uint32_t layer, Act x) override {
    return run("shift_rows", {x}, {x}, {}, [&] { return inner().shift_rows(layer, x); });
  }
  Status convolve(const backend::Convolution& how, Act x) override {
    return run("convolve", {x}, {x}, {}, [&] { return inner().convolve(how, x); });
  }
  Status delta_rule(const backend::Recurrence& how, Act qkv, Act steps, Act betas, Act out) override {
    return run("delta_rule", {qkv, steps, betas}, {out}, {qkv, steps, betas},
               [&] { return inner().delta_rule(how, qkv, steps, betas, out); });
  }
  Status scan(const backend::Recurrence& how, Act xbc, Act steps, Act decays, Act out) override {
    return run("scan", {xbc, steps}, {out}, {steps, decays}, [&] { return inner().scan(how, xbc, steps, decays, out); });
  }
  Status group_norm(const Vector& weight, float eps, std::uint32_t n, Act x) override {
    return run("group_norm", {x}, {x}, {}, [&] { return inner().group_norm(weight, eps, n, x); });
  }
  Status multiply(Act y, Act x) override {
    return run("multiply", {x, y}, {x}, {}, [&] { return inner().multiply(y, x); });
  }
  Status norm(const backend::Norm& norm, Act in, Act out) override {
    return run("norm", {in}, {out}, {}, [&] { return inner().norm(norm, in, out); });
  }
  Status head_norm(const Vector& weight, float eps, std::uint32_t n, Act x) override {
    return run("head_norm", {x}, {x}, {}, [&] { return inner().head_norm(weight, eps, n, x); });
  }
  Status linear(const Matrix& weight, Act in, Act out) override {
    return run("linear", {in}, {out}, {}, [&] { return inner().linear(weight, in, out); });
  }
  Status add_bias(const Vector& bias, Act x) override {
    return run("add_bias", {x}, {x}, {}, [&] { return inner().add_bias(bias, x); });
  }
  Status add(Act y, Act x) override {
    return run("add", {x, y}, {x}, {}, [&] { return inner().add(y, x); });
  }
  Status rope(std::uint32_t table, std::uint32_t n, Act x) override {
    return run("rope", {x}, {x}, {}, [&] { return inner().rope(table, n, x); });
  }
  Status append_kv(std::uint32_t layer, Act k, Act v) override {
    return run("append_kv", {k, v}, {}, {}, [&] { return inner().append_kv(layer, k, v); });
  }
  Status attention(const backend::AttentionShape& shape, Act q, Act out) override {
    backend::AttentionShape told = shape;
    told.counts_votes = false;
    if (std::ranges::find(attentions_, told) == attentions_.end()) complaints.insert("attention of a shape that begin() did not name");
    return run("attention", {q}, {out}, {}, [&] { return inner().attention(shape, q, out); });
  }
  Status activate(ActivationKind kind, Act x) override {
    return run("activate", {x}, {x}, {}, [&] { return inner().activate(kind, x); });
  }
  Status activate_gated(ActivationKind kind, Act gate, Act up) override {
    return run("activate_gated", {gate, up}, {up}, {}, [&] { return inner().activate_gated(kind, gate, up); });
  }
  Status select_rows(std::size_t first, std::size_t count, Act in, Act out) override {
    if (first > selected_.size() || count > selected_.size() - first) {
      complaints.insert("select_rows selects rows that begin() did not name");
      return detail::make_error(ErrorCode::internal, "rows that begin() did not name");
    }
    for (const std::uint32_t row : selected_.subspan(first, count)) {
      if (row >= rows_here_) complaints.insert("select_rows selects a row that the step does not have");
    }
    const Status status = run("select_rows", {in}, {out}, {}, [&] { return inner().select_rows(first, count, in, out); });
    rows_ = count;
    return status;
  }
  Status keep_rows(std::span<const Act> acts) override {
    std::array<bool, backend::kActs> kept{};
    for (const Act act : acts) {
      if (!has_value(act)) complain("keep_rows", "keeps", act);
      kept[static_cast<std::size_t>(act)] = true;
    }
    has_value_ = kept;
    rows_ = rows_here_ = wanted_;
    return inner().keep_rows(acts);
  }
  Status sample(Act logits, std::size_t first, std::span<Token> out) override {
    if (!has_value(logits)) complain("sample", "reads, without a value,", logits);
    if (first > draws_ || out.size() > draws_ - first) {
      complaints.insert("sample draws what begin() did not name");
      return detail::make_error(ErrorCode::internal, "draws that begin() did not name");
    }
    return inner().sample(logits, first, out);
  }
  Status read(Act x, std::uint32_t row, std::span<float> out) override {
    return run("read", {x}, {}, {}, [&] { return inner().read(x, row, out); });
  }

  Status linear_bias(const Matrix& weight, const Vector* bias, Act in, Act out) override {
    return run("linear_bias", {in}, {out}, {}, [&] { return inner().linear_bias(weight, bias, in, out); });
  }
  Status linear_residual(const Matrix& weight, const Vector* bias, Act in, Act scratch, Act x) override {
    return run("linear_residual", {in, x}, {x}, {scratch},
               [&] { return inner().linear_residual(weight, bias, in, scratch, x); });
  }
  Status linear_group(std::span<const backend::LinearPart> parts, Act in) override {
    return run("linear_group", {in}, outs_of(parts), {}, [&] { return inner().linear_group(parts, in); });
  }
  Status norm_linear_group(const backend::Norm& norm, Act in, Act scratch,
                           std::span<const backend::LinearPart> parts) override {
    return run("norm_linear_group", {in}, outs_of(parts), {scratch},
               [&] { return inner().norm_linear_group(norm, in, scratch, parts); });
  }
  Status activated_linear(const backend::Activated& of, const Matrix& weight, const Vector* bias, Act out) override {
    return run("activated_linear", inputs_of(of), {out}, inputs_of(of),
               [&] { return inner().activated_linear(of, weight, bias, out); });
  }
  Status activated_linear_residual(const backend::Activated& of, const Matrix& weight, const Vector* bias, Act scratch,
                                   Act x) override {
    Acts reads = inputs_of(of), scratches = reads;
    reads.push_back(x);
    scratches.push_back(scratch);
    return run("activated_linear_residual", reads, {x}, scratches,
               [&] { return inner().activated_linear_residual(of, weight, bias, scratch, x); });
  }
  Status rope_append(const backend::HeadShape& shape, Act q, Act k, Act v) override {
    if (shape.queries_alone) return run("rope_append", {q}, {q}, {}, [&] { return inner().rope_append(shape, q, k, v); });
    const Acts outs = shape.v_norm != nullptr ? Acts{q, k, v} : Acts{q, k};
    return run("rope_append", {q, k, v}, outs, {}, [&] { return inner().rope_append(shape, q, k, v); });
  }

 private:
  using Acts = std::vector<Act>;
  static constexpr std::size_t kMostColumns = 1024;  // looked at

  static Acts inputs_of(const backend::Activated& of) {
    return of.gate == Act::count ? Acts{of.up} : Acts{of.gate, of.up};
  }
  static Acts outs_of(std::span<const backend::LinearPart> parts) {
    Acts outs;
    for (const backend::LinearPart& part : parts) outs.push_back(part.out);
    return outs;
  }
  static bool among(const Acts& acts, Act act) { return std::find(acts.begin(), acts.end(), act) != acts.end(); }

  [[nodiscard]] bool has_value(Act act) const { return has_value_[static_cast<std::size_t>(act)]; }
  void complain(std::string_view operation, std::string_view what, Act act) {
    complaints.insert(std::string(operation) + " " + std::string(what) + " activation " + std::to_string(static_cast<int>(act)));
  }

  std::vector<float> values_of(Act act) {
    std::vector<float> values(rows_ * kMostColumns);
    for (std::uint32_t row = 0; row < rows_; ++row) {
      if (!inner().read(act, row, std::span(values).subspan(row * kMostColumns, kMostColumns))) return {};
    }
    return values;
  }

  template <class Operation>
  Status run(std::string_view operation, const Acts& reads, const Acts& writes, const Acts& scratches, Operation compute) {
    for (const Act act : reads) {
      if (!has_value(act)) complain(operation, "reads, without a value,", act);
    }
    std::array<std::vector<float>, backend::kActs> before;
    for (std::size_t i = 0; i < backend::kActs; ++i) {
      const auto act = static_cast<Act>(i);
      if (has_value(act) && act != Act::logits && !among(writes, act) && !among(scratches, act)) before[i] = values_of(act);
    }
    TESSERA_TRY_STATUS(compute());
    for (std::size_t i = 0; i < backend::kActs; ++i) {
      if (before[i].empty()) continue;
      const auto after = values_of(static_cast<Act>(i));
      if (before[i].size() != after.size() || std::memcmp(before[i].data(), after.data(), after.size() * sizeof(float)) != 0) {
        complain(operation, "changes", static_cast<Act>(i));
      }
    }
    for (const Act act : scratches) has_value_[static_cast<std::size_t>(act)] = false;
    for (const Act act : writes) has_value_[static_cast<std::size_t>(act)] = true;
    return {};
  }

  std::array<bool, backend::kActs> has_value_{};
  std::size_t rows_ = 0;       // that operations work on
  std::size_t rows_here_ = 0;  // that x has
  std::size_t wanted_ = 0;
  std::span<const std::uint32_t> selected_;
  std::span<const backend::AttentionShape> attentions_;
  std::size_t draws_ = 0;
};

}  // namespace tessera::test
