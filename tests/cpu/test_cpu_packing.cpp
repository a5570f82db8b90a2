// The packed weights that the tests of the kernels write (kernel_families.hpp) are those that loading makes.
#include <cstring>

#include "catch.hpp"
#include "core/float16.hpp"
#include "cpu/products/packed_matrix.hpp"
#include "kernel_families.hpp"

namespace test_cpu_packing {

using namespace tessera;
using namespace tessera::test;

TEST_CASE("what the kernels' tests pack is read as loading's is") {
  for (std::size_t form = 0; form < formats::kPackedForms; ++form) {
    const std::size_t inputs = 2 * std::max<std::size_t>(cpu::form_layout(static_cast<PackedForm>(form)).block_values, 17);
    const FormWeights w = random_weights(static_cast<PackedForm>(form), 19, inputs, Scales::ordinary, 7);
    const backend::Matrix matrix{{.outputs = w.outputs, .inputs = inputs}, w.form, w.packed.data()};
    std::vector<float> row(inputs);
    for (std::size_t n = 0; n < w.outputs; ++n) {
      INFO("form " << form << ", output " << n);
      cpu::unpack_row(matrix, n, row.data());
      REQUIRE(std::memcmp(row.data(), w.values.data() + n * inputs, inputs * sizeof(float)) == 0);
    }
  }
}

namespace {

template <class Stored, class Store>
void check_plain(DType dtype, PackedForm form, Store store) {
  for (const std::size_t outputs : {1u, 15u, 16u, 17u, 32u, 40u, 64u}) {
    for (std::size_t inputs = 1; inputs < 70; ++inputs) {
      const FormWeights w = random_weights(form, outputs, inputs, Scales::extreme, static_cast<std::uint32_t>(inputs));
      std::vector<Stored> file;
      for (const float value : w.values) file.push_back(store(value));
      const backend::MatrixShape shape{.dtype = dtype, .outputs = outputs, .inputs = inputs};
      const std::size_t panel = cpu::panel_bytes(form, inputs);
      std::vector<std::byte> packed(cpu::packed_bytes(shape), std::byte{0xff});
      const std::size_t width = cpu::panel_outputs(form);
      for (std::size_t row = 0; row < outputs; row += width) {
        cpu::pack_panel(shape, reinterpret_cast<const std::byte*>(file.data() + row * inputs),
                        std::min(width, outputs - row), packed.data() + row / width * panel);
      }
      INFO(to_string(dtype) << " " << outputs << " x " << inputs);
      REQUIRE(packed.size() == cpu::panels_of(shape) * panel);
      REQUIRE(std::memcmp(packed.data(), w.packed.data(), packed.size()) == 0);
    }
  }
}

}  // namespace

TEST_CASE("plain weights are packed with zeros where there are none") {
  check_plain<float>(DType::f32, PackedForm::f32, [](float value) { return value; });
  check_plain<std::uint16_t>(DType::f16, PackedForm::f16, f32_to_f16);
  check_plain<std::uint16_t>(DType::bf16, PackedForm::bf16, f32_to_bf16);
}

TEST_CASE("packed weights take the file's bytes, whatever the format") {
  for (const DType type : formats::all()) {
    const formats::Block block = *formats::block_of(type);
    const backend::MatrixShape shape{.dtype = type, .outputs = 4096, .inputs = 4096};
    INFO(to_string(type));
    CHECK(cpu::packed_bytes(shape) == shape.outputs * shape.inputs / block.values * block.bytes);
  }
}

}  // namespace test_cpu_packing
