// CpuBackend::explain(): lists the kernel and the family of every operation, as users see them in `explain` output.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpu/attention/attention_plan.hpp"
#include "cpu/cpu_backend.hpp"
#include "cpu/products/rounded_rows.hpp"
#include "formats/formats.hpp"

namespace tessera::cpu {

namespace {


constexpr const char* kReference = "reference-f32";

constexpr std::string_view to_string(Family family) noexcept {
  switch (family) {
    case Family::reference: return kReference;
    case Family::f32: return "f32";
    case Family::int8: return "int8";
    case Family::bf16: return "bf16";
    case Family::bf16x3: return "bf16x3";
    case Family::bf16_pairs: return "bf16-pairs";
    case Family::count: break;
  }
  return "?";
}

// Returns a text with the names of the kernels, and for each kernel the number of rows from which it is used.
std::string kernel_text(std::vector<std::pair<std::size_t, std::string_view>> kernels) {
  std::string text;
  for (const auto& [from, name] : kernels) {
    if (text.empty()) {
      text = name;
    } else {
      text += fmt::format("; from {} rows on: {}", from, name);
    }
  }
  return text;
}

}  // namespace

backend::Explanation CpuBackend::explain_products(const Matrix& weight, std::size_t count) const {
  const PackedForm form = weight.form;
  const Family few = family_of(weight, 1), many = family_of(weight, SIZE_MAX);
  const LinearPair& pair = kernels_.product(few, form);
  std::vector<std::pair<std::size_t, std::string_view>> kernels;
  if (pair.many_from > 1) kernels.emplace_back(0, pair.few.name);
  if (pair.many_from != SIZE_MAX && (few == many || pair.many_from < kFastestRows)) {
    kernels.emplace_back(pair.many_from, pair.many.name);
  }
  if (few != many) kernels.emplace_back(kFastestRows, kernels_.product(many, form).of(SIZE_MAX).name);
  backend::Explanation line{.operation = Operation::linear,
                            .detail = fmt::format(" ({} matrices)", count),
                            .kernel = kernel_text(std::move(kernels)),
                            .family = std::string(to_string(few)),
                            .dtype = weight.shape.dtype};
  if (few != many) line.family += fmt::format("+{}", to_string(many));
  if (const std::string rounding = name_of(weight.rounding); !rounding.empty()) line.family += fmt::format(" of {}", rounding);
  if (few == Family::reference && numerics_ != Numerics::reference) {
    line.fallback = fmt::format("{} has no kernel for it", tessera::to_string(set_));
  }
  return line;
}

std::vector<backend::Explanation> CpuBackend::explain() const {
  const std::string set(tessera::to_string(set_));
  std::vector<backend::Explanation> lines;
  lines.push_back({.operation = Operation::instruction_set, .kernel = set, .fallback = refused_});
  if (set_ == InstructionSet::baseline)
    lines.push_back({.operation = Operation::fused_multiply_add, .kernel = "software"});

  std::vector<std::pair<const Matrix*, std::size_t>> kinds;  // one matrix of each pair of weight format and input rounding, and their number
  for (const Matrix& matrix : weights_.matrices()) {
    const auto at = std::find_if(kinds.begin(), kinds.end(), [&](auto& kind) {
      return kind.first->shape.dtype == matrix.shape.dtype && name_of(kind.first->rounding) == name_of(matrix.rounding);
    });
    if (at == kinds.end()) {
      kinds.emplace_back(&matrix, 1);
    } else {
      ++at->second;
    }
  }
  for (const auto& [matrix, count] : kinds) lines.push_back(explain_products(*matrix, count));

  for (const DType kv : kv_types()) {
    const Family family = attention_family_of(kv_type_of(kv));
    const bool is_reference = family == Family::reference;
    lines.push_back(
        {.operation = Operation::attention,
         .kernel = is_reference ? "portable, key chunks of 256" : kernels_.attend(family, kv_type_of(kv)).name,
         .family = std::string(to_string(family)),
         .dtype = kv});
  }
  const auto add = [&](Operation operation, const char* kernel, DType dtype = DType::f32) {
    lines.push_back({.operation = operation, .kernel = kernel, .family = kReference, .dtype = dtype});
  };
  const char* const portable = "portable";
  const char* const vectors = "vectors of 16 lanes";
  const char* const wide = numerics_ == Numerics::reference ? portable : vectors;
  add(Operation::score_softcap, wide);
  add(Operation::sink_logits, wide);
  add(Operation::append_kv, portable, DType::automatic);
  add(Operation::embed, portable);
  add(Operation::add_positions, portable);
  if (std::ranges::any_of(weights_.matrices(), [](const Matrix& matrix) { return matrix.shape.count > 1; })) {
    add(Operation::routing, portable);
  }
  for (const Operation of : {Operation::norm, Operation::rope, Operation::activation, Operation::residual})
    add(of, vectors);
  return lines;
}

}  // namespace tessera::cpu
