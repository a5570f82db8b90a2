#include "files/quantised/integer_rows.hpp"

#include "core/checked.hpp"
#include "core/error.hpp"

namespace tessera::detail {

std::optional<std::uint64_t> size_product(std::initializer_list<std::uint64_t> factors) noexcept {
  std::optional<std::uint64_t> all = 1;
  for (const std::uint64_t factor : factors) {
    if (all) all = checked_multiply(*all, factor);
  }
  return all;
}

Status check_bytes(const char* what, std::span<const std::byte> bytes, std::optional<std::uint64_t> wanted) {
  if (!wanted) return make_error(ErrorCode::corrupt_file, "{}: no tensor can have that shape", what);
  if (bytes.size() == *wanted) return {};
  return make_error(ErrorCode::corrupt_file, "{} has {} bytes; the layer's shape and its quantization_config need {}",
                    what, bytes.size(), *wanted);
}

Status check_rows(const LinearShape& shape, std::uint64_t first, std::uint64_t rows, DType form,
                  std::span<const std::byte> out) {
  const auto end = checked_add(first, rows);
  const auto bytes = checked_multiply(rows, form_row_bytes(form, shape.inputs));
  if (end && *end <= shape.outputs && bytes && out.size() == *bytes) return {};
  return make_error(ErrorCode::invalid_argument, "cannot decode {} rows from {} on of {} into {} bytes", rows, first,
                    shape.outputs, out.size());
}

}  // namespace tessera::detail
