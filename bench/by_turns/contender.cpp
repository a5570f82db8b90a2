// The functions of a library of kernels that by_turns calls. This file is linked with the kernels of one instruction set.
#include "contender.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <random>
#include <vector>

#include "cpu/kernels.hpp"

namespace tessera::cpu {
namespace TESSERA_ISA { void add_kernels(Kernels& kernels) noexcept; }
#if defined(TESSERA_ISA_amx)
namespace avx512_vnni { void add_kernels(Kernels& kernels) noexcept; }
#endif
}  // namespace tessera::cpu

namespace {

using namespace tessera;
using namespace tessera::cpu;

constexpr const char* kFamilyNames[] = {"reference", "f32", "int8", "bf16", "bf16x3", "bf16-pairs"};
constexpr const char* kFormNames[] = {"f32",           "f16",       "bf16",       "block32_4",  "block32_4_min", "block32_5",
                                      "block32_5_min", "block32_8", "block256_4", "block256_5", "block256_6",
                                      "kept_iq4_nl", "kept_mxfp4", "kept_nvfp4", "kept_iq4_xs", "kept_q3_k", "kept_q2_k",
                                      "kept_iq3_s", "kept_iq3_xxs", "kept_iq2_s", "kept_iq2_xs", "kept_iq2_xxs", "kept_iq1_m",
                                      "kept_iq1_s", "kept_tq2_0", "kept_tq1_0"};
static_assert(std::size(kFamilyNames) == kFamilies && std::size(kFormNames) == formats::kPackedForms);

template <std::size_t n>
std::size_t find(const char* const (&names)[n], const char* name) {
  return static_cast<std::size_t>(
      std::find_if(names, names + n, [name](const char* known) { return std::strcmp(known, name) == 0; }) - names);
}

struct Product {
  Linear kernel;
  LinearJob job;
  RowCut cut;
  std::size_t rows;
  std::unique_ptr<std::byte[]> memory;
  std::vector<float> out;
};

void multiply(void* state, const std::byte* weights, std::size_t panels) {
  auto& product = *static_cast<Product*>(state);
  LinearJob job = product.job;
  job.weights = weights;
  job.panels = panels;
  job.outputs = job.out_stride = panels * kPanel * (job.outputs / kPanel);
  product.out.resize(std::max(product.out.size(), product.rows * job.out_stride + 16));
  float* const out = product.out.data() + (64 - reinterpret_cast<std::uintptr_t>(product.out.data()) % 64) / sizeof(float);
  for (std::size_t row = 0; row < product.rows; row += product.cut.task) {
    job.x = product.job.x + row * job.x_stride;
    job.rows = std::min(product.cut.task, product.rows - row);
    job.out = out + row * job.out_stride;
    product.kernel.run(job);
  }
}

}  // namespace

const char* tessera_contender(const Question* question, Contender* contender) {
  const std::size_t family = find(kFamilyNames, question->family), form_index = find(kFormNames, question->form);
  if (family == kFamilies) return "no such family: f32, int8, bf16, bf16x3, bf16-pairs";
  if (form_index == formats::kPackedForms) return "no such form: cpu/packed_layout.hpp lists the forms";
  const auto form = static_cast<PackedForm>(form_index);
  if (question->inputs % form_layout(form).block_values != 0) return "the inputs end within a block of the form";
  Kernels kernels;
#if defined(TESSERA_ISA_amx)
  avx512_vnni::add_kernels(kernels);
#endif
  TESSERA_ISA::add_kernels(kernels);
  const Linear& kernel = kernels.product(static_cast<Family>(family), form).of(question->rows);
  if (kernel.run == nullptr) return "this instruction set has no such product";

  const InputForm input = input_form(static_cast<Family>(family), form);
  const std::size_t stride = row_layout(input, question->inputs).bytes;
  const RowCut cut(kernel, question->rows);
  const std::size_t x_bytes = (question->rows + cut.group) * stride;
  auto* product = new Product{kernel, {}, cut, question->rows,
                              std::make_unique<std::byte[]>(x_bytes + kernel.scratch_bytes + 128), {}};
  std::byte* x = product->memory.get();
  x += 64 - reinterpret_cast<std::uintptr_t>(x) % 64;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> row(question->inputs);
  for (std::size_t r = 0; r < question->rows; ++r) {
    for (float& value : row) value = normal(random);
    kernels.preparation(input)(row.data(), row.size(), x + group_at(r, cut.group, stride), cut.group);
  }
  LinearJob& job = product->job;
  job.panel_bytes = panel_bytes(form, question->inputs);
  job.inputs = question->inputs;
  job.outputs = panel_outputs(form);
  job.x = x;
  job.x_stride = stride;
  job.group = cut.group;
  job.scratch = x + pad64(x_bytes);
  job.ahead = {.bytes = question->ahead_bytes, .all_lines = question->all_lines};
  *contender = {product, job.panel_bytes, job.outputs, kernel.panels, multiply};
  return "";
}
