// The kernels of an instruction set, as a table of functions (Kernels). The backend calls them without knowing the set. The kernels'
// sources are in src/cpu/kernels, compiled once for each set. The kernels share with other code only this header and the headers that it
// includes, which have only constants and plain structs. The reason: a function that both included could be compiled with AVX-512, for
// example, and then be called on a machine without AVX-512.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/attention/attention_job.hpp"
#include "cpu/products/packed_layout.hpp"
#include "cpu/products/prepared_rows.hpp"

namespace tessera::cpu {

// The arithmetic of a matrix product (docs/reference/numerics.md).
enum class Family : std::uint8_t { reference, f32, int8, bf16, bf16x3, bf16_pairs, count };
inline constexpr std::size_t kFamilies = static_cast<std::size_t>(Family::count);

// For Numerics::fastest on machines with tiles: from this many rows on, products in bf16 are faster than products of exact integers.
inline constexpr std::size_t kFastestRows = 64;

// From this many rows of a task on, outputs are stored past the caches. Exception: kernels that stream weights.
inline constexpr std::size_t kRowsPastCaches = 64;

// How kernels for few rows prefetch weights, which they read from memory once each: how far ahead, and which cache lines.
struct Ahead {
  std::size_t bytes = 3072;  // distance from the weights that are read to the weights that are prefetched
  bool all_lines = true;     // false: prefetches only the first line of each step, and only of steps of at least four lines
};

// The arguments of one task of a product: some panels of outputs for some rows.
struct LinearJob {
  const std::byte* weights = nullptr;  // weights of the first panel
  std::size_t panel_bytes = 0;         // bytes from panel to panel
  std::size_t panels = 0;
  std::size_t inputs = 0;              // k
  std::size_t outputs = 0;             // outputs to write, from the first panel's first output on; fewer than the panels have at the matrix's end
  const std::byte* x = nullptr;        // prepared rows of x_stride bytes each, in groups of `group` rows; begins with a whole group
  std::size_t x_stride = 0;
  std::size_t group = 1;
  std::size_t rows = 0;                // rows, panels and inputs: at least 1
  float* out = nullptr;                // [rows][out_stride], at the first panel's first output
  std::size_t out_stride = 0;          // floats
  std::byte* scratch = nullptr;        // the kernel's scratch_bytes, aligned to 64
  Ahead ahead = {};

  // Returns whether to write outputs past the caches (non-temporal stores), with a fence before the job ends. true for many rows: their
  // outputs would be evicted from the caches before they are read, and a normal store that misses the caches waits tens of ns for its
  // cache line. This waiting was a fifth of the time of a product in 8-bit tiles, and a third in bf16. false for few rows, whose outputs
  // stay in the caches, or if `out` is not aligned for these stores.
  [[nodiscard, gnu::always_inline]] bool past_caches() const noexcept {
    return rows >= kRowsPastCaches && reinterpret_cast<std::uintptr_t>(out) % 64 == 0 && out_stride % 16 == 0;
  }
};

using LinearFn = void (*)(const LinearJob& job) noexcept;

// A kernel and the task sizes that suit it. Results do not depend on the sizes.
struct Linear {
  LinearFn run = nullptr;
  const char* name = "";          // for explain()
  std::size_t max_rows = 0;       // the most rows of a task
  std::size_t panels = 1;         // the fewest panels of a task, if the product has that many
  std::size_t scratch_bytes = 0;
  std::size_t tile_rows = 1;      // the most rows of a group (prepared_rows.hpp)
};

// Cuts rows into tasks of about equal size, and the rows of a task into groups. `task`: rows of a task, a whole number of groups.
// `group`: rows of a group (prepared_rows.hpp); only the last group of all may have fewer.
struct RowCut {
  std::size_t group, task;

  [[gnu::always_inline]] RowCut(const Linear& kernel, std::size_t rows) noexcept {
    group = divide_up(rows, divide_up(rows, kernel.tile_rows));
    const std::size_t unit = kernel.tile_rows > 1 ? group : kernel.max_rows < 16 ? 1 : 16;
    const std::size_t most = kernel.max_rows / unit * unit;
    task = divide_up(divide_up(rows, divide_up(rows, most)), unit) * unit;
  }

 private:
  [[gnu::always_inline]] static constexpr std::size_t divide_up(std::size_t n, std::size_t by) noexcept {
    return (n + by - 1) / by;
  }
};

// The kernels of a family for a packed form. `few` is for few rows: it reads weights directly from memory, as they are packed. `many` is
// for `many_from` rows and more, and may unpack the weights first. If there is no `many`, `few` is used for any number of rows.
struct LinearPair {
  Linear few, many;
  std::size_t many_from = SIZE_MAX;  // rows

  [[nodiscard]] const Linear& of(std::size_t rows) const noexcept { return rows < many_from ? few : many; }
};

// Writes one row of `n` activations as a prepared row (prepared_rows.hpp), in a group of `group` rows (in form f32: 1). `out` is aligned to
// 64 bytes.
using PrepareFn = void (*)(const float* x, std::size_t n, std::byte* out, std::size_t group) noexcept;

// Operations that are neither products nor attention, on a row or a head at a time. Every instruction set does the same arithmetic in the
// same order (docs/reference/numerics.md). `out` may be the input.
struct Elementwise {
  void (*rms_norm)(const float* x, const float* weight, float eps, std::size_t n, float* out) noexcept = nullptr;
  void (*layer_norm)(const float* x, const float* weight, const float* bias, float eps, std::size_t n,
                     float* out) noexcept = nullptr;
  void (*rope)(const float* factors, std::size_t n_pairs, bool interleaved, float* head) noexcept = nullptr;  // cpu/attention/rope.hpp
  // Index: backend::ActivationKind.
  void (*activate[7])(const float* x, std::size_t n, float* out) noexcept = {};
  void (*activate_gated[7])(const float* gate, const float* up, std::size_t n, float* out) noexcept = {};  // act(gate) * up
  void (*add)(const float* x, std::size_t n, float* out) noexcept = nullptr;             // out += x
  void (*multiply)(const float* x, std::size_t n, float* out) noexcept = nullptr;        // out *= x
  // out = scale * x / sqrt(sum(x^2) + eps).
  void (*l2_norm)(const float* x, float eps, float scale, std::size_t n, float* out) noexcept = nullptr;
};

// The arguments for some columns of one row of a convolution.
struct ConvolutionJob {
  const float* const* inputs = nullptr;  // [width]: the columns of the rows that the row sees, its own last
  const float* weight = nullptr;         // weights from the first column on, [width][stride]
  std::size_t stride = 0;                // floats
  const float* bias = nullptr;           // nullptr: none
  float* out = nullptr;                  // may be an input
  std::size_t width = 0, n = 0;
  bool silu = false;
};

// The arguments for one row and one stripe of a head's state: up to 16 of its values, with all its keys (backend/recurrent_state.hpp).
struct StateJob {
  const float* before = nullptr;  // [keys][16]
  float* after = nullptr;         // may be `before`
  const float *key = nullptr, *query = nullptr;  // [keys]
  const float* value = nullptr;                  // [n]
  float* out = nullptr;                          // [n]
  std::size_t keys = 0, n = 0;
  float decay = 0.0f, rate = 0.0f;  // factors of the old state and of the addition to it
  float skip = 0.0f;                // scan: factor of the value in the output
};
using StateFn = void (*)(const StateJob& job) noexcept;

struct RecurrentKernels {
  void (*convolve)(const ConvolutionJob& job) noexcept = nullptr;
  StateFn delta_rule = nullptr, scan = nullptr;
};

// The layout of the matrices A and B of an adapter's change (backend/low_rank.hpp), which kernels read from front to back. A is stored in
// blocks of kLowRankBlock rows, whose vectors alternate: [inputs / kLowRankVector][kLowRankBlock][kLowRankVector]; the inputs and the
// rows are filled up with zeros. B is stored in panels: a panel has the columns of B for kLowRankPanel outputs, one column after another:
// [rank][kLowRankPanel].
inline constexpr std::size_t kLowRankBlock = 4, kLowRankPanel = 64, kLowRankVector = 16;

// The arguments of t = scale * A x, for some rows of A and some rows x.
struct LowRankDown {
  const std::byte* a = nullptr;        // whole blocks
  std::size_t block_bytes = 0;
  std::size_t ranks = 0;               // rows of A
  std::size_t inputs = 0;
  const float* x = nullptr;            // [][x_stride]
  std::size_t x_stride = 0;            // floats
  const std::uint32_t* rows = nullptr;  // the rows of x
  std::size_t n_rows = 0;
  float scale = 1.0f;
  float* t = nullptr;                  // [n_rows][t_stride]
  std::size_t t_stride = 0;
};

// The arguments of out = factors * (out + B t), for some panels of B, one after another, and some rows.
struct LowRankUp {
  const std::byte* b = nullptr;        // the first panel
  std::size_t rank = 0;
  std::size_t outputs = 0;             // outputs to write; the last panel may have fewer than kLowRankPanel
  const float* t = nullptr;            // [n_rows][t_stride]
  std::size_t t_stride = 0;
  const std::uint32_t* rows = nullptr;  // the rows of out
  std::size_t n_rows = 0;
  const float* factors = nullptr;      // [outputs]; nullptr: all are 1
  float* out = nullptr;                // [][out_stride]; the first panel's first output
  std::size_t out_stride = 0;          // floats
};

// Index: the type of A and B, as LowRankType says.
enum class LowRankType : std::uint8_t { f32, f16, bf16 };
struct LowRankKernels {
  void (*down[3])(const LowRankDown& job) noexcept = {};
  void (*up[3])(const LowRankUp& job) noexcept = {};
};

struct Kernels {
  Elementwise elementwise;
  LowRankKernels low_rank;
  RecurrentKernels recurrent;
  LinearPair linear[kFamilies][formats::kPackedForms] = {};
  PrepareFn prepare[kInputForms] = {};
  Attend attention[kFamilies][kKvTypes] = {};
  bool has_tiles = false;
  // How far ahead kernels for few rows prefetch weights on this CPU. Other kernels, whose products take longer than reading their
  // weights, do not use it: they prefetch the weights that they multiply next (kernels/products/upcoming.hpp).
  Ahead ahead = {};
  bool two_wide_products = false;  // this CPU computes two 512-bit products a cycle, so unpacking is a larger share of the time

  [[nodiscard, gnu::always_inline]] const LinearPair& product(Family family, PackedForm form) const noexcept {
    return linear[static_cast<std::size_t>(family)][static_cast<std::size_t>(form)];
  }
  [[nodiscard, gnu::always_inline]] LinearPair& product(Family family, PackedForm form) noexcept {
    return linear[static_cast<std::size_t>(family)][static_cast<std::size_t>(form)];
  }
  [[nodiscard, gnu::always_inline]] Attend& attend(Family family, KvType type) noexcept {
    return attention[static_cast<std::size_t>(family)][static_cast<std::size_t>(type)];
  }
  [[nodiscard, gnu::always_inline]] const Attend& attend(Family family, KvType type) const noexcept {
    return attention[static_cast<std::size_t>(family)][static_cast<std::size_t>(type)];
  }
  [[nodiscard]] PrepareFn preparation(InputForm form) const noexcept { return prepare[static_cast<std::size_t>(form)]; }
};

// Returns the form of the activations that a product of `family` reads.
[[nodiscard]] constexpr InputForm input_form(Family family, PackedForm form) noexcept {
  switch (family) {
    case Family::reference:
    case Family::f32:
    case Family::count: break;
    case Family::int8: return form_layout(form).block_values == 256 ? InputForm::int8x256 : InputForm::int8x32;
    case Family::bf16:
    case Family::bf16_pairs: return InputForm::bf16;
    case Family::bf16x3: return InputForm::bf16x2;
  }
  return InputForm::f32;
}

}  // namespace tessera::cpu
