// Functions that the readers of quantised matrices (methods.hpp) share: they find a matrix's tensors in the folder by name, and make a
// Matrix that decodes its rows from these tensors when the rows are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "files/quantised/integer_rows.hpp"
#include "files/safetensors/safetensors_folder.hpp"
#include "hub/matrix.hpp"

namespace tessera::detail::hub {

using Bytes = std::vector<std::byte>;

// A tensor of the folder, and its index.
struct Found {
  std::uint32_t index = 0;
  const SafetensorsTensor* tensor = nullptr;
  explicit operator bool() const noexcept { return tensor != nullptr; }
  // Returns a dimension; 1 if the tensor has fewer.
  [[nodiscard]] std::uint64_t dim(std::size_t i) const noexcept { return tensor != nullptr && i < tensor->dims.size() ? tensor->dims[i] : 1; }
};

// Returns the tensor `stem` + `end`; an empty value if the folder lacks it.
[[nodiscard]] Found look_up(const SafetensorsFolder& folder, std::string_view stem, std::string_view end);
// Reads all of a tensor; no bytes if `found` is empty.
[[nodiscard]] Result<Bytes> bytes_of(const SafetensorsFolder& folder, const Found& found);
// Returns the type of a tensor of scales; nullopt if the type is not F16, BF16 or F32.
[[nodiscard]] std::optional<ScaleType> scale_type_of(const Found& found) noexcept;
// Makes an error that names a tensor and its file.
[[nodiscard]] Error wrong_tensor(ErrorCode code, const SafetensorsFolder& folder, const Found& found, std::string_view what);
// Returns whether `order` (I32 [inputs], the group of each input) differs from input / group.
[[nodiscard]] Result<bool> is_reordered(const SafetensorsFolder& folder, const Found& order, std::uint64_t group);
// Returns how many consecutive inputs of a matrix share a scale. `inputs`: inputs of the matrix; `groups`: scales of one output;
// `configured`: the number that the configuration states (below 1: all inputs share one scale). If this number fits `groups`, returns it;
// otherwise the number that follows from `groups`; 0 if no number fits.
[[nodiscard]] std::uint64_t group_size(std::uint64_t inputs, std::uint64_t groups, std::int64_t configured) noexcept;

// The result of a reader of matrices; nullptr: the folder has no matrix of the reader's kind under that name.
using MadeMatrix = Result<std::shared_ptr<const Matrix>>;

// Decodes rows from the bytes of a matrix's tensors. The bytes of a tensor that the folder lacks are empty.
using DecodeRows = std::function<Status(std::span<const Bytes>, std::uint64_t first, std::uint64_t rows, std::span<std::byte> out)>;

// Makes a matrix that calls `decode` for its rows. `tensors`: the folder's tensors that describe the matrix, the weights first. They are
// read when the first row is read, and freed after the last row. `form`: the format of the decoded rows; `factor`: see Matrix::factor().
[[nodiscard]] std::shared_ptr<const Matrix> decoded_matrix(DType form, std::vector<std::uint64_t> dims, const std::vector<Found>& tensors, DecodeRows decode,
                                                           float factor = 1.0f);

}  // namespace tessera::detail::hub
