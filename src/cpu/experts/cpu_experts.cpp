// The CPU backend's mixtures of experts (operation experts()). Each row goes to its experts. An expert multiplies all its rows at once,
// so that its weights are read once a step. A row's result does not depend on the other rows.
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/error.hpp"
#include "core/math_inline.hpp"
#include "cpu/cpu_backend.hpp"
#include "cpu/experts/routing.hpp"
#include "cpu/products/rounded_rows.hpp"

namespace tessera::cpu {

// Prepares the input of each slot, in the form in which the slot's expert multiplies it by `weight`. (A slot is a row together with one
// of the experts that were chosen for it.) fill(slot, to) writes the row's values to `to`.
template <class Fill>
void CpuBackend::prepare_slots(const Matrix& weight, std::uint32_t n_slots, Fill fill) noexcept {
  ExpertSlots& s = experts_;
  const std::size_t columns = weight.shape.inputs;
  std::uint64_t at = 0;
  s.kinds.resize(s.n_experts);
  for (std::uint32_t expert = 0; expert < s.n_experts; ++expert) {
    const std::size_t rows = s.count(expert);
    s.at[expert] = at;
    if (rows == 0) continue;
    const Family family = family_of(weight, rows);
    const InputKind kind{input_form(family, weight.form),
                         RowCut(kernels_.product(family, weight.form).of(rows), rows).group, rounding_of(weight)};
    s.kinds[expert] = kind;
    at += (rows + kind.group - 1) / kind.group * kind.group * row_layout(kind.form, columns).bytes;
  }
  for_each(n_slots, std::max<std::size_t>(1, kValuesWorthSharing / columns), [&](std::size_t slot, std::byte* scratch) {
    const std::uint32_t expert = s.expert_of[slot];
    const InputKind& kind = s.kinds[expert];
    const std::size_t row = slot - s.first[expert], stride = row_layout(kind.form, columns).bytes;
    std::byte* to = s.rows + s.at[expert];
    if (kind.form == InputForm::f32 && kind.rounding == nullptr) {
      fill(slot, reinterpret_cast<float*>(to + row * stride));
      return;
    }
    auto* values = reinterpret_cast<float*>(scratch);
    fill(slot, values);
    if (kind.rounding != nullptr) {
      std::byte* own = kind.form == InputForm::f32 ? to + row * stride : to + group_at(row, kind.group, stride);
      prepare_rounded(*kind.rounding, expert, kernels_.preparation(kind.form), {values, columns}, values, kind.form, own, kind.group);
      return;
    }
    kernels_.preparation(kind.form)(values, columns, to + group_at(row, kind.group, stride), kind.group);
  });
}

// Computes the products of each expert's prepared rows with the expert's matrices in `parts`.
void CpuBackend::multiply_slots(std::initializer_list<SlotsPart> parts, Biases biases) noexcept {
  ExpertSlots& s = experts_;
  std::size_t all_panels = 0;  // number of panels of all products together; determines the size of an item (Cut)
  for (const SlotsPart& part : parts) {
    for (std::uint32_t expert = 0; expert < s.n_experts; ++expert) {
      if (s.count(expert) != 0) all_panels += panels_of(part.weight->shape);
    }
  }
  s.products.clear();
  std::size_t items = 0;
  for (std::uint32_t expert = 0; expert < s.n_experts; ++expert) {
    const std::size_t rows = s.count(expert);
    if (rows == 0) continue;
    for (const SlotsPart& part : parts) {
      const Matrix& weight = *part.weight;
      const std::size_t panels = panels_of(weight.shape);
      const Linear& kernel = kernels_.product(family_of(weight, rows), weight.form).of(rows);
      const Cut cut(kernel, rows, panels, all_panels, tasks_.slots());
      s.products.push_back({.kernel = &kernel,
                            .weight = &weight,
                            .packed = weight.data + expert * panels * panel_bytes(weight.form, weight.shape.inputs),
                            .x = s.rows + s.at[expert],
                            .x_stride = row_layout(s.kinds[expert].form, weight.shape.inputs).bytes,
                            .group = s.kinds[expert].group,
                            .rows = rows,
                            .factor = weight.factor(expert),
                            .out = part.out + s.first[expert] * weight.shape.outputs,
                            .bias = part.bias != nullptr && biases == Biases::added ? part.bias->data + expert * weight.shape.outputs : nullptr,
                            .cut = cut,
                            .first = items,
                            .ahead = kernels_.ahead});
      items += cut.items();
    }
  }
  run(s.products, items);
}

// Lets `behind` (an adapter, for example) change each slot's product: calls behind.join() with the product and its input. Then adds the
// bias. input_of(slot) returns the input.
template <class InputOf>
void CpuBackend::join_slots(backend::ExpertProducts& behind, std::initializer_list<SlotsPart> parts, InputOf input_of) noexcept {
  const ExpertSlots& s = experts_;
  for (const SlotsPart& part : parts) {
    const std::size_t outputs = part.weight->shape.outputs;
    for (std::size_t slot = 0; slot < s.n_slots; ++slot) {
      const std::span product(part.out + slot * outputs, outputs);
      behind.join(*part.weight, s.expert_of[slot], s.row_of[slot], input_of(slot), product);
      if (part.bias == nullptr) continue;
      const float* bias = part.bias->data + s.expert_of[slot] * outputs;
      for (std::size_t i = 0; i < outputs; ++i) product[i] += bias[i];
    }
  }
}

void CpuBackend::add_up_slots(std::size_t width, std::size_t n_used, Act out) noexcept {
  const ExpertSlots& s = experts_;
  Activation& sum = written(out);
  sum.columns = width;
  for_each_row(n_used * width, [&](std::size_t row, std::byte*) {
    float* to = sum.data + row * width;
    std::fill_n(to, width, 0.0f);
    for (std::size_t i = row * n_used; i < (row + 1) * n_used; ++i) {
      const float* given = s.gate + s.slot_of[i] * width;
      for (std::size_t k = 0; k < width; ++k) to[k] += s.weights[i] * given[k];
    }
  });
}

Status CpuBackend::experts(const backend::Experts& of, Act in, Act router, Act out) {
  if (n_rows_ == 0) return {};
  ExpertSlots& s = experts_;
  const backend::Routing& how = of.routing;
  const Activation& from = act(in);
  Activation& logits = written(router);
  const auto n_experts = static_cast<std::uint32_t>(logits.columns);
  const std::size_t n_used = how.n_used, dim = of.up->shape.outputs, width = of.down->shape.outputs;
  const auto values_of = [](const Vector* v) { return v != nullptr ? std::span(std::as_const(v->data), v->n) : std::span<const float>(); };
  const std::span<const float> bias = values_of(how.bias), scales = values_of(how.scales);
  for_each_row(64 * n_experts, [&](std::size_t row, std::byte*) {
    route(how, bias, scales, {logits.data + row * n_experts, n_experts}, {s.chosen + row * n_used, n_used},
          {s.weights + row * n_used, n_used});
  });
  s.deal(n_rows_, n_experts, how.n_used);

  const auto row_of = [&](std::size_t slot) { return std::span<const float>(from.data + s.row_of[slot] * from.columns, from.columns); };
  const auto own_row = [&](std::size_t slot, float* to) { std::ranges::copy(row_of(slot), to); };
  const auto multiply = [&](std::initializer_list<SlotsPart> parts, auto&& input_of) {
    multiply_slots(parts, of.behind == nullptr ? Biases::added : Biases::left_out);
    if (of.behind != nullptr) join_slots(*of.behind, parts, input_of);
  };
  const bool together = of.gate != nullptr && of.gate->form == of.up->form && of.gate->rounding == of.up->rounding;
  if (of.gate != nullptr && !together) {
    prepare_slots(*of.gate, s.n_slots, own_row);
    multiply({{of.gate, of.gate_bias, s.gate}}, row_of);
  }
  prepare_slots(*of.up, s.n_slots, own_row);
  if (together) {
    multiply({{of.gate, of.gate_bias, s.gate}, {of.up, of.up_bias, s.up}}, row_of);
  } else {
    multiply({{of.up, of.up_bias, s.up}}, row_of);
  }
  const auto activate = [&, kind = static_cast<std::size_t>(of.activation)](std::size_t slot, float* to) {
    const float* up = s.up + slot * dim;
    if (of.gate == nullptr) return kernels_.elementwise.activate[kind](up, dim, to);
    kernels_.elementwise.activate_gated[kind](s.gate + slot * dim, up, dim, to);
  };
  if (of.exchange != nullptr) {  // this rank has only some columns of each row: gathers whole rows, then multiplies them
    for_each(s.n_slots, std::max<std::size_t>(1, kValuesWorthSharing / dim), [&](std::size_t slot, std::byte*) { activate(slot, s.up + slot * dim); });
    TESSERA_TRY_STATUS(of.exchange->gather_activated(s.up, s.n_slots));
    const std::size_t whole = of.down->shape.inputs;
    prepare_slots(*of.down, s.n_slots, [&](std::size_t slot, float* to) { std::copy_n(s.up + slot * whole, whole, to); });
    multiply({{of.down, of.down_bias, s.gate}}, [&](std::size_t slot) { return std::span<const float>(s.up + slot * whole, whole); });
    TESSERA_TRY_STATUS(of.exchange->gather_results(s.gate, s.n_slots));
    add_up_slots(of.exchange->result_columns(), n_used, out);
    return {};
  }
  prepare_slots(*of.down, s.n_slots, activate);
  std::vector<float> activated(of.behind != nullptr ? s.n_slots * dim : 0);
  for (std::size_t slot = 0; slot < activated.size() / dim; ++slot) activate(slot, activated.data() + slot * dim);
  multiply({{of.down, of.down_bias, s.gate}}, [&](std::size_t slot) { return std::span<const float>(activated).subspan(slot * dim, dim); });

  add_up_slots(width, n_used, out);
  return {};
}

Status CpuBackend::weigh(Act gate, Act x) {
  const Activation& gates = act(gate);
  Activation& at = written(x);
  for_each_row(at.columns, [&](std::size_t row, std::byte*) {
    const float weight = 1.0f / (1.0f + math::inlined::exp(-gates.data[row * gates.columns]));
    for (float& value : std::span(at.data + row * at.columns, at.columns)) value *= weight;
  });
  return {};
}

}  // namespace tessera::cpu
