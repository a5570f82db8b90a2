// The CPU backend's matrix products: which family computes them, and how rows and panels are made tasks.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <tessera/formats/formats.hpp>

#include "cpu/cpu_backend.hpp"
#include "cpu/for_each.hpp"
#include "cpu/instruction_sets.hpp"
#include "support/guard.hpp"

namespace tessera::cpu {

namespace {

// Numerics::fastest: from this many rows on, panels in bf16 are faster than exact integers.
constexpr std::size_t kFastestRows = 32;
// Pieces of a product a slot: they even out threads of unequal speed.
constexpr std::size_t kPiecesFew = 8;
// Products at once of a linear_group(); more are done one group after another.
constexpr std::size_t kMostParts = 4;

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

  Cut() = default;
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

void CpuBackend::multiply(std::span<const backend::LinearPart> parts, InputForm form, Act in) noexcept {
  const Input x = prepare(in, form);
  struct Product {
    const Linear* kernel;
    const Matrix* weight;
    float* out;
    Cut cut;
    std::size_t first;  // of all items, its own

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
                   .rows = std::min(cut.rows, n_rows - row),
                   .out = out + row * outputs + panel * kPanel,
                   .out_stride = outputs,
                   .scratch = scratch});
    }
  };
  std::array<Product, kMostParts> products{};
  std::size_t items = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Matrix& weight = *parts[i].weight;
    const Linear& kernel = kernels_.product(family_of(weight.form, n_rows_), weight.form).of(n_rows_);
    const Cut cut(kernel, n_rows_, panels_of(weight.shape), slots_);
    Activation& to = written(parts[i].out);
    to.columns = weight.shape.outputs;
    products[i] = {&kernel, &weight, to.data, cut, items};
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
  const auto form_of = [&](const backend::LinearPart& part) {
    return input_form(family_of(part.weight->form, n_rows_), part.weight->form);
  };
  for (auto rest = parts; !rest.empty();) {
    const InputForm form = form_of(rest.front());
    std::size_t n = 1;
    while (n < std::min(rest.size(), kMostParts) && form_of(rest[n]) == form) ++n;
    multiply(rest.first(n), form, in);
    rest = rest.subspan(n);
  }
  for (const backend::LinearPart& part : parts) {
    if (part.bias != nullptr) TESSERA_TRY_STATUS(add_bias(*part.bias, part.out));
  }
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
  for (std::size_t i = 0; i < kKvTypes; ++i) {
    constexpr std::pair<const char*, const char*> kTypes[] = {
        {"F32", "f32"}, {"F16", "bf16x3"}, {"BF16", "bf16"}, {"INT8", "bf16"}};
    const bool has = numerics_ != Numerics::reference && kernels_.attention[i].run != nullptr;
    lines.push_back({fmt::format("attention over {} KV", kTypes[i].first),
                     has ? kernels_.attention[i].name : "portable, key chunks of 256",
                     has ? kTypes[i].second : kFamily, "", ""});
  }
  lines.push_back({"append_kv", "portable", kFamily, "", ""});
  for (const char* operation : {"embed", "add_positions", "norm", "rope", "activation", "residual"}) {
    lines.push_back({operation, "portable", kFamily, "F32", ""});
  }
  return lines;
}

}  // namespace tessera::cpu
