#include <tessera/unstable/formats/weighted_rows.hpp>

#include <algorithm>
#include <tessera/extend/formats/rows.hpp>

#include "core/error.hpp"
#include "formats/formats.hpp"

namespace tessera::formats {
namespace {

template <class F>
constexpr bool is_guided = requires(const float* values, std::byte* block) { F::encode(values, block, values); };

constexpr std::size_t kLargestBlock = detail::kSuperblock;

// Divides a block's importances by the largest of them, so that no product in an encoder overflows. Returns false if none is above 0.
bool scale_importance(const float* given, std::size_t n, float* importance) noexcept {
  float largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    importance[i] = std::max(detail::finite(given[i]), 0.0f);
    largest = std::max(largest, importance[i]);
  }
  if (!(largest > 0)) return false;
  for (std::size_t i = 0; i < n; ++i) importance[i] /= largest;
  return true;
}

}  // namespace

bool heeds_importance(DType type) noexcept {
  bool heeds = false;
  visit(type, [&]<class F>(std::type_identity<F>) { heeds = is_guided<F>; });
  return heeds;
}

Status encode_weighted_row(DType type, std::span<const float> values, std::span<const float> importance,
                           std::span<std::byte> blocks) noexcept {
  if (importance.size() != values.size()) {
    return tessera::detail::make_error(ErrorCode::invalid_argument, "{} numbers of importance for {} values: give one for each value",
                                       importance.size(), values.size());
  }
  const auto block = block_of(type);
  const bool fits = block && values.size() % block->values == 0 && blocks.size() == values.size() / block->values * block->bytes;
  if (!fits || !heeds_importance(type)) return encode_row(type, values, blocks);  // encodes without importance, or says what is wrong
  visit(type, [&]<class F>(std::type_identity<F>) {
    if constexpr (is_guided<F>) {
      static_assert(F::block_values <= kLargestBlock);
      float scaled[kLargestBlock];
      for (std::size_t b = 0; b < values.size() / F::block_values; ++b) {
        const bool any = scale_importance(importance.data() + b * F::block_values, F::block_values, scaled);
        F::encode(values.data() + b * F::block_values, blocks.data() + b * F::block_bytes, any ? scaled : nullptr);
      }
    }
  });
  return {};
}

}  // namespace tessera::formats
