// CpuBackend::explain(): the kernel and the family of every operation.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpu/attention/attention_plan.hpp"
#include "cpu/cpu_backend.hpp"
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

// Returns a text with the names of the kernels, and for each the number of rows from which on it is used.
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

backend::Explanation CpuBackend::explain_products(DType dtype, std::size_t count) const {
  const PackedForm form = formats::packed_form_of(dtype);
  const Family few = family_of(form, 1), many = family_of(form, SIZE_MAX);
  const LinearPair& pair = kernels_.product(few, form);
  std::vector<std::pair<std::size_t, std::string_view>> kernels;
  if (pair.many_from > 1) kernels.emplace_back(0, pair.few.name);
  if (pair.many_from != SIZE_MAX && (few == many || pair.many_from < kFastestRows)) {
    kernels.emplace_back(pair.many_from, pair.many.name);
  }
  if (few != many) kernels.emplace_back(kFastestRows, kernels_.product(many, form).of(SIZE_MAX).name);
  backend::Explanation line{.operation = fmt::format("linear ({} matrices)", count),
                            .kernel = kernel_text(std::move(kernels)),
                            .family = std::string(to_string(few)),
                            .dtype = std::string(tessera::to_string(dtype))};
  if (few != many) line.family += fmt::format("+{}", to_string(many));
  if (few == Family::reference && numerics_ != Numerics::reference) {
    line.fallback = fmt::format("{} has no kernel for it", tessera::to_string(set_));
  }
  return line;
}

std::vector<backend::Explanation> CpuBackend::explain() const {
  const std::string set(tessera::to_string(set_));
  std::vector<backend::Explanation> lines;
  lines.push_back({"instruction set", set, "", "-", refused_});
  if (set_ == InstructionSet::baseline) lines.push_back({"fused multiply-add", "software", "", "-", ""});

  std::vector<std::pair<DType, std::size_t>> types;
  for (const Matrix& matrix : weights_.matrices()) {
    const auto at = std::find_if(types.begin(), types.end(), [&](auto& t) { return t.first == matrix.shape.dtype; });
    if (at == types.end()) {
      types.emplace_back(matrix.shape.dtype, 1);
    } else {
      ++at->second;
    }
  }
  for (const auto& [dtype, count] : types) lines.push_back(explain_products(dtype, count));

  for (const DType kv : kv_types()) {
    const Family family = attention_family_of(kv_type_of(kv));
    const bool is_reference = family == Family::reference;
    lines.push_back({"attention",
                     is_reference ? "portable, key chunks of 256" : kernels_.attend(family, kv_type_of(kv)).name,
                     std::string(to_string(family)), std::string(tessera::to_string(kv)), ""});
  }
  const char* const wide = numerics_ == Numerics::reference ? "portable" : "vectors of 16 lanes";
  lines.push_back({"softcap of scores", wide, kReference, "F32", ""});
  lines.push_back({"sink logits", wide, kReference, "F32", ""});
  lines.push_back({"append_kv", "portable", kReference, "", ""});
  for (const char* operation : {"embed", "add_positions"}) lines.push_back({operation, "portable", kReference, "F32", ""});
  if (std::ranges::any_of(weights_.matrices(), [](const Matrix& matrix) { return matrix.shape.count > 1; })) {
    lines.push_back({"routing", "portable", kReference, "F32", ""});
  }
  for (const char* operation : {"norm", "rope", "activation", "residual"}) {
    lines.push_back({operation, "vectors of 16 lanes", kReference, "F32", ""});
  }
  return lines;
}

}  // namespace tessera::cpu
