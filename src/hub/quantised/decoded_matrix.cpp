#include "hub/quantised/decoded_matrix.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>

#include "core/error.hpp"
#include "core/printable.hpp"

namespace tessera::detail::hub {

namespace {

// A matrix whose rows are decoded from several tensors. Reads the tensors when the first row is read, and frees them after the last row.
class DecodedMatrix final : public Matrix {
 public:
  DecodedMatrix(DType form, std::vector<std::uint64_t> dims, const std::vector<Found>& tensors, DecodeRows decode, float factor)
      : form_(form), decode_(std::move(decode)) {
    dims_ = std::move(dims);
    factor_ = factor;
    for (const Found& found : tensors) {
      has_.push_back(static_cast<bool>(found));
      if (!found) continue;
      tensors_.push_back(found.index);
      staging_ += found.tensor->bytes;
    }
    rows_ = 1;
    for (std::size_t i = 0; i + 1 < dims_.size(); ++i) rows_ *= dims_[i];
  }

  [[nodiscard]] DType form() const noexcept override { return form_; }
  [[nodiscard]] std::span<const std::uint32_t> tensors() const noexcept override { return tensors_; }
  [[nodiscard]] std::uint64_t staging_bytes() const noexcept override { return staging_; }
  void release() const noexcept override {
    const std::lock_guard lock(mutex_);
    loaded_.clear();
  }

  [[nodiscard]] Status read(const SafetensorsFolder& folder, std::uint64_t offset, std::span<std::byte> out) const override {
    const std::lock_guard lock(mutex_);
    if (loaded_.empty()) {
      std::vector<Bytes> bytes;
      std::size_t next = 0;
      for (const bool has : has_) {
        const std::uint32_t index = has ? tensors_[next++] : 0;
        TESSERA_TRY(Bytes own, bytes_of(folder, has ? Found{index, &folder.tensors()[index]} : Found{}));
        bytes.push_back(std::move(own));
      }
      loaded_ = std::move(bytes);
    }
    const Status status = read_loaded(offset, out);
    const std::uint64_t end = rows_ * row_bytes();
    if (!status || offset + out.size() >= end) loaded_.clear();
    if (status) return status;
    return error_at(status.error().code(), folder.tensors()[tensors_[0]].name, "{}", status.error().text());
  }

 private:
  [[nodiscard]] std::uint64_t row_bytes() const noexcept { return form_row_bytes(form_, dims_.back()); }

  Status read_loaded(std::uint64_t offset, std::span<std::byte> out) const {
    const std::uint64_t size = row_bytes();
    if (offset % size == 0 && out.size() % size == 0) return decode_(loaded_, offset / size, out.size() / size, out);
    Bytes row(size);  // a part of a row
    while (!out.empty()) {
      TESSERA_TRY_STATUS(decode_(loaded_, offset / size, 1, row));
      const std::uint64_t in_row = offset % size, count = std::min<std::uint64_t>(size - in_row, out.size());
      std::memcpy(out.data(), row.data() + in_row, count);
      out = out.subspan(count);
      offset += count;
    }
    return {};
  }

  DType form_;
  DecodeRows decode_;
  std::vector<bool> has_;
  std::vector<std::uint32_t> tensors_;
  std::uint64_t rows_ = 0, staging_ = 0;
  mutable std::mutex mutex_;
  mutable std::vector<Bytes> loaded_;
};

}  // namespace

Found look_up(const SafetensorsFolder& folder, std::string_view stem, std::string_view end) {
  const SafetensorsTensor* tensor = folder.find(std::string(stem).append(end));
  if (tensor == nullptr) return {};
  return {static_cast<std::uint32_t>(tensor - folder.tensors().data()), tensor};
}

Result<Bytes> bytes_of(const SafetensorsFolder& folder, const Found& found) {
  Bytes bytes(found ? found.tensor->bytes : 0);
  if (found) TESSERA_TRY_STATUS(folder.read(*found.tensor, 0, bytes));
  return bytes;
}

std::optional<ScaleType> scale_type_of(const Found& found) noexcept {
  switch (found.tensor->type) {
    case SafetensorsType::f16: return ScaleType::f16;
    case SafetensorsType::bf16: return ScaleType::bf16;
    case SafetensorsType::f32: return ScaleType::f32;
    default: return std::nullopt;
  }
}

Error wrong_tensor(ErrorCode code, const SafetensorsFolder& folder, const Found& found, std::string_view what) {
  return error_at(code, folder.file_name(found.tensor->part), "tensor {}: {}", printable(found.tensor->name), what);
}

Result<bool> is_reordered(const SafetensorsFolder& folder, const Found& order, std::uint64_t group) {
  TESSERA_TRY(const Bytes bytes, bytes_of(folder, order));
  for (std::size_t i = 0; i < bytes.size() / 4; ++i) {
    std::int32_t own = 0;
    std::memcpy(&own, bytes.data() + i * 4, 4);
    if (static_cast<std::uint64_t>(own) != i / group) return true;
  }
  return false;
}

std::uint64_t group_size(std::uint64_t inputs, std::uint64_t groups, std::int64_t configured) noexcept {
  if (inputs == 0 || groups == 0) return 0;
  const std::uint64_t own = configured < 1 ? inputs : static_cast<std::uint64_t>(configured);
  if ((inputs - 1) / own + 1 == groups) return own;
  return inputs % groups == 0 ? inputs / groups : 0;
}

std::shared_ptr<const Matrix> decoded_matrix(DType form, std::vector<std::uint64_t> dims, const std::vector<Found>& tensors, DecodeRows decode, float factor) {
  return std::make_shared<const DecodedMatrix>(form, std::move(dims), tensors, std::move(decode), factor);
}

}  // namespace tessera::detail::hub
