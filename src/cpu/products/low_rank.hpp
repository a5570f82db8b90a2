// The matrices A and B of an adapter's change, in the layout that the CPU's kernels read (kernels.hpp, kLowRankBlock), and the packing
// into this layout. Each change has a buffer of its own, because adapters come and go while an engine runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/extend/core/memory.hpp>

#include "backend/low_rank.hpp"
#include "cpu/kernels.hpp"

namespace tessera::cpu {

class CpuLowRank final : public backend::LowRank {
 public:
  [[nodiscard]] static std::uint64_t bytes_of(const backend::LowRankShape& shape) noexcept;
  [[nodiscard]] static Result<std::shared_ptr<const CpuLowRank>> make(Memory& memory, const backend::LowRankShape& shape,
                                                                      const backend::LowRankValues& values);
  CpuLowRank(const backend::LowRankShape& shape, Buffer buffer) noexcept;

  [[nodiscard]] LowRankType type() const noexcept { return type_; }
  [[nodiscard]] std::size_t block_bytes() const noexcept { return block_bytes_; }
  [[nodiscard]] std::size_t panels() const noexcept { return panels_; }
  // Returns A for matrix `index` of the weight. For a change of a table, returns the numbers of A for the table's row
  // `index`  [rank].
  [[nodiscard]] const std::byte* a(std::uint64_t index) const noexcept;
  [[nodiscard]] const std::byte* panel(std::uint64_t index, std::size_t panel) const noexcept;
  // Writes the factors of outputs [first, first + count), for a change with lengths that is used with `scale`.
  void factors(std::uint64_t index, std::size_t first, std::size_t count, double scale, float* out) const noexcept;

 private:
  struct Layout;

  LowRankType type_;
  std::size_t block_bytes_ = 0;  // in tables: bytes of a row
  std::uint64_t a_bytes_ = 0;    // bytes of one matrix of A
  std::size_t panels_ = 0, panel_bytes_ = 0;
  std::uint64_t b_at_ = 0, lengths_at_ = 0;  // offsets in the buffer
  Buffer buffer_;
};

}  // namespace tessera::cpu
