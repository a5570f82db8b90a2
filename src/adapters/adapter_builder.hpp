// Collects the tensors of an adapter, from any kind of file. Checks everything that an AdapterFile promises.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "adapters/adapter_file.hpp"

namespace tessera::detail::adapters {

// The shape of one half of a change (A or B), as the file states it: `count` matrices of `rows` rows and `columns` columns.
struct HalfShape {
  std::uint64_t columns = 0, rows = 0, count = 1;
};

class AdapterBuilder {
 public:
  // `file`: the file's name, for errors. `most_bytes`: how many bytes all tensors together may take.
  AdapterBuilder(const AdapterBase& base, std::string file, std::uint64_t most_bytes) noexcept
      : base_(base), file_(std::move(file)), left_(most_bytes), most_(most_bytes) {}

  [[nodiscard]] const AdapterBase& base() const noexcept { return base_; }
  [[nodiscard]] const std::string& file() const noexcept { return file_; }

  // Counts `bytes` as memory of the adapter. Error: corrupt_file, all tensors together would take more than `most_bytes`. Call it before
  // allocating memory of a size that the file states, because a damaged file may state any size.
  [[nodiscard]] Status take(std::uint64_t bytes, std::string_view called);

  // Returns the rank of A and B. Error: corrupt_file, the two ranks differ, or the rank is above kMaxAdapterRank.
  [[nodiscard]] Result<std::uint32_t> check_rank(std::uint64_t of_a, std::uint64_t of_b, std::string_view called) const;
  // Checks that the shapes of A and B fit the base's tensor, and returns their rank. `called`: the tensor's name in the file, for errors.
  // Errors: corrupt_file, a shape does not fit the model's matrix, or the rank is above kMaxAdapterRank.
  [[nodiscard]] Result<std::uint32_t> check_shapes(std::uint32_t tensor, bool is_embedding, const HalfShape& a, const HalfShape& b,
                                                   std::string_view called) const;

  // Adds a tensor. Errors: corrupt_file, a number is NaN or infinite.
  [[nodiscard]] Status add(AdapterTensor tensor, std::string_view called);

  // Returns the adapter. Errors: corrupt_file, the adapter has no tensor, or changes a tensor twice.
  [[nodiscard]] Result<AdapterFile> finish(std::string name, std::string base_name, std::vector<Token> invocation);

 private:
  const AdapterBase& base_;
  std::string file_;
  std::uint64_t left_, most_;
  AdapterFile made_;
};

// Returns the bytes of a number in F32, F16 or BF16.
[[nodiscard]] constexpr std::uint64_t bytes_of_number(DType dtype) noexcept { return dtype == DType::f32 ? 4 : 2; }

// Returns numbers as F32. `dtype`: F32, F16 or BF16.
[[nodiscard]] std::vector<float> widened(DType dtype, std::span<const std::byte> bytes);

// Checks that all tokens of an invocation sequence are in the model's vocabulary.
[[nodiscard]] Status check_invocation(const std::vector<Token>& invocation, const AdapterBase& base, std::string_view place);

}  // namespace tessera::detail::adapters
