// A backend that checks every operation: no operation reads an activation without a value, or changes one that its signature does not name;
// and every row, list, shape and draw that an operation names was announced to begin() (AnnouncedStep). The mistakes are in `complaints`;
// the other backend computes. tests/checks/strict.sh checks that no operation of Backend is missing here.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "engine/announced_step.hpp"
#include "engine/forwarding_backend.hpp"

namespace tessera::test {

class StrictBackend final : public ForwardingBackend {
 public:
  StrictBackend(std::unique_ptr<Backend> watched, std::set<std::string>& found)
      : ForwardingBackend(std::move(watched)), complaints(found), step_(found) {}

  std::set<std::string>& complaints;

  [[nodiscard]] std::string_view name() const noexcept override { return "strict"; }

  Status begin(const backend::StepTables& tables) override {
    has_value_ = {};
    step_.begin(tables);
    return inner().begin(tables);
  }
  Status end() override {
    step_.end();
    return inner().end();
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
    CheckedProducts products(*this, of.behind);
    backend::Experts with = of;
    if (of.behind != nullptr) with.behind = &products;
    in_experts_ = of.behind != nullptr;
    const Status status = run("experts", {in, router}, {out}, {router}, [&] { return inner().experts(with, in, router, out); });
    in_experts_ = false;
    if (products.has_strange_row) complaints.insert("experts: a product of a row that is not present");
    return status;
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
    if (!step_.check_rope("latent_append", shape.rope)) return unannounced();
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
    if (!step_.check_rope("rope", table)) return unannounced();
    return run("rope", {x}, {x}, {}, [&] { return inner().rope(table, n, x); });
  }
  Status append_kv(std::uint32_t layer, Act k, Act v) override {
    return run("append_kv", {k, v}, {}, {}, [&] { return inner().append_kv(layer, k, v); });
  }
  Status attention(const backend::AttentionShape& shape, Act q, Act out) override {
    step_.check_attention(shape);
    return run("attention", {q}, {out}, {}, [&] { return inner().attention(shape, q, out); });
  }
  Status activate(ActivationKind kind, Act x) override {
    return run("activate", {x}, {x}, {}, [&] { return inner().activate(kind, x); });
  }
  Status activate_gated(ActivationKind kind, Act gate, Act up) override {
    return run("activate_gated", {gate, up}, {up}, {}, [&] { return inner().activate_gated(kind, gate, up); });
  }
  Status select_rows(std::size_t selection, Act in, Act out) override {
    if (!step_.select(selection)) return unannounced();
    return run("select_rows", {in}, {out}, {}, [&] { return inner().select_rows(selection, in, out); });
  }
  Status keep_rows(std::span<const Act> acts) override {
    step_.check_operation("keep_rows");
    std::array<bool, backend::kActs> kept{};
    for (const Act act : acts) {
      if (!has_value(act)) complain("keep_rows", "keeps", act);
      kept[static_cast<std::size_t>(act)] = true;
    }
    if (!step_.keep()) return unannounced();
    has_value_ = kept;
    return inner().keep_rows(acts);
  }
  Status sample(Act logits, std::size_t first, std::span<Token> out) override {
    step_.check_operation("sample");
    if (!has_value(logits)) complain("sample", "reads, without a value,", logits);
    return step_.check_draws(first, out.size()) ? inner().sample(logits, first, out) : unannounced();
  }
  Result<backend::HostRows> host_rows(Act x, std::size_t columns) override {
    step_.check_operation("host_rows");
    if (!has_value(x)) complain("host_rows", "gives, without a value,", x);
    return inner().host_rows(x, columns);
  }
  Status set_tokens(std::span<const Token> tokens) override {
    step_.check_operation("set_tokens");
    return step_.check_tokens(tokens) ? inner().set_tokens(tokens) : unannounced();
  }
  Status share(std::uint32_t from, Act x) override {
    return run("share", {x}, {x}, {}, [&] { return inner().share(from, x); });
  }
  Status move_tokens(const KvView& kv, const backend::KvMove& move, std::span<const backend::RopeTable> ropes) override {
    step_.check_outside("move_tokens");
    return inner().move_tokens(kv, move, ropes);
  }
  Status add_low_rank(std::span<const backend::LowRankTerm> terms, Act in) override {
    Acts outs, reads{in};
    for (const backend::LowRankTerm& term : terms) {
      if (!step_.check_term("add_low_rank", term)) return unannounced();
      outs.push_back(term.out);
      reads.push_back(term.out);
    }
    if (among(outs, in)) complain("add_low_rank", "changes its input,", in);
    return run("add_low_rank", reads, outs, {}, [&] { return inner().add_low_rank(terms, in); });
  }
  Status add_low_rank_of_tokens(std::span<const backend::LowRankTerm> terms, float factor) override {
    Acts outs;
    for (const backend::LowRankTerm& term : terms) {
      if (!step_.check_term("add_low_rank_of_tokens", term)) return unannounced();
      outs.push_back(term.out);
    }
    return run("add_low_rank_of_tokens", outs, outs, {}, [&] { return inner().add_low_rank_of_tokens(terms, factor); });
  }
  // Called by several threads, in the middle of experts().
  void change_product(const backend::LowRank& change, float scale, std::uint32_t index, std::span<const float> in,
                      std::span<float> product) noexcept override {
    if (!in_experts_ || in.size() != change.shape().inputs || product.size() != change.shape().outputs) has_strange_product_ = true;
    inner().change_product(change, scale, index, in, product);
  }
  Status read(Act x, std::uint32_t row, std::span<float> out) override {
    step_.check_row("read", row);
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
    if (!step_.check_rope("rope_append", shape.rope)) return unannounced();
    if (shape.queries_alone) return run("rope_append", {q}, {q}, {}, [&] { return inner().rope_append(shape, q, k, v); });
    const Acts outs = shape.v_norm != nullptr ? Acts{q, k, v} : Acts{q, k};
    return run("rope_append", {q, k, v}, outs, {}, [&] { return inner().rope_append(shape, q, k, v); });
  }

 private:
  using Acts = std::vector<Act>;
  static constexpr std::size_t kMostColumns = 1024;  // looked at

  // Checks the rows of experts' products, on several threads, and lets the other hook change them.
  class CheckedProducts final : public backend::ExpertProducts {
   public:
    CheckedProducts(StrictBackend& strict, backend::ExpertProducts* behind) : rows_(strict.step_.rows()), behind_(behind) {}
    std::atomic<bool> has_strange_row = false;

    void join(const Matrix& weight, std::uint32_t expert, std::uint32_t row, std::span<const float> in, std::span<float> product) noexcept override {
      if (row >= rows_) has_strange_row = true;
      behind_->join(weight, expert, row, in, product);
    }

   private:
    std::size_t rows_;
    backend::ExpertProducts* behind_;
  };

  static Error unannounced() { return detail::make_error(ErrorCode::internal, "the operation names what begin() did not name"); }

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
    const std::size_t rows = step_.rows();
    std::vector<float> values(rows * kMostColumns);
    for (std::uint32_t row = 0; row < rows; ++row) {
      if (!inner().read(act, row, std::span(values).subspan(row * kMostColumns, kMostColumns))) return {};
    }
    return values;
  }

  template <class Operation>
  Status run(std::string_view operation, const Acts& reads, const Acts& writes, const Acts& scratches, Operation compute) {
    step_.check_operation(operation);
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
    if (has_strange_product_) complaints.insert("change_product outside of experts(), or of another shape");
    for (const Act act : scratches) has_value_[static_cast<std::size_t>(act)] = false;
    for (const Act act : writes) has_value_[static_cast<std::size_t>(act)] = true;
    return {};
  }

  std::array<bool, backend::kActs> has_value_{};
  AnnouncedStep step_;
  std::atomic<bool> in_experts_ = false, has_strange_product_ = false;
};

}  // namespace tessera::test
