#include "cpu/products/open_tile.hpp"

#include <array>
#include <cstring>

#include "cpu/products/lane_tiles.hpp"
#include "formats/formats.hpp"

namespace tessera::cpu {

namespace {

void spread(const formats::OpenBlock& block, std::size_t values, std::size_t n, OpenTile& to) noexcept {
  for (std::size_t g = 0; g < values / 4; ++g) std::memcpy(to.q[g][n], block.q.data() + 4 * g, 4);
  for (std::size_t j = 0; j < values / 16; ++j) to.d[j][n] = block.d[j];
}

template <bool has_min>
void spread(const formats::OpenSuperblock& block, std::size_t n, OpenTile& to) noexcept {
  for (std::size_t g = 0; g < 64; ++g) std::memcpy(to.q[g][n], block.q.data() + 4 * g, 4);
  for (std::size_t j = 0; j < 16; ++j) to.scale[j][n] = block.scale[j];
  to.d[0][n] = block.d;
  if constexpr (has_min) {
    for (std::size_t j = 0; j < 16; ++j) to.min[j][n] = block.min[j];
    to.dmin[n] = block.dmin;
  }
}

}  // namespace

Grids grids() noexcept {
  using namespace formats::detail;
  return {.iq2_xxs = kGridIq2xxs.data(), .iq2_xs = kGridIq2xs.data(), .iq2_s = kGridIq2s.data(), .iq1 = kGridIq1.data(),
          .iq3_xxs = kGridIq3xxs.data(), .iq3_s = kGridIq3s.data()};
}

void keep_block(PackedForm form, const std::byte* block, std::size_t n, std::byte* tile) noexcept {
  const LaneParts lanes = lane_parts(form);
  const std::size_t bytes = form_layout(form).tile_bytes / kPanel;
  if (lanes.n == 0) std::memcpy(tile + n * bytes, block, bytes);
  for (std::size_t p = 0; p < lanes.n; ++p) {
    const BlockPart& part = lanes.parts[p];
    std::byte* to = tile + lanes.begin(p) + n * part.bytes;
    for (std::size_t u = 0; u < part.count; ++u) {
      std::memcpy(to + u * kPanel * part.bytes, block + part.at + u * part.bytes, part.bytes);
    }
  }
}

void kept_block(PackedForm form, const std::byte* tile, std::size_t n, std::byte* block) noexcept {
  const LaneParts lanes = lane_parts(form);
  const std::size_t bytes = form_layout(form).tile_bytes / kPanel;
  if (lanes.n == 0) std::memcpy(block, tile + n * bytes, bytes);
  for (std::size_t p = 0; p < lanes.n; ++p) {
    const BlockPart& part = lanes.parts[p];
    const std::byte* from = tile + lanes.begin(p) + n * part.bytes;
    for (std::size_t u = 0; u < part.count; ++u) {
      std::memcpy(block + part.at + u * part.bytes, from + u * kPanel * part.bytes, part.bytes);
    }
  }
}

void open_tile(PackedForm form, const std::byte* tile, OpenTile& to) noexcept {
  formats::visit_kept(form, [&]<class F>(std::type_identity<F>) {
    for (std::size_t n = 0; n < kPanel; ++n) {
      formats::Open<F> block;
      if constexpr (lane_parts(F::packed_form).n == 0) {
        F::open(tile + n * F::block_bytes, block);
      } else {
        std::byte bytes[F::block_bytes];
        kept_block(F::packed_form, tile, n, bytes);
        F::open(bytes, block);
      }
      if constexpr (F::block_values == 256) {
        spread<form_layout(F::packed_form).has_min>(block, n, to);
      } else {
        spread(block, F::block_values, n, to);
      }
    }
  });
}

void decode_kept_tile(PackedForm form, const std::byte* tile, float* out) noexcept {
  formats::visit_kept(form, [&]<class F>(std::type_identity<F>) {
    for (std::size_t n = 0; n < kPanel; ++n) {
      std::byte bytes[F::block_bytes];
      kept_block(F::packed_form, tile, n, bytes);
      std::array<float, F::block_values> values;
      F::decode(bytes, values.data());
      for (std::size_t k = 0; k < F::block_values; ++k) out[k * kPanel + n] = values[k];
    }
  });
}

}  // namespace tessera::cpu
