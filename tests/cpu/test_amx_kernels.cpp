// The products by tiles equal the scalar arithmetic of their family (docs/reference/numerics.md) bit for bit, for every packed
// form, number of rows and shape, at the edges of tiles, panels, blocks and memory.
#include <sys/mman.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "catch.hpp"
#include "core/float16.hpp"
#include "cpu/kernels.hpp"
#include "cpu/tile_emulator.hpp"
#include "cpu/tile_families.hpp"
#include "sanitized.hpp"

namespace tessera::cpu::amx {
void add_kernels(Kernels& kernels) noexcept;
}

using namespace tessera;
using namespace tessera::cpu;
using namespace tessera::cpu::tile_families;

namespace {

bool have_tiles() {
  const test::TileUnit unit = test::tile_unit();
  if (unit == test::TileUnit::none) tests::skip("the system refuses tiles, this build has no kernels of them, or this CPU lacks more than those of what they use");
  return unit != test::TileUnit::none;
}

const Kernels& table() {
  static const Kernels kernels = [] {
    Kernels made;
    amx::add_kernels(made);
    return made;
  }();
  return kernels;
}

// Memory whose last byte lies before a page that must not be touched, filled with `fill`.
class Fenced {
 public:
  explicit Fenced(std::size_t bytes, int fill = 0) : bytes_(bytes) {
    const std::size_t page = 4096, pages = (bytes + page - 1) / page;
    all_ = (pages + 1) * page;
    base_ = static_cast<std::byte*>(mmap(nullptr, all_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(base_ != MAP_FAILED);
    mprotect(base_ + pages * page, page, PROT_NONE);
    at_ = base_ + pages * page - bytes;
    std::memset(at_, fill, bytes);
  }
  ~Fenced() { munmap(base_, all_); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  std::byte* data() const { return at_; }
  std::size_t size() const { return bytes_; }

 private:
  std::size_t bytes_, all_ = 0;
  std::byte *base_ = nullptr, *at_ = nullptr;
};

// ---- Comparisons ----

struct Case {
  Family family;
  PackedForm form;
  std::size_t inputs, outputs;
};

bool same_bits(float a, float b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

// Rows of a case with their expected outputs: computed once for the most rows, as rows do not depend on each other.
class Product {
 public:
  Product(const Case& what, std::size_t rows, std::uint32_t seed)
      : what_(what),
        width_(panel_outputs(what.form)),
        panels_((what.outputs + width_ - 1) / width_),
        panel_bytes_(panel_bytes(what.form, what.inputs)),
        input_(input_form(what.family, what.form)),
        row_bytes_(row_layout(input_, what.inputs).bytes),
        weights_(panels_ * panel_bytes_),
        x_(rows * row_bytes_),
        rows_(rows) {
    std::mt19937 random(seed);
    fill_weights(what.form, what.inputs, panels_, random, weights_.data());
    for (std::size_t r = 0; r < rows; ++r) fill_row(input_, what.inputs, random, x_.data() + r * row_bytes_);
  }

  std::byte* weights() { return weights_.data(); }
  std::byte* x() { return x_.data(); }
  // Expects these outputs  [rows, outputs], instead of the scalar code's.
  void expect(std::vector<float> outputs) { expected_ = std::move(outputs); }

  void compute() {
    expected_.resize(rows_ * what_.outputs);
    for (std::size_t panel = 0; panel < panels_; ++panel) {
      const Panel product(what_.family, what_.form, weights_.data() + panel * panel_bytes_, what_.inputs);
      for (std::size_t r = 0; r < rows_; ++r) {
        for (std::size_t o = panel * width_; o < std::min((panel + 1) * width_, what_.outputs); ++o) {
          expected_[r * what_.outputs + o] = product(o % width_, x_.data() + r * row_bytes_);
        }
      }
    }
  }

  // The last `rows` rows, in groups: whatever is read past these faults. What is in a group beyond its rows is NaN.
  // Outputs begin in the middle of cache lines, then with them: then they may be streamed.
  void check(const Linear& linear, std::size_t rows) {
    if (expected_.empty()) compute();
    check(linear, rows, what_.outputs + 3, 1);
    check(linear, rows, (what_.outputs + 3 + 15) / 16 * 16, 0);
  }

 private:
  void check(const Linear& linear, std::size_t rows, std::size_t stride, std::size_t offset) const {
    const std::size_t first = rows_ - rows;
    std::vector<float> buffer(rows * stride + 17, 7.0f);
    float* const out = buffer.data() + offset + (64 - reinterpret_cast<std::uintptr_t>(buffer.data()) % 64) % 64 / 4;
    std::vector<std::byte> scratch(linear.scratch_bytes + 64, std::byte{0xff});  // NaN if read before it is written
    const RowCut cut(linear, rows);
    const Fenced x((rows + cut.group - 1) / cut.group * cut.group * row_bytes_, 0xff);
    for (std::size_t r = 0; r < rows; ++r) {
      std::byte* to = x.data() + group_at(r, cut.group, row_bytes_);
      for (std::size_t at = 0; at < row_bytes_; at += 64) {
        std::memcpy(to + in_group(at, cut.group), x_.data() + (first + r) * row_bytes_ + at, 64);
      }
    }
    for (std::size_t begin = 0; begin < rows; begin += cut.task) {
      LinearJob job;
      job.weights = weights_.data();
      job.panel_bytes = panel_bytes_;
      job.panels = panels_;
      job.inputs = what_.inputs;
      job.outputs = what_.outputs;
      job.x = x.data() + begin * row_bytes_;
      job.x_stride = row_bytes_;
      job.group = cut.group;
      job.rows = std::min(rows - begin, cut.task);
      job.out = out + begin * stride;
      job.out_stride = stride;
      job.scratch = scratch.data() + (64 - reinterpret_cast<std::uintptr_t>(scratch.data()) % 64) % 64;
      linear.run(job);
    }
    std::size_t wrong = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t o = 0; o < stride; ++o) {
        const float want = o < what_.outputs ? expected_[(first + r) * what_.outputs + o] : 7.0f;
        if (!same_bits(out[r * stride + o], want) && wrong++ == 0) {
          UNSCOPED_INFO("row " << r << " of " << rows << ", output " << o << ": " << out[r * stride + o] << ", not "
                               << want);
        }
      }
    }
    INFO("family " << static_cast<int>(what_.family) << ", form " << static_cast<int>(what_.form) << ", k "
                   << what_.inputs << ", outputs " << what_.outputs);
    CHECK(wrong == 0);
  }

  Case what_;
  std::size_t width_, panels_, panel_bytes_;
  InputForm input_;
  std::size_t row_bytes_;
  Fenced weights_, x_;
  std::size_t rows_;
  std::vector<float> expected_;
};

// Every product of the table.
template <class Body>
void for_each_product(Body body) {
  for (std::size_t family = 0; family < kFamilies; ++family) {
    for (std::size_t form = 0; form < formats::kPackedForms; ++form) {
      const LinearPair& pair = table().linear[family][form];
      for (const Linear* linear : {&pair.few, &pair.many}) {
        if (linear->run) body(static_cast<Family>(family), static_cast<PackedForm>(form), *linear);
      }
    }
  }
}

std::size_t block_of(PackedForm form) { return form_layout(form).block_values == 256 ? 256 : 32; }

}  // namespace

TEST_CASE("four numbers in, four out: a product of a matrix and a row by tiles") {
  if (!have_tiles()) return;
  const float weights[4][4] = {{1, 0, 0, 0},   // x0
                               {0, 1, 0, 0},   // x1
                               {1, 1, 1, 1},   // the sum
                               {0, 2, 0, -1}};  // 2 x1 - x3
  const float x[] = {1, 2, 3, 4};
  Product product({Family::bf16, PackedForm::bf16, 4, 4}, 1, 1);
  for (std::size_t k = 0; k < 4; ++k) {
    store(product.x() + 2 * k, f32_to_bf16(x[k]));
    for (std::size_t o = 0; o < 4; ++o) store(product.weights() + 2 * (k / 2 * 32 + o * 2 + k % 2), f32_to_bf16(weights[o][k]));
  }
  product.expect({1, 2, 10, 0});
  const LinearPair& pair = table().product(Family::bf16, PackedForm::bf16);
  for (const Linear* linear : {&pair.few, &pair.many}) {
    if (linear->run) product.check(*linear, 1);
  }
}

TEST_CASE("tiles equal the scalar family for every number of rows") {
  if (!have_tiles()) return;
  for_each_product([](Family family, PackedForm form, const Linear& linear) {
    Product product({family, form, 2 * block_of(form), 56}, 80, 1);
    for (std::size_t rows = 1; rows <= 80; rows += tests::kSanitized ? 13 : 1) product.check(linear, rows);
  });
}

TEST_CASE("tiles equal the scalar family for many rows") {
  if (!have_tiles()) return;
  for_each_product([](Family family, PackedForm form, const Linear& linear) {
    Product product({family, form, 2 * block_of(form), 16}, 600, 2);
    for (const std::size_t rows : {127u, 255u, 256u, 257u, 300u, 511u, 512u, 513u, 600u}) product.check(linear, rows);
  });
}

TEST_CASE("tiles equal the scalar family for every length and number of outputs") {
  if (!have_tiles()) return;
  for_each_product([](Family family, PackedForm form, const Linear& linear) {
    for (const std::size_t blocks : {1u, 2u, 3u, 5u, 16u, 17u, 31u, 33u, 49u, 64u, 176u}) {
      if (tests::kSanitized && blocks > 49) continue;
      const std::size_t inputs = blocks * 32;
      if (inputs % block_of(form) != 0) continue;
      Product product({family, form, inputs, 33}, 19, 3);
      for (const std::size_t rows : {1u, 4u, 9u, 16u, 19u}) product.check(linear, rows);
    }
    for (std::size_t outputs = 1; outputs <= 70; outputs += tests::kSanitized ? 7 : outputs < 34 ? 1 : 9) {
      Product({family, form, block_of(form), outputs}, 10, 4).check(linear, 10);
    }
  });
}

TEST_CASE("tiles equal the scalar family where K is not whole tiles") {
  if (!have_tiles()) return;
  for_each_product([](Family family, PackedForm form, const Linear& linear) {
    if (is_quantised(form)) return;
    for (const std::size_t inputs : {1u, 2u, 31u, 33u, 100u, 545u}) {
      Product product({family, form, inputs, 35}, 18, 8);
      for (const std::size_t rows : {1u, 3u, 16u, 18u}) product.check(linear, rows);
    }
  });
}

TEST_CASE("tiles equal the scalar family over several spans of K") {
  if (!have_tiles()) return;
  for_each_product([](Family family, PackedForm form, const Linear& linear) {
    const std::size_t rows = tests::kSanitized ? 30 : 140;  // the scalar code is what takes long
    Product({family, form, 5632, 20}, rows, 5).check(linear, rows);
    Product({family, form, 16384 + 512, 8}, 12, 6).check(linear, 12);
  });
}

TEST_CASE("tiles of bf16 equal the scalar family over spans of K for more panels than have sums at once") {
  if (!have_tiles()) return;
  const std::size_t rows = tests::kSanitized ? 40 : 256;
  Product({Family::bf16, PackedForm::bf16, 2592, 530}, rows, 9).check(table().product(Family::bf16, PackedForm::bf16).many, rows);
  Product({Family::bf16x3, PackedForm::f16, 2592, 530}, rows, 9).check(table().product(Family::bf16x3, PackedForm::f16).many, rows);
}

TEST_CASE("int8 tiles equal the scalar family over spans of K for more panels than have sums at once") {
  if (!have_tiles()) return;
  for_each_product([](Family family, PackedForm form, const Linear& linear) {
    if (family != Family::int8) return;
    Product({family, form, 16384 + 512, 290}, 3, 10).check(linear, 3);
  });
}

TEST_CASE("a NaN scale spoils its row's outputs and no others") {
  if (!have_tiles()) return;
  for_each_product([](Family family, PackedForm form, const Linear& linear) {
    const std::size_t inputs = 4 * block_of(form);
    Product product({family, form, inputs, 40}, 21, 7);
    const InputForm input = input_form(family, form);
    const RowLayout layout = row_layout(input, inputs);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::byte* row = product.x() + 20 * layout.bytes;
    if (layout.scales != 0) {
      store(row + layout.scales + 4, nan);
    } else {
      store(row + 2, f32_to_bf16(nan));
    }
    product.check(linear, 21);
  });
}
