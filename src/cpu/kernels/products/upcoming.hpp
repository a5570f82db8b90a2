// The ways in which products prefetch the weights that they read next, while they multiply others. Without prefetching, a core would
// compute for a while, then wait for memory, and so on. For kernels for few rows by_streaming_rows() chooses the way; kernels for many rows
// use Upcoming.
#pragma once

#include "cpu/kernels/products/tiles.hpp"

namespace tessera::cpu::TESSERA_ISA {

// The most bytes of the next panels to prefetch. Twice this number, for the next panels and for the panels that are being multiplied, fits
// into an L2 of 1 MB.
inline constexpr std::size_t kMostAhead = 512 * 1024;

// For products that take longer than reading their weights: prefetches the packed weights that are read next, some cache lines at each
// step of the product. Panels are prefetched one after another, because a core reads one stream fastest.
class Upcoming {
 public:
  // Prefetches part of each of `panels` consecutive panels, the first of which is `panel`: up to `bytes` bytes, from byte `at` of the
  // panel on. If `at` is panel_bytes or more, prefetches instead in the `panels` panels after these, from byte at - panel_bytes on: most
  // likely the thread multiplies them next. The prefetches are spread over `steps` steps of one row.
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

  // Does `rows` steps.
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
  std::size_t bytes_;       // number of bytes to prefetch in each panel
  std::size_t gap_;         // number of bytes between the last prefetched byte of a panel and the first one of the next panel
  std::size_t panels_;      // number of panels that are not completely prefetched yet
  std::ptrdiff_t pace_;     // number of bytes to prefetch in one step
  std::ptrdiff_t due_ = 0;  // number of bytes that should have been prefetched by now and are not yet
};

// If Ahead::all_lines is false, a step of at least this many bytes prefetches one cache line, and a smaller step prefetches none.
inline constexpr std::size_t kSparse = 256;

// Prefetches for a step of a product that reads `bytes` bytes at `at`: the data that lies ahead.bytes further on.
TESSERA_INLINE void prefetch(const std::byte* at, std::size_t bytes, const Ahead& ahead) {
  if (ahead.all_lines) {
    for (std::size_t i = 0; i < bytes; i += 64) __builtin_prefetch(at + ahead.bytes + i);
  } else if (bytes >= kSparse) {
    __builtin_prefetch(at + ahead.bytes, 0, 2);
  }
}

// For products of few rows, which multiply weights as fast as they come from memory: prefetches in the panels that are being multiplied,
// at a distance of LinearJob::ahead from the weights that are read.
template <std::size_t kPanels>
struct NotFarAhead {
  static constexpr std::size_t kLeastStep = kSparse;  // bytes that a step should have at least

  Ahead ahead;

  // Prefetches for a step that reads `bytes` bytes of each panel: at `at` in the first panel, `stride` bytes later in each further panel.
  [[gnu::always_inline]] void step(const std::byte* at, std::size_t stride, std::size_t bytes) const noexcept {
    TESSERA_UNROLL
    for (std::size_t p = 0; p < kPanels; ++p) prefetch(at + p * stride, bytes, ahead);
  }
};

// For products that take longer than reading their weights, and whose steps are short: while kPanels panels are multiplied, prefetches
// the next kPanels panels, side by side. (Upcoming would have a branch in each step, which is often mispredicted.)
template <std::size_t kPanels>
class NextPanels {
 public:
  static constexpr std::size_t kLeastStep = 0;

  // `panel`: the first of the panels that are being multiplied. `steps`: the steps in which each tile of rows multiplies them.
  NextPanels(const LinearJob& job, std::size_t panel, std::size_t steps) noexcept
      : next_(job.weights + (panel + kPanels) * job.panel_bytes),
        asked_(fit(job) ? job.panel_bytes : 0),
        row_steps_(job.rows * steps) {}

  [[nodiscard]] static bool fit(const LinearJob& job) noexcept { return kPanels * job.panel_bytes <= kMostAhead; }

  // Begins a tile of `rows` rows. Its steps prefetch a share of the panels that is proportional to its rows.
  void start(std::size_t rows) noexcept { share_ = asked_ * rows / row_steps_; }

  [[gnu::always_inline]] void step(const std::byte*, std::size_t stride, std::size_t bytes) noexcept {
    const std::size_t most = bytes <= 128 ? bytes : share_;  // a step that reads one or two lines prefetches as many
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

// The prefetching for panels that are too large for NextPanels: prefetches what lies 64 KB further on in the same panels.
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

// Cuts the rows of a job into tiles to multiply panels from `panel` on, and calls fn(Count<rows of the tile>, first row, ask) for each
// tile. `ask` is one of the three kinds of prefetching above:
// - NotFarAhead for few rows: fewer than kAskingRows, and at most kMost
// - NextPanels for more rows, with which a product takes longer than reading the weights
// - FurtherOn for more rows if kMayBeLarge and the panels are too large for NextPanels (in 8 bits from 32,000 inputs on)
// `steps`: the steps in which a tile of rows multiplies the panels.
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

// Returns the number of rows from which on multiplying a panel in 8 bits takes longer than reading the panel from memory. `bytes`: bytes
// of the panel's weights for 32 values of k. Measured: with vectors of one register, a row multiplies 32 values of k in about 11 cycles
// (0.34 TOP/s at 3.7 GHz). In this time a core reads 100 to 130 bytes; the function counts with 128.
[[gnu::always_inline]] constexpr std::size_t asking_rows(std::size_t bytes) noexcept {
  constexpr std::size_t kBytesARow = 128 * kRegisters;
  const std::size_t rows = (bytes + kBytesARow - 1) / kBytesARow;
  return rows < 2 ? 2 : rows;
}

}  // namespace tessera::cpu::TESSERA_ISA
