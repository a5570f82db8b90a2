// Every kernel of every instruction set that runs here equals its family's scalar reference bit for bit: random shapes,
// outputs that fill no panel, all numbers of rows, extreme scales, denormals, NaN and infinity.
#include <span>

#include "catch.hpp"
#include "cpu/instruction_set_tables.hpp"
#include "cpu/kernel_families.hpp"
#include "sanitized.hpp"

namespace test_linear_kernels {

using namespace tessera;
using namespace tessera::test;
using tessera::test::Scales;  // an architecture has some too

namespace {

const std::vector<Table>& tables() {
  static std::vector<std::string> missing;
  static const std::vector<Table> all = tables_that_run(missing);
  static const bool told = [] {
    for (const std::string& set : missing) WARN("not run: " << set);
    return true;
  }();
  static_cast<void>(told);
  return all;
}

// Equal bits; what is NaN here must be NaN there, of whatever payload.
bool same(const float* a, const float* b, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::memcmp(a + i, b + i, sizeof(float)) != 0) return false;
  }
  return true;
}

struct AlignedBytes {
  explicit AlignedBytes(std::size_t bytes) : storage(bytes + 64, std::byte{0xa5}) {}
  std::byte* data() {
    const auto address = reinterpret_cast<std::uintptr_t>(storage.data());
    return storage.data() + (64 - address % 64) % 64;
  }
  std::vector<std::byte> storage;
};

std::vector<float> random_rows(std::size_t rows, std::size_t n, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(rows * n);
  for (float& value : x) value = normal(random);
  return x;
}

// Rows of every kind of trouble, each in some blocks, beside ordinary ones.
void make_extreme(std::vector<float>& x, std::uint32_t seed) {
  std::mt19937 random(seed);
  for (std::size_t i = 0; i < x.size(); i += 16) {
    const auto kind = random() % 16;
    for (std::size_t j = i; j < std::min(i + 16, x.size()); ++j) {
      if (kind == 0) x[j] = std::ldexp(x[j], -140);  // denormal
      if (kind == 1) x[j] = std::ldexp(x[j], -101);
      if (kind == 2) x[j] = 0;
      if (kind == 3) x[j] = std::ldexp(x[j], 90);
      if (kind == 4) x[j] = std::ldexp(x[j], static_cast<int>(random() % 60) - 50);
      if (kind == 5) x[j] = static_cast<float>(static_cast<int>(x[j] * 100)) + 0.5f;  // ties
    }
    if (kind == 6 && random() % 8 == 0) x[i] = std::numeric_limits<float>::quiet_NaN();
    if (kind == 7 && random() % 8 == 0) x[i] = -std::numeric_limits<float>::infinity();
    if (kind == 8 && random() % 8 == 0) x[i] = std::numeric_limits<float>::max();
  }
}

// The product as a backend does it, by tasks of random size within the kernel's limits.
std::vector<float> product(const cpu::Kernels& kernels, const cpu::Linear& kernel, Family family,
                           const FormWeights& w, const float* x, std::size_t rows, std::mt19937& random) {
  const cpu::InputForm form = cpu::input_form(family, w.form);
  const std::size_t stride = cpu::pad64(cpu::row_layout(form, w.inputs).bytes);
  const std::size_t group = cpu::RowCut(kernel, rows).group;
  AlignedBytes prepared((rows + group - 1) * stride), scratch(kernel.scratch_bytes);
  for (std::size_t r = 0; r < rows; ++r) {
    std::byte* to = prepared.data() + cpu::group_at(r, group, stride);
    kernels.preparation(form)(x + r * w.inputs, w.inputs, to, group);
  }
  // Rows of outputs that begin anywhere, or with a cache line.
  const std::size_t out_stride = random() % 2 == 0 ? w.outputs + 3 : (w.outputs + 3 + 15) / 16 * 16;
  const std::size_t width = cpu::panel_outputs(w.form), panels = (w.outputs + width - 1) / width;
  AlignedBytes out_bytes(rows * out_stride * sizeof(float));
  const std::span<float> out(reinterpret_cast<float*>(out_bytes.data()), rows * out_stride);
  std::fill(out.begin(), out.end(), -7.0f);
  std::size_t tasks_rows = 0;
  for (std::size_t row = 0; row < rows; row += tasks_rows) {
    const std::size_t most = random() % 2 == 0 ? 1 + random() % kernel.max_rows : kernel.max_rows;
    tasks_rows = std::min(rows - row, std::max(most / group, std::size_t{1}) * group);
    std::size_t task_panels = 0;
    for (std::size_t panel = 0; panel < panels; panel += task_panels) {
      task_panels = std::min(panels - panel, kernel.panels * (1 + random() % 4));
      cpu::LinearJob job;
      job.panel_bytes = cpu::panel_bytes(w.form, w.inputs);
      job.weights = w.packed.data() + panel * job.panel_bytes;
      job.panels = task_panels;
      job.inputs = w.inputs;
      job.outputs = std::min(w.outputs - panel * width, task_panels * width);
      job.x = prepared.data() + row * stride;
      job.x_stride = stride;
      job.group = group;
      job.rows = tasks_rows;
      job.out = out.data() + row * out_stride + panel * width;
      job.out_stride = out_stride;
      job.scratch = scratch.data();
      job.ahead = random() % 2 == 0 ? cpu::Ahead{} : cpu::Ahead{.bytes = 4096, .all_lines = false};
      kernel.run(job);
    }
  }
  std::vector<float> packed(rows * w.outputs);
  for (std::size_t r = 0; r < rows; ++r) {
    std::copy_n(out.begin() + static_cast<std::ptrdiff_t>(r * out_stride), w.outputs,
                packed.begin() + static_cast<std::ptrdiff_t>(r * w.outputs));
    for (std::size_t i = w.outputs; i < out_stride; ++i) REQUIRE(out[r * out_stride + i] == -7.0f);
  }
  return packed;
}

struct Case {
  Family family;
  std::vector<PackedForm> forms;
  std::size_t unit;  // of the inputs
};

const std::vector<PackedForm> kBlocks32 = {PackedForm::block32_4, PackedForm::block32_4_min, PackedForm::block32_5,
                                           PackedForm::block32_5_min, PackedForm::block32_8};

// Those that keep the file's blocks, of so many values.
std::vector<PackedForm> kept_forms(std::size_t block) {
  std::vector<PackedForm> forms;
  for (std::size_t i = 0; i < formats::kPackedForms; ++i) {
    const auto form = static_cast<PackedForm>(i);
    if (formats::keeps_blocks(form) && cpu::form_layout(form).block_values == block) forms.push_back(form);
  }
  return forms;
}

// Compares all sets at these numbers of rows with the reference. With sanitizers the reference takes ten times as long as the kernels, and
// its bits are compared without sanitizers. So with sanitizers the sets are compared with the first set instead.
void check(Family family, const FormWeights& w, const std::vector<float>& x,
           const std::vector<std::size_t>& row_counts) {
  const std::size_t most = x.size() / w.inputs;
  std::vector<float> expected;
  for (std::size_t r = 0; r < most && !tests::kSanitized; ++r) {
    const auto row = expected_outputs(family, w, x.data() + r * w.inputs);
    expected.insert(expected.end(), row.begin(), row.end());
  }
  for (const Table& table : tables()) {
    const cpu::LinearPair& pair = table.kernels.product(family, w.form);
    if (family == Family::bf16_pairs && pair.few.run == nullptr) continue;  // there is an instruction for it or no kernel
    std::mt19937 random(7);
    for (const cpu::Linear* kernel : {&pair.few, &pair.many}) {
      if (kernel->run == nullptr && kernel == &pair.many) {  // all rows are few
        REQUIRE(pair.many_from == SIZE_MAX);
        continue;
      }
      INFO(table.set << ", family " << static_cast<int>(family) << ", form " << static_cast<int>(w.form) << ", "
                     << w.outputs << " x " << w.inputs << ", " << kernel->name);
      REQUIRE(kernel->run != nullptr);
      if (expected.empty()) expected = product(table.kernels, *kernel, family, w, x.data(), most, random);
      for (const std::size_t rows : row_counts) {
        const auto out = product(table.kernels, *kernel, family, w, x.data(), rows, random);
        INFO(rows << " rows");
        REQUIRE(same(out.data(), expected.data(), rows * w.outputs));
      }
    }
  }
}

void check_all(const Case& test) {
  std::vector<std::size_t> all;
  for (std::size_t rows = 1; rows <= 80; rows += tests::kSanitized ? 13 : 1) all.push_back(rows);
  std::uint32_t seed = 1;
  for (const PackedForm form : test.forms) {
    for (const Scales scales : {Scales::ordinary, Scales::extreme}) {
      const auto w = random_weights(form, 16 * 5 + 3, test.unit * 2, scales, ++seed);
      auto x = random_rows(80, w.inputs, ++seed);
      if (scales == Scales::extreme) make_extreme(x, ++seed);
      check(test.family, w, x, all);
    }
    for (const std::size_t inputs : {test.unit, 5 * test.unit, 768 / test.unit * test.unit + test.unit}) {
      const std::size_t outputs = 1 + seed * 7 % 150;
      const auto w = random_weights(form, outputs, inputs, Scales::extreme, ++seed);
      auto x = random_rows(21, w.inputs, ++seed);
      make_extreme(x, ++seed);
      check(test.family, w, x, {1, 2, 7, 21});
    }
    const auto narrow = random_weights(form, 16 * 4 + 3, test.unit * 2, Scales::ordinary, ++seed);  // whole tasks
    check(test.family, narrow, random_rows(259, narrow.inputs, ++seed), {256, 259});
    const std::size_t outputs = tests::kSanitized ? 120 : 300, many = tests::kSanitized ? 35 : 150;  // fewer, because sanitized code is slow
    const auto w = random_weights(form, outputs, 1024, Scales::ordinary, ++seed);
    check(test.family, w, random_rows(many, w.inputs, ++seed), {1, 6, many});
  }
}

// Panels whose second half is cut off, empty or whole, one of them or an odd number; inputs that end after whole steps of
// 4 or 8 k, after pairs, after one.
void check_wide(Family family) {
  std::uint32_t seed = 300;
  for (const std::size_t outputs : {1u, 16u, 17u, 32u, 48u, 96u}) {
    for (const std::size_t inputs : {6u, 7u, 32u, 771u, 775u}) {
      const auto w = random_weights(PackedForm::f16, outputs, inputs, Scales::ordinary, ++seed);
      const std::size_t most = outputs == 96 && inputs < 32 ? 259 : 66;
      check(family, w, random_rows(most, inputs, ++seed), {1, 2, 3, 9, most});
    }
  }
}

}  // namespace

TEST_CASE("four numbers in, four out: a product of a matrix and a row", "[kernels]") {
  FormWeights w;
  w.form = PackedForm::f32;
  w.outputs = w.inputs = 4;
  w.values = {1, 0, 0, 0,   // x0
              0, 1, 0, 0,   // x1
              1, 1, 1, 1,   // the sum
              0, 2, 0, -1};  // 2 x1 - x3
  pack(w);
  const float x[] = {1, 2, 3, 4};
  std::mt19937 random(1);
  for (const Table& table : tables()) {
    INFO(table.set);
    const cpu::Linear& kernel = table.kernels.product(Family::f32, PackedForm::f32).few;
    CHECK(product(table.kernels, kernel, Family::f32, w, x, 1, random) == std::vector<float>{1, 2, 10, 0});
  }
}

TEST_CASE("f32 products of every instruction set equal the reference", "[kernels]") {
  check_all({Family::f32, {PackedForm::f32, PackedForm::f16, PackedForm::bf16}, 1});
}

TEST_CASE("products of wide panels of every instruction set equal the reference", "[kernels]") {
  check_wide(Family::f32);
  check_wide(Family::bf16x3);
}

TEST_CASE("int8 products over blocks of 32 of every instruction set equal the reference", "[kernels]") {
  check_all({Family::int8, kBlocks32, 32});
}

TEST_CASE("int8 products over superblocks of every instruction set equal the reference", "[kernels]") {
  check_all({Family::int8, {PackedForm::block256_4, PackedForm::block256_5, PackedForm::block256_6}, 256});
}

TEST_CASE("int8 products hold the largest sums that there are", "[kernels]") {
  std::vector<PackedForm> forms = kBlocks32;
  forms.insert(forms.end(), {PackedForm::block256_4, PackedForm::block256_5, PackedForm::block256_6});
  std::uint32_t seed = 50;
  for (const PackedForm form : forms) {
    auto w = random_weights(form, 35, 512, Scales::ordinary, ++seed);  // output 0 is of largest weights, 1 of zeros
    const std::size_t scales = w.scale.size() / w.outputs;
    const int top = w.layout().bits == 6 ? 127 : 63, bottom = w.layout().bits == 6 ? -128 : 63;
    for (std::size_t i = 0; i < w.scale.size(); ++i) {
      w.scale[i] = static_cast<std::uint8_t>(i / scales == 0 ? top : bottom);
    }
    std::fill(w.min.begin(), w.min.end(), std::uint8_t{63});
    std::copy_n(w.q.begin(), 512, w.q.begin() + 2 * 512);  // the largest with the other scale
    pack(w);
    const std::size_t rows = 19;
    std::vector<float> x(rows * w.inputs);
    std::mt19937 random(++seed);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t row = i / w.inputs;
      x[i] = row == 0 || (row > 2 && random() % 2 == 0) ? 3.0f : -3.0f;  // 127 or -127
      if (row == 2) x[i] = i % 4 < 2 ? 3.0f : -3.0f;
    }
    check(Family::int8, w, x, {1, 2, 3, 4, 5, 17, rows});
  }
}

TEST_CASE("bf16 products of every instruction set equal the reference", "[kernels]") {
  check_all({Family::bf16, {PackedForm::bf16}, 1});
  check_all({Family::bf16, kBlocks32, 32});
  check_all({Family::bf16, {PackedForm::block256_4, PackedForm::block256_5, PackedForm::block256_6}, 256});
}

TEST_CASE("products by kept blocks of every instruction set equal the reference", "[kernels]") {
  for (const std::size_t block : {32, 64, 256}) {
    const auto forms = kept_forms(block);
    REQUIRE(!forms.empty());
    check_all({Family::int8, forms, block});
    check_all({Family::bf16, forms, block});
  }
}

TEST_CASE("F16 in three bf16 products of every instruction set equals the reference", "[kernels]") {
  check_all({Family::bf16x3, {PackedForm::f16}, 1});
}

TEST_CASE("products of pairs of bf16 equal the reference on every instruction set that has them", "[kernels]") {
  for (const Table& table : tables()) {
    const bool has = table.kernels.product(Family::bf16_pairs, PackedForm::bf16).few.run != nullptr;
    if (table.set == "avx512_vnni" && !has) WARN("VDPBF16PS is not as written here: no kernel of pairs is tested");
    if (table.set != "avx512_vnni") CHECK_FALSE(has);
  }
  check_all({Family::bf16_pairs, {PackedForm::bf16}, 1});
}

TEST_CASE("prepared rows are the same on every instruction set", "[kernels]") {
  for (const std::size_t n : {std::size_t{256}, std::size_t{768}, std::size_t{2048}}) {
    auto x = random_rows(64, n, static_cast<std::uint32_t>(n));
    make_extreme(x, 3);
    for (const Table& table : tables()) {
      INFO(table.set << ", " << n << " inputs");
      for (std::size_t r = 0; r < 64; ++r) {
        const float* row = x.data() + r * n;
        for (const std::size_t block : {32, 256}) {
          const auto form = block == 32 ? cpu::InputForm::int8x32 : cpu::InputForm::int8x256;
          const auto layout = cpu::row_layout(form, n);
          AlignedBytes bytes(layout.bytes);
          table.kernels.preparation(form)(row, n, bytes.data(), 1);
          const Int8Row expected = quantised_row(row, n, block);
          REQUIRE(std::memcmp(bytes.data(), expected.q.data(), n) == 0);
          REQUIRE(same(reinterpret_cast<float*>(bytes.data() + layout.scales), expected.scale.data(), n / block));
          for (std::size_t i = 0; i < n / 32; ++i) {
            const std::byte* sums = bytes.data() + layout.sums;
            if (block == 32) {
              REQUIRE(reinterpret_cast<const std::int32_t*>(sums)[i] == sum_of(expected, 32 * i, 32));
              continue;
            }
            const auto* sums16 = reinterpret_cast<const std::int16_t*>(sums);
            REQUIRE(sums16[2 * i] == sum_of(expected, 32 * i, 16));
            REQUIRE(sums16[2 * i + 1] == sum_of(expected, 32 * i + 16, 16));
            const auto* parts = reinterpret_cast<const std::int8_t*>(bytes.data() + layout.parts) + i / 8 * 16 + i % 8;
            REQUIRE(parts[0] + 128 * parts[8] == sum_of(expected, 32 * i, 32));
            REQUIRE(parts[0] >= -64);
            REQUIRE(parts[0] < 64);
          }
        }
      }
    }
  }
}

TEST_CASE("prepared rows of bf16, of lengths that fill no vector", "[kernels]") {
  for (const std::size_t n : {1, 7, 16, 31, 32, 33, 63, 200}) {
    auto x = random_rows(200, n, static_cast<std::uint32_t>(n));
    make_extreme(x, static_cast<std::uint32_t>(n) + 1);
    for (const Table& table : tables()) {
      INFO(table.set << ", " << n << " inputs");
      for (std::size_t r = 0; r < 200; ++r) {
        const auto layout = cpu::row_layout(cpu::InputForm::bf16x2, n);
        AlignedBytes one(layout.low), two(layout.bytes);
        table.kernels.preparation(cpu::InputForm::bf16)(x.data() + r * n, n, one.data(), 1);
        table.kernels.preparation(cpu::InputForm::bf16x2)(x.data() + r * n, n, two.data(), 1);
        for (std::size_t i = 0; i < layout.low / 2; ++i) {
          const float value = i < n ? x[r * n + i] : 0;
          const float high = rounded_to_bf16(value), low = rounded_to_bf16(value - high);
          const auto at = [&](AlignedBytes& bytes, std::size_t from) {
            return bf16_to_f32(reinterpret_cast<const std::uint16_t*>(bytes.data() + from)[i]);
          };
          REQUIRE((same(&high, std::vector{at(one, 0)}.data(), 1) && same(&high, std::vector{at(two, 0)}.data(), 1)));
          REQUIRE(same(&low, std::vector{at(two, layout.low)}.data(), 1));
        }
      }
    }
  }
}

TEST_CASE("rows of a group are the rows by themselves, line by line", "[kernels]") {
  for (const std::size_t n : {1, 33, 96, 256, 1280}) {
    auto x = random_rows(9, n, static_cast<std::uint32_t>(n));
    make_extreme(x, 5);
    for (const Table& table : tables()) {
      for (std::size_t i = 0; i < cpu::kInputForms; ++i) {
        const auto form = static_cast<cpu::InputForm>(i);
        const bool whole = n % 32 == 0 && (form != cpu::InputForm::int8x256 || n % 256 == 0);
        const bool is_int8 = form == cpu::InputForm::int8x32 || form == cpu::InputForm::int8x256;
        if (form == cpu::InputForm::f32 || (is_int8 && !whole)) continue;
        const std::size_t bytes = cpu::row_layout(form, n).bytes, group = 4;
        AlignedBytes grouped(3 * group * bytes), alone(bytes);
        std::memset(grouped.data(), 0x5a, 3 * group * bytes);
        for (std::size_t r = 0; r < 9; ++r) {
          std::byte* to = grouped.data() + cpu::group_at(r, group, bytes);
          table.kernels.preparation(form)(x.data() + r * n, n, to, group);
        }
        INFO(table.set << ", form " << i << ", " << n << " inputs");
        for (std::size_t r = 0; r < 9; ++r) {
          std::memset(alone.data(), 0x5a, bytes);
          table.kernels.preparation(form)(x.data() + r * n, n, alone.data(), 1);
          for (std::size_t at = 0; at < bytes; at += 64) {
            const std::byte* line = grouped.data() + cpu::group_at(r, group, bytes) + cpu::in_group(at, group);
            REQUIRE(std::memcmp(line, alone.data() + at, 64) == 0);
          }
        }
        for (std::size_t r = 9; r < 3 * group; ++r) {  // nobody's
          for (std::size_t at = 0; at < bytes; ++at) {
            REQUIRE(grouped.data()[cpu::group_at(r, group, bytes) + cpu::in_group(at, group)] == std::byte{0x5a});
          }
        }
      }
    }
  }
}

TEST_CASE("rows are cut into groups and tasks that hold them all", "[kernels]") {
  for (const std::size_t tile_rows : {1, 14, 16}) {
    for (const std::size_t most : {1, 2, 8, 15, 16, 96, 256, 512, 518}) {
      if (most < tile_rows) continue;
      const cpu::Linear kernel{.max_rows = most, .tile_rows = tile_rows};
      for (std::size_t rows = 1; rows <= 2000; ++rows) {
        const cpu::RowCut cut(kernel, rows);
        CAPTURE(tile_rows, most, rows, cut.group, cut.task);
        REQUIRE(cut.group >= 1);
        REQUIRE(cut.group <= tile_rows);
        REQUIRE((rows + cut.group - 1) / cut.group == (rows + tile_rows - 1) / tile_rows);  // no more groups than need be
        REQUIRE(cut.task % cut.group == 0);
        REQUIRE(cut.task >= 1);
        REQUIRE(cut.task <= most);
      }
    }
  }
}

}  // namespace test_linear_kernels
