// The CPU backend's matrix products: prepares the rows, and cuts rows and panels into tasks.
#include <algorithm>
#include <array>
#include <iterator>

#include "core/error.hpp"
#include "cpu/cpu_backend.hpp"
#include "cpu/products/product.hpp"
#include "cpu/products/rounded_rows.hpp"

namespace tessera::cpu {

namespace {

// The most products of a linear_group() that are computed as one piece of parallel work. If there are more, they follow as the next piece.
constexpr std::size_t kMostParts = 4;

// Returns whether the task that writes outputs also adds biases and residuals to them. true for few rows: the outputs are still in the
// caches. With many rows, outputs are written past the caches, so the task would wait for memory to read them again. Then a separate pass
// adds both.
constexpr bool added_by_tasks(std::size_t rows) noexcept { return rows < kRowsPastCaches; }

}  // namespace

const Linear& CpuBackend::kernel_of(const Matrix& weight) const noexcept {
  return kernels_.product(family_of(weight, n_rows_), weight.form).of(n_rows_);
}

InputKind CpuBackend::input_of(const Matrix& weight) const noexcept {
  return {input_form(family_of(weight, n_rows_), weight.form), RowCut(kernel_of(weight), n_rows_).group, rounding_of(weight)};
}

template <class Values>
CpuBackend::Input CpuBackend::prepare_rows(std::size_t columns, const InputKind& kind, Values values) noexcept {
  const PrepareFn fn = kernels_.preparation(kind.form);
  const std::size_t stride = row_layout(kind.form, columns).bytes;
  for_each_row(columns, [&](std::size_t row, std::byte* scratch) {
    std::byte* to = space_.prepared + (kind.form == InputForm::f32 ? row * stride : group_at(row, kind.group, stride));
    const float* own = values(row, scratch);
    if (kind.rounding == nullptr) return fn(own, columns, to, kind.group);
    prepare_rounded(*kind.rounding, 0, fn, {own, columns}, reinterpret_cast<float*>(scratch), kind.form, to, kind.group);
  });
  prepared_kind_ = {};
  return {space_.prepared, stride, kind.group};
}

CpuBackend::Input CpuBackend::prepare(Act in, const InputKind& kind) noexcept {
  const Activation& from = act(in);
  if (kind.form == InputForm::f32 && kind.rounding == nullptr) return {reinterpret_cast<const std::byte*>(from.data), from.columns * sizeof(float), 1};
  if (prepared_act_ == in && prepared_kind_ == kind) {
    return {space_.prepared, row_layout(kind.form, from.columns).bytes, kind.group};
  }
  const Input prepared = prepare_rows(from.columns, kind, [&](std::size_t row, std::byte*) {
    return from.data + row * from.columns;
  });
  prepared_act_ = in;
  prepared_kind_ = kind;
  return prepared;
}

void CpuBackend::run(std::span<const Product> products, std::size_t items) noexcept {
  for_each(items, 1, [&](std::size_t item, std::byte* scratch) {
    const auto after = std::upper_bound(products.begin(), products.end(), item,
                                        [](std::size_t i, const Product& product) { return i < product.first; });
    const Product& product = *std::prev(after);
    product.run(item - product.first, scratch, kernels_.elementwise);
  });
}

void CpuBackend::multiply(std::span<const backend::LinearPart> parts, const Input& in, float* residual) noexcept {
  std::array<Product, kMostParts> products{};
  std::size_t items = 0, most_panels = 0;
  for (const backend::LinearPart& part : parts) most_panels = std::max<std::size_t>(most_panels, panels_of(part.weight->shape));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Matrix& weight = *parts[i].weight;
    const Linear& kernel = kernel_of(weight);
    const Cut cut(kernel, n_rows_, panels_of(weight.shape), most_panels, tasks_.slots());
    Activation& to = written(parts[i].out);
    to.columns = weight.shape.outputs;
    const float* bias = parts[i].bias != nullptr && added_by_tasks(n_rows_) ? parts[i].bias->data : nullptr;
    products[i] = {.kernel = &kernel,
                   .weight = &weight,
                   .packed = weight.data,
                   .x = in.rows,
                   .x_stride = in.stride,
                   .group = in.group,
                   .rows = n_rows_,
                   .factor = weight.factor(),
                   .out = to.data,
                   .bias = bias,
                   .residual = residual,
                   .cut = cut,
                   .first = items,
                   .ahead = kernels_.ahead};
    items += cut.items();
  }
  run(std::span(products).first(parts.size()), items);
}

template <class Prepare>
Status CpuBackend::multiply_all(std::span<const backend::LinearPart> parts, Prepare prepare, Act residual) {
  if (n_rows_ == 0) return {};
  const bool by_tasks = added_by_tasks(n_rows_);
  float* x = residual != Act::count && by_tasks ? act(residual).data : nullptr;
  for (auto rest = parts; !rest.empty();) {
    const InputKind kind = input_of(*rest.front().weight);
    std::size_t n = 1;
    while (n < std::min(rest.size(), kMostParts) && input_of(*rest[n].weight) == kind) ++n;
    multiply(rest.first(n), prepare(kind), x);
    rest = rest.subspan(n);
  }
  if (x != nullptr) written(residual);
  if (by_tasks) return {};
  for (const backend::LinearPart& part : parts) {
    if (part.bias != nullptr) TESSERA_TRY_STATUS(add_bias(*part.bias, part.out));
  }
  return residual != Act::count ? add(parts.front().out, residual) : Status();
}

Status CpuBackend::linear(const Matrix& weight, Act in, Act out) { return linear_bias(weight, nullptr, in, out); }

Status CpuBackend::linear_bias(const Matrix& weight, const Vector* bias, Act in, Act out) {
  return linear_group(std::array{backend::LinearPart{&weight, bias, out}}, in);
}

Status CpuBackend::linear_group(std::span<const backend::LinearPart> parts, Act in) {
  return multiply_all(parts, [&](const InputKind& kind) { return prepare(in, kind); });
}

Status CpuBackend::linear_residual(const Matrix& weight, const Vector* bias, Act in, Act scratch, Act x) {
  const backend::LinearPart part{&weight, bias, scratch};
  return multiply_all({&part, 1}, [&](const InputKind& kind) { return prepare(in, kind); }, x);
}

bool CpuBackend::all_prepared(std::span<const backend::LinearPart> parts) const noexcept {
  return std::none_of(parts.begin(), parts.end(), [&](const backend::LinearPart& part) {
    return part.weight->rounding.to == RoundedInputs::none && input_form(family_of(*part.weight, n_rows_), part.weight->form) == InputForm::f32;
  });
}

Status CpuBackend::norm_linear_group(const backend::Norm& norm, Act in, Act scratch,
                                     std::span<const backend::LinearPart> parts) {
  if (!all_prepared(parts)) return Backend::norm_linear_group(norm, in, scratch, parts);
  const Activation& from = act(in);
  return multiply_all(parts, [&](const InputKind& kind) {
    return prepare_rows(from.columns, kind, [&](std::size_t row, std::byte* own) {
      auto* values = reinterpret_cast<float*>(own);
      norm_row(norm, from.data + row * from.columns, from.columns, values);
      return values;
    });
  });
}

Status CpuBackend::activated_product(const backend::Activated& of, const backend::LinearPart& part, Act residual) {
  const Activation& up = act(of.up);
  const float* gate = of.gate != Act::count ? act(of.gate).data : nullptr;
  const auto kind_of = static_cast<std::size_t>(of.kind);
  return multiply_all({&part, 1}, [&](const InputKind& kind) {
    return prepare_rows(up.columns, kind, [&](std::size_t row, std::byte* scratch) {
      auto* values = reinterpret_cast<float*>(scratch);
      const std::size_t at = row * up.columns;
      if (gate == nullptr) kernels_.elementwise.activate[kind_of](up.data + at, up.columns, values);
      else kernels_.elementwise.activate_gated[kind_of](gate + at, up.data + at, up.columns, values);
      return values;
    });
  }, residual);
}

Status CpuBackend::activated_linear(const backend::Activated& of, const Matrix& weight, const Vector* bias, Act out) {
  const backend::LinearPart part{&weight, bias, out};
  return all_prepared({&part, 1}) ? activated_product(of, part, Act::count) : Backend::activated_linear(of, weight, bias, out);
}

Status CpuBackend::activated_linear_residual(const backend::Activated& of, const Matrix& weight, const Vector* bias,
                                             Act scratch, Act x) {
  const backend::LinearPart part{&weight, bias, scratch};
  return all_prepared({&part, 1}) ? activated_product(of, part, x)
                                  : Backend::activated_linear_residual(of, weight, bias, scratch, x);
}

}  // namespace tessera::cpu
