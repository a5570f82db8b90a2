#include "encode.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include <tessera/extend/formats/rows.hpp>
#include <tessera/unstable/formats/weighted_rows.hpp>

namespace tessera::quantize {

namespace {

// How a tensor is divided for encoding. It is read and written one piece at a time, and a piece is divided into segments, each of which one
// thread encodes. Rows are whole blocks of both formats, so a tensor can be treated as one long row. A segment is a whole number of blocks
// of every format.
constexpr std::uint64_t kSegmentValues = 1 << 15;
constexpr std::uint64_t kPieceSegments = 64;

struct Segment {
  Loss loss;
  std::uint64_t bad = UINT64_MAX;  // index of the first value that cannot be encoded
};

struct Piece {
  DType from, to;
  formats::Block source, target;
  const std::byte* in;
  std::byte* out;
  std::uint64_t values;
  Segment* segments;
  // The following fields are used only with an importance matrix.
  const std::vector<float>* importance = nullptr;  // [matrices, row]
  std::uint64_t row = 0, matrix = 0;               // values of a row, and of a matrix
  std::uint64_t first = 0;                         // index of the piece's first value in the tensor
};

// Encodes values of the piece from `at` on, with the importance of each value's column. Rows are whole blocks.
void encode_values(const Piece& piece, std::uint64_t at, std::span<const float> x, std::span<std::byte> out) noexcept {
  // Results are not checked: the sizes agree by construction, and a failure would show as a wrong file in any test.
  if (piece.importance == nullptr) {
    (void)formats::encode_row(piece.to, x, out);
    return;
  }
  for (std::size_t done = 0; done < x.size();) {
    const std::uint64_t index = piece.first + at + done, column = index % piece.row;
    const std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(piece.row - column, x.size() - done));
    const std::span importance(piece.importance->data() + index / piece.matrix * piece.row + column, n);
    const std::size_t block = done / piece.target.values * piece.target.bytes, bytes = n / piece.target.values * piece.target.bytes;
    (void)formats::encode_weighted_row(piece.to, x.subspan(done, n), importance, out.subspan(block, bytes));
    done += n;
  }
}

// Encodes segment s. x and y: memory for one segment of floats each.
void encode_segment(const Piece& piece, std::uint64_t s, float* x, float* y) noexcept {
  const std::uint64_t first = s * kSegmentValues;
  const std::size_t n = static_cast<std::size_t>(std::min(kSegmentValues, piece.values - first));
  const std::size_t in_bytes = n / piece.source.values * piece.source.bytes;
  const std::size_t out_bytes = n / piece.target.values * piece.target.bytes;
  const std::span in(piece.in + first / piece.source.values * piece.source.bytes, in_bytes);
  const std::span out(piece.out + first / piece.target.values * piece.target.bytes, out_bytes);
  Segment& segment = piece.segments[s];
  segment = {};
  (void)formats::decode_row(piece.from, in, {x, n});
  encode_values(piece, first, {x, n}, out);
  (void)formats::decode_row(piece.to, out, {y, n});
  for (std::size_t i = 0; i < n; ++i) {
    const double value = x[i], miss = value - static_cast<double>(y[i]);
    if (!std::isfinite(miss)) {
      segment.bad = first + i;
      return;
    }
    segment.loss.squares += value * value;
    segment.loss.error += miss * miss;
  }
}

void encode_piece(const Piece& piece, unsigned threads, float* scratch) {
  const std::uint64_t n = (piece.values + kSegmentValues - 1) / kSegmentValues;
  std::atomic<std::uint64_t> next = 0;
  const auto work = [&](float* floats) noexcept {
    for (std::uint64_t s = next++; s < n; s = next++) encode_segment(piece, s, floats, floats + kSegmentValues);
  };
  std::vector<std::jthread> helpers;
  helpers.reserve(threads);
  try {
    for (unsigned t = 1; t < std::min<std::uint64_t>(threads, n); ++t)
      helpers.emplace_back(work, scratch + 2 * t * kSegmentValues);
  } catch (const std::system_error&) {  // no more threads are available: the threads made so far do the work
  }
  work(scratch);
}

Error bad_value(const TensorPlan& step, std::uint64_t index) {
  const std::uint64_t row = step.tensor->dims[0];
  return {ErrorCode::numeric,
          fmt::format("value {} of row {} is NaN, infinite, or too large for {}: the source model is damaged or needs "
                      "another format",
                      index % row, index / row, to_string(step.to)),
          std::string(step.tensor->name)};
}

}  // namespace

Result<Loss> encode_tensor(const ModelSource& model, const TensorPlan& step, const std::vector<float>* importance, unsigned threads,
                           const ByteSink& write, const Progress& progress) {
  const GgufTensor& tensor = *step.tensor;
  Piece piece{tensor.dtype, step.to, *formats::block_of(tensor.dtype), *formats::block_of(step.to), {}, {}, 0, {},
              importance, tensor.dims[0], tensor.dims[0] * tensor.dims[1]};
  const std::uint64_t piece_values = std::min(step.values, kPieceSegments * kSegmentValues);
  const auto bytes_in = [](std::uint64_t values, const formats::Block& block) {
    return static_cast<std::size_t>(values / block.values * block.bytes);
  };
  const bool copy = tensor.dtype == step.to;
  std::vector<std::byte> in(bytes_in(piece_values, piece.source)), out(copy ? 0 : bytes_in(piece_values, piece.target));
  std::vector<float> scratch(copy ? 0 : 2 * threads * kSegmentValues);
  std::vector<Segment> segments(kPieceSegments);
  piece.in = in.data();
  piece.out = out.data();
  piece.segments = segments.data();
  Loss loss;
  for (std::uint64_t done = 0; done < step.values; done += piece.values) {
    if (*progress.stop != 0) return Error(ErrorCode::cancelled, "interrupted; nothing was written");
    piece.values = std::min(piece_values, step.values - done);
    piece.first = done;
    const std::span read(in.data(), bytes_in(piece.values, piece.source));
    const std::uint64_t offset = done / piece.source.values * piece.source.bytes;
    if (auto ok = model.read(tensor, offset, read); !ok) return std::move(ok).error();
    if (!copy) {
      encode_piece(piece, threads, scratch.data());
      for (std::uint64_t s = 0; s < (piece.values + kSegmentValues - 1) / kSegmentValues; ++s) {
        if (segments[s].bad != UINT64_MAX) return bad_value(step, done + segments[s].bad);
        loss.squares += segments[s].loss.squares;
        loss.error += segments[s].loss.error;
      }
    }
    const std::span encoded(out.data(), copy ? 0 : bytes_in(piece.values, piece.target));
    if (auto ok = write(copy ? std::span<const std::byte>(read) : encoded); !ok) return std::move(ok).error();
    progress.tell(progress.context, piece.values);
  }
  return loss;
}

}  // namespace tessera::quantize
