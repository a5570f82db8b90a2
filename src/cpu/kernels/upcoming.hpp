// Prefetches weights from memory while other weights are multiplied. Without it a core computes and waits in turn.
#pragma once

#include "cpu/kernels/tiles.hpp"

namespace tessera::cpu::TESSERA_ISA {

// The most bytes of panels to prefetch. Together with the same number of bytes that are multiplied they fit into an L2 of 1 MB.
inline constexpr std::size_t kMostAhead = 512 * 1024;

// Prefetches the packed weights that are read next, some lines at each step. It pays where products take longer than reading the weights.
// Panels are prefetched one after another, because a core reads one stream fastest.
class Upcoming {
 public:
  // Prefetches up to `bytes` bytes of each of `panels` panels from `panel` on, from byte `at` of the panel on, in `steps` steps of one row.
  // With `at` from panel_bytes to 2 * panel_bytes: from byte at - panel_bytes on of the panels behind these, which the thread most likely
  // takes next.
  Upcoming(const LinearJob& job, std::size_t panel, std::size_t panels, std::size_t at, std::size_t bytes,
           std::size_t steps) noexcept {
    const bool same = at < job.panel_bytes;
    const std::size_t first = same ? at : at - job.panel_bytes, left = job.panel_bytes - first;
    bytes_ = bytes < left ? bytes : left;
    gap_ = job.panel_bytes - bytes_;
    at_ = job.weights + (same ? panel : panel + panels) * job.panel_bytes + first;
    end_ = at_ + bytes_;
    panels_ = panels;
    pace_ = static_cast<std::ptrdiff_t>(((bytes_ + 63) / 64 * 64 * panels + steps - 1) / steps);
  }

  // Does one step for each of `rows` rows.
  [[gnu::always_inline]] void step(std::size_t rows) noexcept {
    for (due_ += pace_ * static_cast<std::ptrdiff_t>(rows); due_ > 0 && panels_ != 0; due_ -= 64) {
      __builtin_prefetch(at_, 0, 2);  // into L2: L1 holds the weights that are multiplied
      at_ += 64;
      if (at_ < end_) continue;
      at_ = end_ + gap_;
      end_ = at_ + bytes_;
      --panels_;
    }
  }

 private:
  const std::byte *at_, *end_;
  std::size_t bytes_, gap_, panels_;  // bytes of a panel to prefetch; bytes from their end to the next panel's; panels left
  std::ptrdiff_t pace_, due_ = 0;     // bytes of a step; bytes that are due by now
};

// Without Ahead::all_lines, a step of at least this many bytes prefetches one line, and a smaller step prefetches none.
inline constexpr std::size_t kSparse = 256;

// Prefetches for a step that reads `bytes` bytes at `at`.
TESSERA_INLINE void prefetch(const std::byte* at, std::size_t bytes, const Ahead& ahead) {
  if (ahead.all_lines) {
    for (std::size_t i = 0; i < bytes; i += 64) __builtin_prefetch(at + ahead.bytes + i);
  } else if (bytes >= kSparse) {
    __builtin_prefetch(at + ahead.bytes, 0, 2);
  }
}

// Prefetches as LinearJob::ahead says, for few rows, whose weights are multiplied as fast as they come from memory.
template <std::size_t kPanels>
struct NotFarAhead {
  static constexpr std::size_t kLeastStep = kSparse;  // bytes that a step should have at least

  Ahead ahead;

  // Prefetches for a step that reads `bytes` bytes of each panel: at `at` in the first panel, `stride` bytes later in each further one.
  [[gnu::always_inline]] void step(const std::byte* at, std::size_t stride, std::size_t bytes) const noexcept {
    TESSERA_UNROLL
    for (std::size_t p = 0; p < kPanels; ++p) prefetch(at + p * stride, bytes, ahead);
  }
};

// Prefetches the panels after these, side by side, for products that take longer than reading the weights. The steps are too small for
// Upcoming, whose branches a CPU would predict wrongly.
template <std::size_t kPanels>
class NextPanels {
 public:
  static constexpr std::size_t kLeastStep = 0;

  // `panel`: the first of the panels that are multiplied. `steps`: steps in which each tile of rows multiplies them.
  NextPanels(const LinearJob& job, std::size_t panel, std::size_t steps) noexcept
      : next_(job.weights + (panel + kPanels) * job.panel_bytes),
        asked_(fit(job) ? job.panel_bytes : 0),
        row_steps_(job.rows * steps) {}

  [[nodiscard]] static bool fit(const LinearJob& job) noexcept { return kPanels * job.panel_bytes <= kMostAhead; }

  // Starts a tile of `rows` rows, which prefetches about its share of the panels.
  void start(std::size_t rows) noexcept { share_ = asked_ * rows / row_steps_; }

  [[gnu::always_inline]] void step(const std::byte*, std::size_t stride, std::size_t bytes) noexcept {
    const std::size_t most = bytes <= 128 ? bytes : share_;  // a step of one or two lines prefetches no more than these, without a loop
    TESSERA_UNROLL
    for (std::size_t p = 0; p < kPanels; ++p) {
      for (std::size_t i = 0; i < most; i += 64) __builtin_prefetch(next_ + p * stride + i, 0, 2);
    }
    next_ += share_;
  }

 private:
  const std::byte* next_;
  std::size_t asked_, row_steps_, share_ = 0;
};

// Prefetches 64 KB further on in each panel, where panels are too large for NextPanels.
template <std::size_t kPanels>
struct FurtherOn {
  static constexpr std::size_t kLeastStep = 0;
  static constexpr std::size_t kBytes = 64 * 1024;

  [[gnu::always_inline]] void start(std::size_t) const noexcept {}
  [[gnu::always_inline]] void step(const std::byte* at, std::size_t stride, std::size_t bytes) const noexcept {
    TESSERA_UNROLL
    for (std::size_t p = 0; p < kPanels; ++p) {
      for (std::size_t i = 0; i < bytes; i += 64) __builtin_prefetch(at + p * stride + kBytes + i, 0, 2);
    }
  }
};

// Calls fn(Count<rows of the tile>, first row, ask) for all rows of the job, to multiply panels from `panel` on in `steps` steps. `ask` is
// one of the three kinds of prefetching above. From kAskingRows rows on, and with more rows than a tile has, products take longer than
// reading the weights. kMayBeLarge: panels of usual models may be too large for NextPanels (in 8 bits they are from 32,000 inputs on).
template <std::size_t kMost, std::size_t kAskingRows, std::size_t kPanels, bool kMayBeLarge = false, class Fn>
TESSERA_INLINE void by_streaming_rows(const LinearJob& job, std::size_t panel, std::size_t steps, Fn fn) {
  static_assert(kAskingRows > 1);
  constexpr std::size_t kFrom = kAskingRows < kMost + 1 ? kAskingRows : kMost + 1;
  if (job.rows < kFrom) {
    NotFarAhead<kPanels> ask{job.ahead};
    with_count<kFrom - 1>(job.rows, [&](auto count) TESSERA_LAMBDA { fn(count, std::size_t{0}, ask); });
  } else {
    const auto by_tiles = [&](auto ask) TESSERA_LAMBDA {
      by_rows<kMost>(job.rows, [&]<std::size_t kR>(Count<kR> count, std::size_t row) TESSERA_LAMBDA {
        ask.start(kR);
        fn(count, row, ask);
      });
    };
    if constexpr (kMayBeLarge) {
      if (!NextPanels<kPanels>::fit(job)) return by_tiles(FurtherOn<kPanels>{});
    }
    by_tiles(NextPanels<kPanels>(job, panel, steps));
  }
}

// Returns the rows from which on 8-bit products of a panel take longer than reading the panel, if 32 k of the panel are `bytes` bytes. A
// row multiplies 32 k in about 11 cycles with one register (0.34 TOP/s at 3.7 GHz); in this time a core reads 100 to 130 bytes.
[[gnu::always_inline]] constexpr std::size_t asking_rows(std::size_t bytes) noexcept {
  constexpr std::size_t kBytesARow = 128 * kRegisters;
  const std::size_t rows = (bytes + kBytesARow - 1) / kBytesARow;
  return rows < 2 ? 2 : rows;
}

}  // namespace tessera::cpu::TESSERA_ISA
