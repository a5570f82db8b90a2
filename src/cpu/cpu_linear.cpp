// The CPU backend's matrix products: which family computes them, and how rows and panels are made tasks.
#include <algorithm>
#include <array>

#include "cpu/cpu_backend.hpp"
#include "cpu/for_each.hpp"
#include "support/error.hpp"

namespace tessera::cpu {

namespace {

// Pieces of a product a slot, which takes its own one after another: they even out threads of unequal speed.
constexpr std::size_t kPiecesFew = 32;
// Products at once of a linear_group(); more are done one group after another.
constexpr std::size_t kMostParts = 4;

constexpr std::size_t divide_up(std::size_t n, std::size_t by) noexcept { return (n + by - 1) / by; }

// How a product is cut: row blocks outside, panel groups inside, so that a block of activations stays in the cache.
struct Cut {
  std::size_t rows, row_blocks;    // of a block; blocks
  std::size_t panels, groups;      // of a group; groups

  Cut() = default;
  Cut(const Linear& kernel, std::size_t n_rows, std::size_t n_panels, std::size_t slots) noexcept {
    rows = RowCut(kernel, n_rows).task;
    row_blocks = divide_up(n_rows, rows);
    const std::size_t shared = n_panels / (kPiecesFew * slots) / kernel.panels * kernel.panels;
    panels = row_blocks > 1 ? kernel.panels : std::max(kernel.panels, shared);
    groups = divide_up(n_panels, panels);
  }
};

}  // namespace

const Linear& CpuBackend::kernel_of(PackedForm form) const noexcept {
  return kernels_.product(family_of(form, n_rows_), form).of(n_rows_);
}

CpuBackend::InputKind CpuBackend::input_of(PackedForm form) const noexcept {
  return {input_form(family_of(form, n_rows_), form), RowCut(kernel_of(form), n_rows_).group};
}

CpuBackend::Input CpuBackend::prepare(Act in, const InputKind& kind) noexcept {
  const Activation& from = act(in);
  if (kind.form == InputForm::f32) return {reinterpret_cast<const std::byte*>(from.data), from.columns * sizeof(float), 1};
  const std::size_t stride = row_layout(kind.form, from.columns).bytes;
  if (prepared_act_ != in || prepared_kind_ != kind) {
    const PrepareFn fn = kernels_.preparation(kind.form);
    for_each_row([&](std::size_t row) {
      fn(from.data + row * from.columns, from.columns, prepared_ + group_at(row, kind.group, stride), kind.group);
    });
    prepared_act_ = in;
    prepared_kind_ = kind;
  }
  return {prepared_, stride, kind.group};
}

void CpuBackend::multiply(std::span<const backend::LinearPart> parts, const InputKind& kind, Act in) noexcept {
  const Input x = prepare(in, kind);
  struct Product {
    const Linear* kernel;
    const Matrix* weight;
    float* out;
    Cut cut;
    std::size_t first;  // of all items, its own
    std::size_t ahead;

    void run(std::size_t item, const Input& x, std::size_t n_rows, std::byte* scratch) const noexcept {
      const std::size_t inputs = weight->shape.inputs, outputs = weight->shape.outputs;
      const std::size_t bytes = panel_bytes(weight->form, inputs);
      const std::size_t row = item / cut.groups * cut.rows, panel = item % cut.groups * cut.panels;
      kernel->run({.weights = weight->data + panel * bytes,
                   .panel_bytes = bytes,
                   .panels = std::min(cut.panels, panels_of(weight->shape) - panel),
                   .inputs = inputs,
                   .outputs = std::min(cut.panels * kPanel, outputs - panel * kPanel),
                   .x = x.rows + row * x.stride,
                   .x_stride = x.stride,
                   .group = x.group,
                   .rows = std::min(cut.rows, n_rows - row),
                   .out = out + row * outputs + panel * kPanel,
                   .out_stride = outputs,
                   .scratch = scratch,
                   .ahead = ahead});
    }
  };
  std::array<Product, kMostParts> products{};
  std::size_t items = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Matrix& weight = *parts[i].weight;
    const Linear& kernel = kernel_of(weight.form);
    const Cut cut(kernel, n_rows_, panels_of(weight.shape), slots_);
    Activation& to = written(parts[i].out);
    to.columns = weight.shape.outputs;
    products[i] = {&kernel, &weight, to.data, cut, items, kernels_.ahead};
    items += cut.row_blocks * cut.groups;
  }
  for_each(items, 1, [&](std::size_t item, std::byte* scratch) {
    const Product* product = products.data() + parts.size() - 1;
    while (item < product->first) --product;
    product->run(item - product->first, x, n_rows_, scratch);
  });
}

Status CpuBackend::linear(const Matrix& weight, Act in, Act out) {
  return linear_group(std::array{backend::LinearPart{.weight = &weight, .out = out}}, in);
}

Status CpuBackend::linear_group(std::span<const backend::LinearPart> parts, Act in) {
  if (n_rows_ == 0) return {};
  for (auto rest = parts; !rest.empty();) {
    const InputKind kind = input_of(rest.front().weight->form);
    std::size_t n = 1;
    while (n < std::min(rest.size(), kMostParts) && input_of(rest[n].weight->form) == kind) ++n;
    multiply(rest.first(n), kind, in);
    rest = rest.subspan(n);
  }
  for (const backend::LinearPart& part : parts) {
    if (part.bias != nullptr) TESSERA_TRY_STATUS(add_bias(*part.bias, part.out));
  }
  return {};
}

}  // namespace tessera::cpu
