// The change that an adapter makes to the products of one matrix W (LoRA; Hu et al. 2021): W x becomes W x + scale * B (A x). The number of
// rows of A is the rank, which is small; B has the same number of columns. With lengths (DoRA; Liu et al. 2024) each output is then
// multiplied by a factor of its own, which gives the output's row of W + scale * B A the wanted length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <tessera/core/dtype.hpp>

namespace tessera::backend {

enum class Act : std::uint8_t;

inline constexpr std::uint32_t kMaxLowRank = 4096;

struct LowRankShape {
  std::uint64_t outputs = 0, inputs = 0;
  std::uint32_t rank = 0;
  DType dtype = DType::f32;               // type of A and B: F32, F16 or BF16
  std::uint64_t count = 1;                // matrices of the weight: heads of head_linear(), or experts
  std::uint64_t a_count = 1, b_count = 1;  // matrices in A and in B: `count`, or 1 if all matrices of the weight share it
  float scale = 1.0f;  // factor of B A, in addition to the scale with which a step uses the change
  bool has_lengths = false;
  // true: the change of a table. `inputs` is the number of the table's rows; row i becomes row i + scale * B (column i of A).
  bool is_table = false;
};

// The numbers of a change, as an adapter's file has them.
struct LowRankValues {
  std::span<const std::byte> a;  // [a_count, rank, inputs]; in tables [inputs, rank]
  std::span<const std::byte> b;  // [b_count, outputs, rank]
  // Only for a change with lengths (DoRA): one entry for each output of each matrix. It has the wanted length, and three dot products of
  // the output's rows of W and of B A. The length of the row of W + scale * B A can be computed from them for any scale, without W.
  struct Length {
    double wanted = 0.0;
    double base = 0.0, mixed = 0.0, change = 0.0;  // W W, W BA, BA BA
  };
  std::span<const Length> lengths;  // [count * outputs]
};

// A change that a backend holds in the form that its kernels read. A LowRank may outlive the backend.
class LowRank {
 public:
  virtual ~LowRank() = default;
  [[nodiscard]] const LowRankShape& shape() const noexcept { return shape_; }

 protected:
  explicit LowRank(const LowRankShape& shape) noexcept : shape_(shape) {}

 private:
  LowRankShape shape_;
};

// Rows of a step that an adapter changes, together.
struct ChangedRows {
  std::span<const std::uint32_t> rows;  // ascending indices of the rows that are present: all rows, the kept ones, or those of a selection
  std::uint64_t numbers = 0;            // largest number of values that A x has for a row, over the changes of the adapter
};

// A change that some rows of a step make to the product that is in `out`.
struct LowRankTerm {
  const LowRank* change = nullptr;
  float scale = 1.0f;
  std::uint32_t rows = 0;  // index into StepTables::changes
  Act out;
};

}  // namespace tessera::backend
