#include "recoded_source.hpp"

#include <algorithm>
#include <cstring>
#include <exception>

#include <tessera/extend/formats/rows.hpp>

#include "format_mix.hpp"

namespace tessera::quality {

namespace {

bool is_recoded(const TensorInfo& tensor) {
  const bool is_matrix = tensor.n_dims >= 2 && tensor.dims[0] > 1 && tensor.dims[1] > 1 && tensor.name.ends_with(".weight");
  return is_matrix && formats::block_of(tensor.dtype) && (tensor.name.starts_with("blk.") || tensor.name == "token_embd.weight");
}

std::uint64_t row_bytes(DType type, std::uint64_t values) {
  const auto block = formats::block_of(type);
  return values / block->values * block->bytes;
}

}  // namespace

RecodedSource::RecodedSource(std::shared_ptr<const ModelSource> model, DType format)
    : model_(std::move(model)), tensors_(model_->tensors().begin(), model_->tensors().end()) {
  for (TensorInfo& tensor : tensors_) {
    if (!is_recoded(tensor)) continue;
    tensor.dtype = tool::fitting(format, tensor.dims[0]);
    tensor.bytes = row_bytes(tensor.dtype, tensor.dims[0]) * tensor.dims[1] * tensor.dims[2] * tensor.dims[3];
  }
}

const TensorInfo* RecodedSource::find_tensor(std::string_view name) const noexcept {
  const auto at = std::ranges::find(tensors_, name, &TensorInfo::name);
  return at == tensors_.end() ? nullptr : &*at;
}

Status RecodedSource::read(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const noexcept {
  const TensorInfo& from = model_->tensors()[static_cast<std::size_t>(&tensor - tensors_.data())];
  if (from.dtype == tensor.dtype) return model_->read(from, offset, out);
  try {
    return read_recoded(from, tensor, offset, out);
  } catch (const std::exception&) {
    return Error(ErrorCode::out_of_memory, "no memory to encode a tensor");
  }
}

// Encodes the rows that contain the requested bytes.
Status RecodedSource::read_recoded(const TensorInfo& from, const TensorInfo& to, std::uint64_t offset, std::span<std::byte> out) const {
  const std::uint64_t from_bytes = row_bytes(from.dtype, from.dims[0]), to_bytes = row_bytes(to.dtype, to.dims[0]);
  std::vector<std::byte> old_row(from_bytes), new_row(to_bytes);
  std::vector<float> values(from.dims[0]);
  for (std::size_t done = 0; done < out.size();) {
    const std::uint64_t row = (offset + done) / to_bytes, skipped = (offset + done) % to_bytes;
    if (auto status = model_->read(from, row * from_bytes, old_row); !status) return status;
    if (auto status = formats::decode_row(from.dtype, old_row, values); !status) return status;
    if (auto status = formats::encode_row(to.dtype, values, new_row); !status) return status;
    const std::size_t count = std::min<std::size_t>(out.size() - done, to_bytes - skipped);
    std::memcpy(out.data() + done, new_row.data() + skipped, count);
    done += count;
  }
  return {};
}

}  // namespace tessera::quality
