// The products by tiles equal the scalar arithmetic of their family (docs/numerics.md) bit for bit, for every packed
// form, number of rows and shape, at the edges of tiles, panels, blocks and memory.
#include <sys/mman.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "catch.hpp"
#include "cpu/kernels.hpp"
#include "cpu/tile_emulator.hpp"
#include "sanitized.hpp"
#include "support/float16.hpp"

namespace tessera::cpu::amx {
void add_kernels(Kernels& kernels) noexcept;
}

using namespace tessera;
using namespace tessera::cpu;

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

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

float half(const std::byte* at) { return f16_to_f32(load<std::uint16_t>(at)); }

// ---- Packed weights, random, and what they say ----

void fill_weights(PackedForm form, std::size_t inputs, std::size_t panels, std::mt19937& random, std::byte* to) {
  const FormLayout layout = form_layout(form);
  const std::size_t tiles = panels * (panel_bytes(form, inputs) / layout.tile_bytes);
  std::normal_distribution<float> normal(0.0f, 0.05f);
  for (std::size_t tile = 0; tile < tiles; ++tile, to += layout.tile_bytes) {
    if (layout.bits == 0) {
      const std::size_t k = tile % (tiles / panels) * 32;
      const bool pairs = form == PackedForm::bf16;
      for (std::size_t i = 0; i < layout.tile_bytes / 2; ++i) {
        const float value = k + (pairs ? i / 32 * 2 + i % 2 : i / 32) < inputs ? normal(random) : 0.0f;
        store(to + 2 * i, pairs ? f32_to_bf16(value) : f32_to_f16(value));
      }
      continue;
    }
    for (std::size_t i = 0; i < layout.tile_bytes; ++i) to[i] = static_cast<std::byte>(random());
    for (std::size_t n = 0; n < 16; ++n) {
      store(to + layout.d_at + 2 * n, f32_to_f16(normal(random)));
      if (layout.has_min) store(to + layout.min_at + 2 * n, f32_to_f16(normal(random)));
    }
  }
}

// Integer k of output n of a panel, as stored.
int quant(PackedForm form, const std::byte* panel, std::size_t k, std::size_t n) {
  const FormLayout layout = form_layout(form);
  const std::byte* tile = panel + k / layout.block_values * layout.tile_bytes;
  k %= layout.block_values;
  const std::size_t g = k / 4, j = k % 4, lane = 4 * n + j;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned>(tile[at]); };
  if (layout.bits == 8) return static_cast<int>(byte(g * 64 + lane));
  unsigned q = 0;
  if (layout.block_values == 32) {
    q = byte(layout.low(0, g % 4) + lane) >> (g / 4 * 4) & 15;
  } else {
    q = byte(layout.low(g / 16, g % 8) + lane) >> (g % 16 / 8 * 4) & 15;
  }
  if (layout.bits == 5) {
    q |= static_cast<unsigned>(load<std::uint64_t>(tile + layout.more(g / 16, g % 16)) >> lane & 1) << 4;
  }
  if (layout.bits == 6) {
    const std::size_t v = g % 8, shift = (g % 2 * 2 + g % 16 / 8) * 2;
    q |= (byte(layout.more(g / 16, v) + lane) >> shift & 3) << 4;
  }
  return static_cast<int>(q);
}

// Scale and minimum of sub-block j of output n in a tile of 256.
struct SubScale {
  int scale, min;
};

SubScale sub_scale(PackedForm form, const std::byte* tile, std::size_t j, std::size_t n) {
  const FormLayout layout = form_layout(form);
  const auto byte = [&](std::size_t i) {
    return static_cast<unsigned>(tile[layout.scales_at + i / 4 * 64 + 4 * n + i % 4]);
  };
  if (layout.bits == 6) return {static_cast<std::int8_t>(byte(j)), 0};
  if (j < 4) return {static_cast<int>(byte(j) & 63), static_cast<int>(byte(j + 4) & 63)};
  return {static_cast<int>((byte(j + 4) & 15) | (byte(j - 4) >> 6 << 4)),
          static_cast<int>((byte(j + 4) >> 4) | (byte(j) >> 6 << 4))};
}

// ---- Activations, random ----

void fill_row(InputForm form, std::size_t inputs, std::mt19937& random, std::byte* to) {
  const RowLayout layout = row_layout(form, inputs);
  std::normal_distribution<float> normal;
  if (form == InputForm::bf16 || form == InputForm::bf16x2) {
    for (std::size_t k = 0; k < inputs; ++k) {
      const float value = normal(random);
      const std::uint16_t high = f32_to_bf16(value);
      store(to + 2 * k, high);
      if (form == InputForm::bf16x2) store(to + layout.low + 2 * k, f32_to_bf16(value - bf16_to_f32(high)));
    }
    return;
  }
  for (std::size_t k = 0; k < inputs; ++k) to[k] = static_cast<std::byte>(static_cast<int>(random() % 255) - 127);
  const auto sum = [&](std::size_t begin, std::size_t size) {
    int total = 0;
    for (std::size_t i = 0; i < size; ++i) total += static_cast<std::int8_t>(to[begin + i]);
    return total;
  };
  const std::size_t block = form == InputForm::int8x32 ? 32 : 256;
  for (std::size_t b = 0; b < inputs / block; ++b) {
    store(to + layout.scales + 4 * b, std::fabs(normal(random)) * 0.02f);
    if (form == InputForm::int8x32) {
      store(to + layout.sums + 4 * b, sum(32 * b, 32));
      continue;
    }
    for (std::size_t i = 0; i < 16; ++i) {
      store(to + layout.sums + 2 * (16 * b + i), static_cast<std::int16_t>(sum(256 * b + 16 * i, 16)));
    }
    for (std::size_t i = 0; i < 8; ++i) {
      const int total = sum(256 * b + 32 * i, 32), low = ((total + 64) & 127) - 64;
      to[layout.parts + 16 * b + i] = static_cast<std::byte>(low);
      to[layout.parts + 16 * b + 8 + i] = static_cast<std::byte>((total - low) / 128);
    }
  }
}

// ---- The families, one value at a time ----

float int8_block32(PackedForm form, const std::byte* panel, std::size_t n, const std::byte* x, std::size_t inputs) {
  const FormLayout layout = form_layout(form);
  const RowLayout row = row_layout(InputForm::int8x32, inputs);
  float acc = 0.0f;
  for (std::size_t b = 0; b < inputs / 32; ++b) {
    const std::byte* tile = panel + b * layout.tile_bytes;
    std::int32_t dot = 0;
    for (std::size_t k = 32 * b; k < 32 * b + 32; ++k) {
      dot += (quant(form, panel, k, n) - layout.offset) * static_cast<std::int8_t>(x[k]);
    }
    const float scale = load<float>(x + row.scales + 4 * b);
    const float product = half(tile + layout.d_at + 2 * n) * scale;
    acc = std::fma(static_cast<float>(dot), product, acc);
    if (layout.has_min) {
      const float m = half(tile + layout.min_at + 2 * n) * scale;
      acc = std::fma(static_cast<float>(load<std::int32_t>(x + row.sums + 4 * b)), m, acc);
    }
  }
  return acc;
}

float int8_block256(PackedForm form, const std::byte* panel, std::size_t n, const std::byte* x, std::size_t inputs) {
  const FormLayout layout = form_layout(form);
  const RowLayout row = row_layout(InputForm::int8x256, inputs);
  const std::size_t size = layout.bits == 6 ? 16 : 32;
  float acc = 0.0f;
  for (std::size_t b = 0; b < inputs / 256; ++b) {
    const std::byte* tile = panel + b * layout.tile_bytes;
    std::int32_t dots = 0, mins = 0;
    for (std::size_t j = 0; j < 256 / size; ++j) {
      const SubScale sub = sub_scale(form, tile, j, n);
      std::int32_t dot = 0, sum = 0;
      for (std::size_t k = 256 * b + size * j; k < 256 * b + size * (j + 1); ++k) {
        const auto q = static_cast<std::int8_t>(x[k]);
        dot += (quant(form, panel, k, n) - layout.offset) * q;
        sum += q;
      }
      dots += sub.scale * dot;
      mins += sub.min * sum;
    }
    const float scale = load<float>(x + row.scales + 4 * b), d = half(tile + layout.d_at + 2 * n) * scale;
    acc = std::fma(static_cast<float>(dots), d, acc);
    if (layout.has_min) {
      const float dmin = half(tile + layout.min_at + 2 * n) * scale;
      acc = std::fma(static_cast<float>(-mins), dmin, acc);
    }
  }
  return acc;
}

float flush(float value) { return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value; }

std::uint16_t rounded(float value) { return f32_to_bf16(flush(value)); }

// A weight as its format decodes it.
float weight(PackedForm form, const std::byte* panel, std::size_t k, std::size_t n) {
  const FormLayout layout = form_layout(form);
  const std::byte* tile = panel + k / layout.block_values * layout.tile_bytes;
  if (layout.bits == 0) {
    const std::size_t i = k % 32;
    if (form == PackedForm::f16) return half(tile + i * 64 + n * 2);
    return bf16_to_f32(load<std::uint16_t>(tile + i / 2 * 64 + n * 4 + i % 2 * 2));
  }
  const float d = half(tile + layout.d_at + 2 * n);
  const auto q = static_cast<float>(quant(form, panel, k, n) - layout.offset);
  const float m = layout.has_min ? half(tile + layout.min_at + 2 * n) : 0.0f;
  if (layout.block_values == 32) return layout.has_min ? d * q + m : d * q;
  const SubScale sub = sub_scale(form, tile, k % 256 / (layout.bits == 6 ? 16 : 32), n);
  const float product = d * static_cast<float>(sub.scale) * q;
  return layout.has_min ? product - m * static_cast<float>(sub.min) : product;
}

// One step of 32 k as the tile unit has it: even and odd k apart, denormals flushed.
float bf16_step(const float* x, const float* w, float acc) {
  float sums[2] = {};
  for (std::size_t k = 0; k < 32; ++k) sums[k % 2] = flush(std::fma(flush(x[k]), flush(w[k]), sums[k % 2]));
  return flush(acc + flush(sums[0] + sums[1]));
}

float bf16(Family family, PackedForm form, const std::byte* panel, std::size_t n, const std::byte* x,
           std::size_t inputs) {
  const std::size_t low = row_layout(InputForm::bf16x2, inputs).low;
  float acc = 0.0f;
  for (std::size_t begin = 0; begin < inputs; begin += 32) {
    float x_high[32] = {}, x_low[32] = {}, w_high[32] = {}, w_low[32] = {};
    for (std::size_t k = begin; k < std::min(inputs, begin + 32); ++k) {
      const std::size_t i = k - begin;
      const float w = weight(form, panel, k, n);
      w_high[i] = bf16_to_f32(form == PackedForm::bf16 ? f32_to_bf16(w) : rounded(w));
      x_high[i] = bf16_to_f32(load<std::uint16_t>(x + 2 * k));
      if (family != Family::bf16x3) continue;
      w_low[i] = bf16_to_f32(rounded(w - w_high[i]));
      x_low[i] = bf16_to_f32(load<std::uint16_t>(x + low + 2 * k));
    }
    if (family == Family::bf16x3) {
      acc = bf16_step(x_low, w_high, acc);
      acc = bf16_step(x_high, w_low, acc);
    }
    acc = bf16_step(x_high, w_high, acc);
  }
  return acc;
}

float expected(Family family, PackedForm form, const std::byte* panel, std::size_t n, const std::byte* x,
               std::size_t inputs) {
  if (family != Family::int8) return bf16(family, form, panel, n, x, inputs);
  const bool superblocks = form_layout(form).block_values == 256;
  return (superblocks ? int8_block256 : int8_block32)(form, panel, n, x, inputs);
}

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

  void compute() {
    expected_.resize(rows_ * what_.outputs);
    for (std::size_t r = 0; r < rows_; ++r) {
      for (std::size_t o = 0; o < what_.outputs; ++o) {
        expected_[r * what_.outputs + o] =
            expected(what_.family, what_.form, weights_.data() + o / width_ * panel_bytes_, o % width_,
                     x_.data() + r * row_bytes_, what_.inputs);
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
