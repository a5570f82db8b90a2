// Weights come from memory while others are multiplied: else a core computes and waits by turns.
#pragma once

#include "cpu/kernels/tiles.hpp"

namespace tessera::cpu::TESSERA_ISA {

// Bytes of panels that are asked for: with as many that are multiplied they fit into an L2 of 1 MB.
inline constexpr std::size_t kMostAhead = 512 * 1024;

// The packed weights that are read after those that are multiplied, asked for a little at each step. It pays where
// products take longer than memory. One panel after another: that is what a core reads fastest.
class Upcoming {
 public:
  // Of `panels` panels from `panel` on, up to `bytes` bytes from `at` on; `at` is at most 2 * panel_bytes: behind the
  // end of these panels are those that the thread most likely takes next. In `steps` steps of one row.
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

  // A step of some rows.
  [[gnu::always_inline]] void step(std::size_t rows) noexcept {
    for (due_ += pace_ * static_cast<std::ptrdiff_t>(rows); due_ > 0 && panels_ != 0; due_ -= 64) {
      __builtin_prefetch(at_, 0, 2);  // into L2: the first level holds what is multiplied
      at_ += 64;
      if (at_ < end_) continue;
      at_ = end_ + gap_;
      end_ = at_ + bytes_;
      --panels_;
    }
  }

 private:
  const std::byte *at_, *end_;
  std::size_t bytes_, gap_, panels_;  // of a panel; to the next one's; left
  std::ptrdiff_t pace_, due_ = 0;     // bytes: a step's; to be asked for by now
};

// Where not all lines are asked for, those of a step of at least so many bytes are worth the first one's asking.
inline constexpr std::size_t kSparse = 256;

// A step reads `bytes` bytes at `at`.
TESSERA_INLINE void prefetch(const std::byte* at, std::size_t bytes, const Ahead& ahead) {
  if (ahead.all_lines) {
    for (std::size_t i = 0; i < bytes; i += 64) __builtin_prefetch(at + ahead.bytes + i);
  } else if (bytes >= kSparse) {
    __builtin_prefetch(at + ahead.bytes, 0, 2);
  }
}

// While panels are multiplied as they come from memory, what LinearJob::ahead says is asked for.
template <std::size_t kPanels>
struct NotFarAhead {
  static constexpr std::size_t kLeastStep = kSparse;  // bytes that a step had better have

  Ahead ahead;

  // `bytes` bytes of each panel are read, of the first at `at`, of the next `stride` bytes on.
  [[gnu::always_inline]] void step(const std::byte* at, std::size_t stride, std::size_t bytes) const noexcept {
    TESSERA_UNROLL
    for (std::size_t p = 0; p < kPanels; ++p) prefetch(at + p * stride, bytes, ahead);
  }
};

// Or, of products that take longer than memory, the panels after these, all at once: by steps too small for Upcoming,
// which has branches that a CPU would guess wrong.
template <std::size_t kPanels>
class NextPanels {
 public:
  static constexpr std::size_t kLeastStep = 0;

  // Panels from `panel` on, multiplied in `steps` steps by each tile of rows.
  NextPanels(const LinearJob& job, std::size_t panel, std::size_t steps) noexcept
      : next_(job.weights + (panel + kPanels) * job.panel_bytes),
        asked_(fit(job) ? job.panel_bytes : 0),
        row_steps_(job.rows * steps) {}

  [[nodiscard]] static bool fit(const LinearJob& job) noexcept { return kPanels * job.panel_bytes <= kMostAhead; }

  // A tile of `rows` rows starts, and asks for about its share.
  void start(std::size_t rows) noexcept { share_ = asked_ * rows / row_steps_; }

  [[gnu::always_inline]] void step(const std::byte*, std::size_t stride, std::size_t bytes) noexcept {
    const std::size_t most = bytes <= 128 ? bytes : share_;  // of a line or two no more: without a loop
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

// Or, of panels too large for that, what lies a little further on in each of them.
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

// Calls fn(Count<rows of the tile>, first row, what asks) for all rows of the job: products of panels from `panel` on,
// in `steps` steps. With kAskingRows rows, or more than a tile has, they take longer than memory. kMayBeLarge: panels
// of usual models may be too large to be asked for at once (of 8 bits they are from 32,000 inputs on).
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

// Rows from which 8-bit products of a panel take longer than memory, where 32 k of it are `bytes` bytes. A row takes
// about 11 cycles for them in one register (0.34 TOP/s at 3.7 GHz), in which a core reads 100 to 130 bytes.
[[gnu::always_inline]] constexpr std::size_t asking_rows(std::size_t bytes) noexcept {
  constexpr std::size_t kBytesARow = 128 * kRegisters;
  const std::size_t rows = (bytes + kBytesARow - 1) / kBytesARow;
  return rows < 2 ? 2 : rows;
}

}  // namespace tessera::cpu::TESSERA_ISA
