// A file's keys of an architecture, as numbers that have been checked: what reads a spec is made of.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <tessera/files/model_file.hpp>

#include "core/error.hpp"
#include "model/architecture.hpp"

namespace tessera::detail {

class SpecKeys {
 protected:
  SpecKeys(const ModelFile& file, const Architecture& table) : file_(file), meta_(file.metadata()), table_(table) {}

  [[nodiscard]] std::string key(std::string_view name) const { return fmt::format("{}.{}", table_.name, name); }

  // "key NAME (offset N)"
  [[nodiscard]] std::string place(const std::string& name) const {
    const GgufEntry* entry = meta_.find(name);
    return entry == nullptr ? fmt::format("key {}", name) : fmt::format("key {} (offset {})", name, entry->offset);
  }

  static Error bad(std::string_view what, std::string_view value, std::string_view expected) {
    return make_error(ErrorCode::corrupt_file, "{} is {}; expected {}", what, value, expected);
  }

  // A count of at least 1 that fits 31 bits.
  Result<std::uint32_t> to_count(const std::string& name, std::uint64_t value) const {
    if (value == 0 || value > std::numeric_limits<std::int32_t>::max()) {
      return error_at(ErrorCode::corrupt_file, place(name), "the value is {}; expected 1 to {}", value,
                      std::numeric_limits<std::int32_t>::max());
    }
    return static_cast<std::uint32_t>(value);
  }

  Result<std::uint32_t> count(std::string_view name) const {
    const std::string full = key(name);
    TESSERA_TRY(const std::uint64_t value, meta_.unsigned_integer(full));
    return to_count(full, value);
  }

  // A count per layer: a scalar for all, or an array with one for each.
  Result<std::uint32_t> layer_count(std::string_view name, std::uint32_t layer, std::uint32_t n_layers) const {
    const std::string full = key(name);
    const GgufEntry* entry = meta_.find(full);
    if (entry == nullptr || entry->type != GgufType::array) return count(name);
    TESSERA_TRY(const GgufArray array, meta_.array(full));
    if (!array.is_integer() || array.size() < n_layers) {
      return error_at(ErrorCode::corrupt_file, place(full), "expected an array of {} integers, one per layer", n_layers);
    }
    const std::int64_t value = array.integer(layer);
    return to_count(full, value < 0 ? 0 : static_cast<std::uint64_t>(value));
  }

  // A number from 0 on likewise, `absent` where the file has none.
  Result<std::uint64_t> layer_number(std::string_view name, std::uint32_t layer, std::uint32_t n_layers, std::uint64_t absent) const {
    const std::string full = key(name);
    const GgufEntry* entry = meta_.find(full);
    if (entry == nullptr || entry->type != GgufType::array) return meta_.unsigned_integer_or(full, absent);
    TESSERA_TRY(const GgufArray array, meta_.array(full));
    if (!array.is_integer() || array.size() != n_layers || array.integer(layer) < 0) {
      return error_at(ErrorCode::corrupt_file, place(full), "expected an array of {} numbers from 0 on, one per layer", n_layers);
    }
    return static_cast<std::uint64_t>(array.integer(layer));
  }

  // A factor. The pass has it in float32, as it is or as 1 over it, and multiplies a few of them: within these bounds none of that
  // is 0 or infinite. No model has a factor beyond them.
  Result<double> positive(std::string_view name, double usual) const {
    constexpr double kLeast = 0x1p-64, kMost = 0x1p64;
    TESSERA_TRY(const double value, meta_.number_or(key(name), usual));
    if (value >= kLeast && value <= kMost) return value;
    return error_at(ErrorCode::corrupt_file, place(key(name)), "the value is {}; expected a positive number, {:.2g} to {:.2g}", value,
                    kLeast, kMost);
  }

  // Likewise, or 0, which says that there is no such factor.
  Result<double> positive_or_none(std::string_view name, double usual) const {
    TESSERA_TRY(const double value, meta_.number_or(key(name), usual));
    return value == 0.0 ? Result<double>(0.0) : positive(name, usual);
  }

  Result<float> softcap(std::string_view name, double usual) const {
    TESSERA_TRY(const double cap, positive_or_none(name, usual));
    return static_cast<float>(cap);
  }

  // Positions that the model was first trained with, before its context was made longer.
  Result<std::uint32_t> original_context(std::uint32_t context) const {
    TESSERA_TRY(const std::uint64_t value, meta_.unsigned_integer_or(key("rope.scaling.original_context_length"), context));
    return to_count(key("rope.scaling.original_context_length"), value);
  }

  const ModelFile& file_;
  const GgufFile& meta_;
  const Architecture& table_;
};

}  // namespace tessera::detail
