// A file's weight format: one type for all matrices, or llama.cpp's mix Q4_K_M. The rules are tessera-quantize's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/core/dtype.hpp>
#include <tessera/io/model_file.hpp>

#include "model/architecture.hpp"

namespace tessera::bench {

struct Format {
  std::string name = "Q8_0";
  DType type = DType::q8_0;
  bool mix = false;  // Q4_K_M: Q4_K, with Q6_K where it matters most
};

inline constexpr std::string_view kFormatNames = "F32 F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q4_K Q5_K Q6_K Q4_K_M";

[[nodiscard]] std::optional<Format> parse_format(std::string_view name);  // in any case
// Of a file: what general.file_type says of a mix, else the type of most weight bytes.
[[nodiscard]] std::string format_of(const ModelFile& file);
[[nodiscard]] std::uint32_t file_type(const Format& format) noexcept;  // llama.cpp's number for general.file_type

// What a matrix with rows of `row` values becomes; `output`: it makes the logits.
[[nodiscard]] DType matrix_type(const Format& format, Role role, bool output, std::uint32_t layer, std::uint32_t layers,
                                std::uint64_t row) noexcept;

}  // namespace tessera::bench
