#include "hub/recipe.hpp"

#include <algorithm>
#include <cstring>

#include "core/math.hpp"
#include "formats/formats.hpp"

namespace tessera::detail::hub {

namespace {

// Transposes each of the matrices [rows, columns] that follow each other in `bytes`. An element has `size` bytes.
std::vector<std::byte> transpose_each(const std::vector<std::byte>& bytes, std::uint64_t rows, std::uint64_t columns, std::uint64_t size) {
  std::vector<std::byte> out(bytes.size());
  const std::uint64_t matrix = rows * columns * size;
  for (std::uint64_t start = 0; matrix != 0 && start + matrix <= bytes.size(); start += matrix) {
    for (std::uint64_t r = 0; r < rows; ++r) {
      for (std::uint64_t c = 0; c < columns; ++c) {
        std::memcpy(out.data() + start + (c * rows + r) * size, bytes.data() + start + (r * columns + c) * size, size);
      }
    }
  }
  return out;
}

std::vector<std::byte> ordered(const Recipe& recipe, const std::vector<std::vector<std::byte>>& parts, std::uint64_t row_bytes) {
  std::vector<std::byte> out;
  if (recipe.order.empty()) {
    for (const auto& part : parts) out.insert(out.end(), part.begin(), part.end());
    return out;
  }
  for (const RowRange& range : recipe.order) {
    for (std::uint64_t i = 0; i < range.rows; ++i) {
      const std::uint64_t row = range.first + i / range.run * range.stride + i % range.run * range.step;
      const std::byte* from = parts[range.part].data() + row * row_bytes;
      out.insert(out.end(), from, from + row_bytes);
    }
  }
  return out;
}

std::vector<std::byte> with_columns_ordered(const Recipe& recipe, const std::vector<std::byte>& bytes, std::uint64_t row_bytes, std::uint64_t size) {
  std::vector<std::byte> out(bytes.size());
  const std::uint64_t group = recipe.column_group * size;
  for (std::uint64_t row = 0; row + row_bytes <= bytes.size(); row += row_bytes) {
    for (std::uint64_t i = 0; i < recipe.column_order.size(); ++i) {
      std::memcpy(out.data() + row + i * group, bytes.data() + row + recipe.column_order[i] * group, group);
    }
  }
  return out;
}

std::vector<std::byte> changed(const Recipe& recipe, const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / number_bytes(recipe.dtype));
  formats::visit(recipe.dtype, [&]<class F>(std::type_identity<F>) {
    for (std::size_t i = 0; i < values.size() / F::block_values; ++i) {
      F::decode(bytes.data() + i * F::block_bytes, values.data() + i * F::block_values);
    }
  });
  for (float& value : values) {
    if (recipe.numbers == Numbers::plus_one) value += 1.0f;
    else if (recipe.numbers == Numbers::minus_exponential) value = -static_cast<float>(math::exp(static_cast<double>(value)));
  }
  const auto out = std::as_bytes(std::span(values));
  return {out.begin(), out.end()};
}

}  // namespace

std::uint64_t bytes_of_values(DType dtype, std::uint64_t values) noexcept {
  const auto block = formats::block_of(dtype);
  return block ? values / block->values * block->bytes : 0;
}

bool is_sound(const Recipe& recipe) noexcept {
  if (recipe.parts.empty()) return recipe.constants.size() == recipe.values();
  std::uint64_t values = 0;
  for (const SourceMatrix& part : recipe.parts) {
    if (part.columns == 0 || part.columns != recipe.parts.front().columns) return false;
    if (recipe.transposed_rows != 0 && part.rows % recipe.transposed_rows != 0) return false;
    values += part.rows * part.columns;
  }
  const std::uint64_t columns = recipe.transposed_rows != 0 ? recipe.transposed_rows : recipe.parts.front().columns;
  std::uint64_t rows = recipe.order.empty() ? values / columns : 0;
  for (const RowRange& range : recipe.order) {
    if (range.part >= recipe.parts.size() || range.rows == 0 || range.run == 0) return false;
    const SourceMatrix& part = recipe.parts[range.part];
    const std::uint64_t last_run = (range.rows - 1) / range.run, last = std::min(range.run, range.rows) - 1;
    if (range.first + last_run * range.stride + last * range.step >= part.rows * part.columns / columns) return false;
    rows += range.rows;
  }
  if (recipe.transposed_last != 0 && rows % recipe.transposed_last != 0) return false;
  if (!recipe.column_order.empty() && recipe.column_order.size() * recipe.column_group != columns) return false;
  for (const std::uint64_t group : recipe.column_order) {
    if (group >= recipe.column_order.size()) return false;
  }
  return rows * columns == recipe.values();
}

std::vector<std::byte> make_whole(const Recipe& recipe, std::vector<std::vector<std::byte>> parts) {
  if (recipe.parts.empty()) {
    const auto out = std::as_bytes(std::span(recipe.constants));
    return {out.begin(), out.end()};
  }
  const std::uint64_t size = number_bytes(recipe.dtype);
  std::uint64_t columns = recipe.parts.front().columns;
  if (recipe.transposed_rows != 0) {
    for (auto& part : parts) part = transpose_each(part, recipe.transposed_rows, columns, size);
    columns = recipe.transposed_rows;
  }
  std::vector<std::byte> whole = ordered(recipe, parts, columns * size);
  parts.clear();
  if (!recipe.column_order.empty()) whole = with_columns_ordered(recipe, whole, columns * size, size);
  if (recipe.transposed_last != 0) whole = transpose_each(whole, recipe.transposed_last, columns, size);
  return recipe.numbers == Numbers::same ? whole : changed(recipe, whole);
}

}  // namespace tessera::detail::hub
