// The CPU backend's matrix products: which family computes them, and how rows and panels are made tasks.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <tessera/formats/formats.hpp>

#include "cpu/cpu_backend.hpp"
#include "cpu/for_each.hpp"
#include "cpu/instruction_sets.hpp"

namespace tessera::cpu {

namespace {

// Numerics::fastest: from this many rows on, panels in bf16 are faster than exact integers.
constexpr std::size_t kFastestRows = 32;
// Pieces of a product a slot: they even out threads of unequal speed.
constexpr std::size_t kPiecesFew = 8;

constexpr std::string_view to_string(Family family) noexcept {
  switch (family) {
    case Family::reference: return "reference-f32";
    case Family::f32: return "f32";
    case Family::int8: return "int8";
    case Family::bf16: return "bf16";
    case Family::bf16x3: return "bf16x3";
    case Family::count: break;
  }
  return "?";
}

constexpr std::size_t divide_up(std::size_t n, std::size_t by) noexcept { return (n + by - 1) / by; }

// How a product is cut: row blocks outside, panel groups inside, so that a block of activations stays in the cache.
struct Cut {
  std::size_t rows, row_blocks;    // of a block; blocks
  std::size_t panels, groups;      // of a group; groups

  Cut(const Linear& kernel, std::size_t n_rows, std::size_t n_panels, std::size_t slots) noexcept {
    row_blocks = divide_up(n_rows, kernel.max_rows);
    rows = divide_up(divide_up(n_rows, row_blocks), 16) * 16;  // whole tiles of rows, blocks of about the same size
    row_blocks = divide_up(n_rows, rows);
    const std::size_t shared = n_panels / (kPiecesFew * slots) / kernel.panels * kernel.panels;
    panels = row_blocks > 1 ? kernel.panels : std::max(kernel.panels, shared);
    groups = divide_up(n_panels, panels);
  }
};

}  // namespace

Family CpuBackend::family_of(PackedForm form, std::size_t rows) const noexcept {
  if (numerics_ == Numerics::reference) return Family::reference;
  Family family = Family::int8;
  if (form == PackedForm::f32) family = Family::f32;
  if (form == PackedForm::f16) family = Family::bf16x3;
  if (form == PackedForm::bf16) family = Family::bf16;
  if (is_quantised(form)) {
    if (numerics_ == Numerics::bf16) family = Family::bf16;
    if (numerics_ == Numerics::fastest && rows >= kFastestRows) family = Family::bf16;
  }
  return kernels_.product(family, form).few.run != nullptr ? family : Family::reference;
}

CpuBackend::Input CpuBackend::prepare(Act in, InputForm form) noexcept {
  const Activation& from = act(in);
  if (form == InputForm::f32) return {reinterpret_cast<const std::byte*>(from.data), from.columns * sizeof(float)};
  const std::size_t stride = row_layout(form, from.columns).bytes;
  if (prepared_act_ != in || prepared_form_ != form) {
    const PrepareFn fn = kernels_.preparation(form);
    for_each_row([&](std::size_t row) { fn(from.data + row * from.columns, from.columns, prepared_ + row * stride); });
    prepared_act_ = in;
    prepared_form_ = form;
  }
  return {prepared_, stride};
}

Status CpuBackend::linear(const Matrix& weight, Act in, Act out) {
  if (n_rows_ == 0) return {};
  const Family family = family_of(weight.form, n_rows_);
  const Linear& kernel = kernels_.product(family, weight.form).of(n_rows_);
  const std::size_t inputs = weight.shape.inputs, outputs = weight.shape.outputs;
  const Input x = prepare(in, input_form(family, weight.form));
  Activation& to = written(out);
  to.columns = outputs;
  const std::size_t panels = panels_of(weight.shape), bytes = panel_bytes(weight.form, inputs);
  const Cut cut(kernel, n_rows_, panels, slots_);
  for_each(cut.row_blocks * cut.groups, 1, [&](std::size_t item, std::byte* scratch) {
    const std::size_t row = item / cut.groups * cut.rows, panel = item % cut.groups * cut.panels;
    const std::size_t first = panel * kPanel;
    kernel.run({.weights = weight.data + panel * bytes,
                .panel_bytes = bytes,
                .panels = std::min(cut.panels, panels - panel),
                .inputs = inputs,
                .outputs = std::min(cut.panels * kPanel, outputs - first),
                .x = x.rows + row * x.stride,
                .x_stride = x.stride,
                .rows = std::min(cut.rows, n_rows_ - row),
                .out = to.data + row * outputs + first,
                .out_stride = outputs,
                .scratch = scratch});
  });
  return {};
}

std::vector<backend::Explanation> CpuBackend::explain() const {
  std::vector<backend::Explanation> lines;
  std::string refused;
  for (const Support& support : supported_sets()) {
    if (support.why_not.find("refuses") != std::string::npos) refused = support.why_not;
  }
  lines.push_back({"instruction set", std::string(tessera::to_string(set_)), "", "-", ""});
  if (!refused.empty()) lines.back().kernel += fmt::format(" ({})", refused);

  std::vector<std::pair<DType, std::size_t>> types;
  for (const Matrix& matrix : matrices_) {
    const auto at = std::find_if(types.begin(), types.end(), [&](auto& t) { return t.first == matrix.shape.dtype; });
    if (at == types.end()) {
      types.emplace_back(matrix.shape.dtype, 1);
    } else {
      ++at->second;
    }
  }
  for (const auto& [dtype, count] : types) {
    const PackedForm form = formats::packed_form_of(dtype);
    const Family few = family_of(form, 1), many = family_of(form, SIZE_MAX);
    const LinearPair& pair = kernels_.product(few, form);
    std::string kernel = pair.few.name;
    if (many != few) {
      kernel += fmt::format("; from {} rows on: {}", kFastestRows, kernels_.product(many, form).of(SIZE_MAX).name);
    } else if (pair.many.run != nullptr && pair.many_from != SIZE_MAX) {
      kernel += fmt::format("; from {} rows on: {}", pair.many_from, pair.many.name);
    }
    const std::string family = many == few ? std::string(to_string(few)) : fmt::format("{}+{}", to_string(few), to_string(many));
    const bool fell = few == Family::reference && numerics_ != Numerics::reference;
    lines.push_back({fmt::format("linear ({} matrices)", count), std::move(kernel), family,
                     std::string(tessera::to_string(dtype)),
                     fell ? fmt::format("{} has no kernel for it", tessera::to_string(set_)) : ""});
  }
  constexpr const char* kFamily = "reference-f32";
  lines.push_back({"attention", "portable, key chunks of 256, online softmax", kFamily, "", ""});
  lines.push_back({"append_kv", "portable", kFamily, "", ""});
  for (const char* operation : {"embed", "add_positions", "norm", "rope", "activation", "residual"}) {
    lines.push_back({operation, "portable", kFamily, "F32", ""});
  }
  return lines;
}

}  // namespace tessera::cpu
