// Computes which keys of a chunk the rows of an attention job see, from the window, the global keys and the rows' positions.
#pragma once

#include "cpu/attention/attention_job.hpp"
#include "cpu/kernels/simd/simd.hpp"

namespace tessera::cpu::TESSERA_ISA {

// Keys of a chunk: [first, last).
struct Span {
  std::uint32_t first = 0, last = 0;

  [[nodiscard, gnu::always_inline]] bool empty() const { return first >= last; }
};

// Returns the position after the last key that a row sees (without global keys). `own`: the row's position plus 1.
[[nodiscard, gnu::always_inline]] inline std::uint64_t end_of(const AttendJob& job, std::uint64_t own) {
  if (job.ahead == 0) return own;
  return own + job.ahead < job.end ? own + job.ahead : job.end;
}

// Returns the number of global keys (AttendJob::globals) that lie before the window of a row. `own`: the row's position plus 1.
[[nodiscard, gnu::always_inline]] inline std::uint64_t global_end(const AttendJob& job, std::uint64_t own) {
  const std::uint64_t before = own > job.window ? own - job.window : 0;
  return before < job.globals ? before : job.globals;
}

// Returns the keys of a chunk that a row sees. If AttendJob::globals is not 0, returns only the global keys before the row's window.
[[nodiscard, gnu::always_inline]] inline Span visible(const AttendJob& job, std::uint64_t chunk, std::size_t row) {
  const std::uint64_t own = job.position + row + 1, start = chunk * kChunk;
  std::uint64_t begin = job.window != 0 && own > job.window ? own - job.window : 0, end = end_of(job, own);
  if (job.globals != 0) {
    end = global_end(job, own);
    begin = 0;
  }
  Span span;
  span.first = static_cast<std::uint32_t>(begin <= start ? 0 : begin - start < kChunk ? begin - start : kChunk);
  span.last = static_cast<std::uint32_t>(end <= start ? 0 : end - start < kChunk ? end - start : kChunk);
  return span;
}

}  // namespace tessera::cpu::TESSERA_ISA
