// Latent attention's own operations: a head's product has the bits that its matrix gives it alone, whatever rows are beside it.
#include <algorithm>
#include <cstring>
#include <random>

#include "catch.hpp"
#include "cpu/instruction_sets.hpp"
#include "engine/load/make_backend.hpp"
#include "engine/load/plan.hpp"
#include "engine/models.hpp"
#include "formats/formats.hpp"
#include "formats/kept_blocks.hpp"

namespace test_latent {

using namespace tessera;
using backend::Act;
using test::must;

namespace {

struct Shape {
  std::uint32_t heads, outputs, inputs, rows;  // `rows`: the most of a step
};
constexpr Shape kShape{3, 40, 256, 70};

std::vector<float> random_values(std::size_t n, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

// A backend with a matrix of each head, together and by themselves. values: [heads, outputs, inputs]
struct Rig {
  Rig(InstructionSet set, Numerics numerics, DType type, const Shape& of, const std::vector<float>& values)
      : machine(must(detail::make_backend(must(detail::resolve_options({.numerics = numerics, .instruction_set = set, .threads = 3}))))),
        cpu(*machine.backend) {
    const backend::MatrixShape all{type, of.outputs, of.inputs, of.heads}, one{type, of.outputs, of.inputs};
    const backend::MatrixShape wide{DType::f32, 1, of.heads * of.inputs}, narrow{DType::f32, 1, of.inputs};
    must(cpu.reserve_weights(cpu.matrix_bytes(all) + of.heads * cpu.matrix_bytes(one) + cpu.matrix_bytes(wide) + cpu.matrix_bytes(narrow),
                             std::max(cpu.staging_bytes(all), cpu.staging_bytes(wide))));
    std::vector<std::byte> file;
    formats::visit(type, [&]<class F>(std::type_identity<F>) {
      file.resize(values.size() / F::block_values * F::block_bytes);
      for (std::size_t i = 0; i < values.size() / F::block_values; ++i) {
        test::encode_or_make_up<F>(values.data() + i * F::block_values, file.data() + i * F::block_bytes, static_cast<std::uint32_t>(i));
      }
    });
    const std::size_t row = file.size() / (of.heads * of.outputs);
    const auto add = [&](const backend::MatrixShape& shape, std::size_t first) {
      return must(cpu.add_matrix(shape, [&](std::uint64_t at, std::uint64_t count, std::span<std::byte> out) {
        std::memcpy(out.data(), file.data() + (first + at) * row, count * row);
        return Status();
      }));
    };
    const auto blank = [&](const backend::MatrixShape& shape) {
      return must(cpu.add_matrix(shape, [&](std::uint64_t, std::uint64_t, std::span<std::byte> out) {
        std::ranges::fill(out, std::byte{0});
        return Status();
      }));
    };
    together = add(all, 0);
    for (std::size_t head = 0; head < of.heads; ++head) alone.push_back(add(one, head * of.outputs));
    rows_of_all = blank(wide);
    rows_of_one = blank(narrow);
    cpu.finish_loading();
    backend::WorkspaceShape shape{.rows = of.rows, .output_rows = 1, .max_group = 1, .max_key_dim = 1, .max_value_dim = 1,
                                  .head_inputs = of.inputs};
    for (std::uint64_t& columns : shape.columns) columns = of.heads * of.inputs;
    must(cpu.reserve_workspace(shape));
  }

  // Rows into Act::h, from `at` on, `stride` floats apart.
  void begin(const backend::Matrix& table, const float* at, std::size_t stride, std::size_t rows) {
    std::vector<backend::RowTable> tables;
    for (std::size_t i = 0; i < rows; ++i) tables.push_back({.embedding = at + i * stride});
    must(cpu.begin({.rows = tables, .sequences = {}, .ropes = {}}));
    must(cpu.embed(table, 1.0f, Act::h));
  }
  std::vector<float> read(std::size_t columns, std::uint32_t row) {
    std::vector<float> values(columns);
    must(cpu.read(Act::gate, row, values));
    return values;
  }

  detail::Machine machine;
  backend::Backend& cpu;
  const backend::Matrix *together = nullptr, *rows_of_all = nullptr, *rows_of_one = nullptr;
  std::vector<const backend::Matrix*> alone;
};

}  // namespace

TEST_CASE("four numbers in, four out: two heads' products", "[cpu]") {
  for (const cpu::Support& support : cpu::supported_sets()) {
    if (!cpu::claim_set(support.set)) continue;
    INFO(to_string(support.set));
    Rig rig(support.set, Numerics::automatic, DType::f32, {2, 2, 2, 1},
            {1, 0, 0, 1,     // head 0 gives its inputs back
             1, 1, 1, -1});  // head 1 gives their sum and their difference
    const float row[] = {1, 2, 3, 4};
    rig.begin(*rig.rows_of_all, row, 4, 1);
    must(rig.cpu.head_linear(*rig.together, Act::h, Act::gate));
    CHECK(rig.read(4, 0) == std::vector<float>{1, 2, 7, -1});
  }
}

TEST_CASE("each head's product is that of its own matrix, for any number of rows, on every instruction set", "[cpu]") {
  const auto [heads, outputs, inputs, most] = kShape;
  const auto weights = random_values(std::size_t{heads} * outputs * inputs, 1), rows_in = random_values(std::size_t{most} * heads * inputs, 5);
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0, DType::q4_k, DType::iq4_nl, DType::q2_k}) {
    for (const cpu::Support& support : cpu::supported_sets()) {
      if (!cpu::claim_set(support.set)) continue;
      for (const Numerics numerics : {Numerics::automatic, Numerics::bf16, Numerics::reference}) {
        if (numerics == Numerics::reference && support.set != cpu::supported_sets().front().set) continue;  // the same on all
        INFO(to_string(support.set) << ", " << to_string(type) << ", " << to_string(numerics));
        Rig rig(support.set, numerics, type, kShape, weights);
        std::vector<std::vector<float>> want(most);
        for (std::uint32_t row = 0; row < most; ++row) {
          for (std::size_t head = 0; head < heads; ++head) {
            rig.begin(*rig.rows_of_one, rows_in.data() + (row * heads + head) * inputs, inputs, 1);
            must(rig.cpu.linear(*rig.alone[head], Act::h, Act::gate));
            const auto part = rig.read(outputs, 0);
            want[row].insert(want[row].end(), part.begin(), part.end());
          }
        }
        for (const std::uint32_t rows : {1u, 5u, 33u, most}) {
          rig.begin(*rig.rows_of_all, rows_in.data(), heads * inputs, rows);
          must(rig.cpu.head_linear(*rig.together, Act::h, Act::gate));
          for (std::uint32_t row = 0; row < rows; ++row) {
            REQUIRE(std::memcmp(rig.read(heads * outputs, row).data(), want[row].data(), want[row].size() * sizeof(float)) == 0);
          }
        }
      }
    }
  }
}

}  // namespace test_latent
