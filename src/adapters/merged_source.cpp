#include "adapters/merged_source.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <tessera/extend/formats/rows.hpp>

#include "adapters/adapter_base.hpp"
#include "adapters/adapter_builder.hpp"
#include "adapters/merged_rows.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"
#include "files/sorted_names.hpp"
#include "model/load/roles.hpp"
#include "os/file.hpp"

namespace tessera::detail {

namespace {

using adapters::RowChange;

constexpr std::uint64_t kMostReadAtOnce = std::uint64_t{1} << 20;  // limit for the bytes of the model's rows that are read at once

// Returns numbers as F32. F32 numbers are not copied; other numbers are converted, and the F32 numbers are stored in `kept`.
const float* viewed_as_f32(DType dtype, const std::vector<std::byte>& bytes, std::vector<float>& kept) {
  if (dtype == DType::f32) return reinterpret_cast<const float*>(bytes.data());
  kept = adapters::widened(dtype, bytes);
  return kept.data();
}

std::uint64_t bytes_of_tensor(const AdapterTensor& tensor) noexcept {
  return sizeof tensor + tensor.a.capacity() + tensor.b.capacity() + tensor.lengths.capacity() * sizeof(float);
}

// Returns how many bytes the F32 copies of a change's matrices take. 0 if the matrices are F32, because F32 matrices are not copied.
std::uint64_t widened_bytes(const AdapterTensor& tensor) noexcept {
  if (tensor.dtype == DType::f32) return 0;
  return 2 * (tensor.a.size() + (tensor.is_embedding ? tensor.b.size() : 0));
}

}  // namespace

struct MergedSource::Change {
  const AdapterTensor* tensor;
  double scale;
};

struct MergedSource::Prepared {
  std::vector<RowChange> changes;
  std::vector<std::vector<float>> widened;
};

Result<std::shared_ptr<const ModelSource>> MergedSource::make(std::shared_ptr<const ModelSource> base, std::span<const MergedAdapter> adapters,
                                                              const std::stop_token& stop) {
  auto source = std::make_shared<MergedSource>();
  source->base_ = std::move(base);
  const auto all = source->base_->tensors();
  source->infos_.reserve(all.size() + 1);
  source->merged_.reserve(all.size() + 1);
  source->infos_.assign(all.begin(), all.end());
  for (const TensorInfo& info : all) source->merged_.push_back({&info, {}});
  const std::vector<AdaptedTensor> tensors = adapted_tensors(*source->base_);
  const AdapterBase facts = adapter_base_of(*source->base_, tensors);
  for (const MergedAdapter& own : adapters) {
    const std::string place = os::text_of(own.path);
    if (!std::isfinite(own.scale)) return error_at(ErrorCode::invalid_argument, place, "the scale is {}; expected a number", own.scale);
    TESSERA_TRY(AdapterFile file, read_adapter(own.path, facts, stop));
    TESSERA_TRY_STATUS(source->add(std::make_shared<const AdapterFile>(std::move(file)), own.scale, tensors, place));
  }
  source->by_name_ = sorted_indices(source->infos_, [](const TensorInfo& info) { return info.name; });
  return std::shared_ptr<const ModelSource>(std::move(source));
}

Status MergedSource::add(std::shared_ptr<const AdapterFile> file, float scale, std::span<const AdaptedTensor> tensors, const std::string& place) {
  if (!file->invocation.empty()) {
    return error_at(ErrorCode::unsupported, place,
                    "the adapter is active only behind its invocation tokens (aLoRA), and merged weights always are: use it unmerged");
  }
  for (const AdapterTensor& tensor : file->tensors) {
    TESSERA_TRY(const std::size_t index, changed_index(tensor, tensors[tensor.tensor].name, place));
    merged_[index].changes.push_back({&tensor, static_cast<double>(tensor.scale) * scale});
  }
  files_.push_back(std::move(file));
  return {};
}

// Returns the index in infos_ of the tensor that a change belongs to. Error: unsupported, the tensor cannot be written.
Result<std::size_t> MergedSource::changed_index(const AdapterTensor& tensor, const std::string& name, const std::string& place) {
  const auto at = std::ranges::find(infos_, std::string_view(name), &TensorInfo::name);
  auto index = static_cast<std::size_t>(at - infos_.begin());
  const TensorInfo& info = infos_[index];
  if (!formats::writing_of(info.dtype)) {
    return error_at(
        ErrorCode::unsupported, place,
        "{} is {} in the model, which tessera reads and does not write: merge into the model in another format, or use the adapter unmerged",
        printable(name), to_string(info.dtype));
  }
  constexpr std::string_view kWeight = "weight";
  if (name.ends_with(kWeight) && base_->find_tensor(name.substr(0, name.size() - kWeight.size()) + "scale") != nullptr) {
    return error_at(ErrorCode::unsupported, place,
                    "{} has scale factors of its own in the model: merge into the model in another format, or use the adapter unmerged",
                    printable(name));
  }
  const std::string_view table = row_of(Role::token_embd).name;
  if (name != table || base_->find_tensor(row_of(Role::output).name) != nullptr) return index;
  // In a tied model, the table is also the output matrix. The adapter changes only one of these two uses, so the table and the output
  // matrix become two tensors.
  const std::size_t output = untied_output();
  return tensor.is_embedding ? index : output;
}

// Returns the index of the output matrix of a tied model. Adds the output matrix to infos_ at the first call.
std::size_t MergedSource::untied_output() {
  if (infos_.size() > base_->tensors().size()) return infos_.size() - 1;
  const TensorInfo* table = base_->find_tensor(row_of(Role::token_embd).name);
  infos_.push_back(*table);
  infos_.back().name = row_of(Role::output).name;
  merged_.push_back({table, {}});
  return infos_.size() - 1;
}

const TensorInfo* MergedSource::find_tensor(std::string_view name) const noexcept {
  return find_sorted(infos_, by_name_, name, [](const TensorInfo& info) { return info.name; });
}

std::shared_ptr<const MergedSource::Prepared> MergedSource::prepared(std::size_t index) const {
  {
    const std::lock_guard lock(mutex_);
    if (last_prepared_ != nullptr && last_ == index) return last_prepared_;
    last_prepared_ = nullptr;
  }
  auto made = std::make_shared<Prepared>();
  const std::vector<Change>& changes = merged_[index].changes;
  made->widened.resize(2 * changes.size());
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const AdapterTensor& tensor = *changes[i].tensor;
    made->changes.push_back({.tensor = &tensor,
                             .a = viewed_as_f32(tensor.dtype, tensor.a, made->widened[2 * i]),
                             .b = tensor.is_embedding ? viewed_as_f32(tensor.dtype, tensor.b, made->widened[2 * i + 1]) : nullptr,
                             .scale = changes[i].scale});
  }
  const std::lock_guard lock(mutex_);
  last_ = index;
  last_prepared_ = made;
  return made;
}

Status MergedSource::read_merged(std::size_t index, std::uint64_t offset, std::span<std::byte> out) const {
  const TensorInfo& info = infos_[index];
  const std::uint64_t inputs = info.dims[0], outputs = info.dims[1];
  const formats::Block block = *formats::block_of(info.dtype);
  const std::uint64_t row_bytes = inputs / block.values * block.bytes;
  const std::uint64_t rows_at_once = std::max<std::uint64_t>(1, kMostReadAtOnce / row_bytes);
  const auto changes = prepared(index);
  std::vector<std::byte> rows;
  std::vector<float> values(inputs);
  std::vector<double> buffer(2 * inputs);
  while (!out.empty()) {
    const std::uint64_t first = offset / row_bytes, in_row = offset % row_bytes;
    const std::uint64_t n = std::min(rows_at_once, (in_row + out.size() + row_bytes - 1) / row_bytes);
    rows.resize(n * row_bytes);
    TESSERA_TRY_STATUS(base_->read(*merged_[index].own, first * row_bytes, rows));
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::span<std::byte> row = std::span(rows).subspan(i * row_bytes, row_bytes);
      TESSERA_TRY_STATUS(formats::decode_row(info.dtype, row, values));
      adapters::merge_row(changes->changes, (first + i) / outputs, outputs, (first + i) % outputs, values, buffer);
      TESSERA_TRY_STATUS(formats::encode_row(info.dtype, values, row));
    }
    const std::uint64_t size = std::min<std::uint64_t>(rows.size() - in_row, out.size());
    std::memcpy(out.data(), rows.data() + in_row, size);
    out = out.subspan(size);
    offset += size;
  }
  return {};
}

Status MergedSource::read(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const noexcept {
  return guard([&]() -> Status {
    const auto index = static_cast<std::size_t>(&tensor - infos_.data());
    const Merged& merged = merged_[index];
    if (merged.changes.empty()) return base_->read(*merged.own, offset, out);
    if (offset > tensor.bytes || out.size() > tensor.bytes - offset) {
      return error_at(ErrorCode::invalid_argument, fmt::format("tensor {}", printable(tensor.name)), "cannot read {} bytes at {} of its {} bytes",
                      out.size(), offset, tensor.bytes);
    }
    return read_merged(index, offset, out);
  });
}

std::string MergedSource::wrong_shape(const TensorInfo& tensor, const std::array<std::uint64_t, 4>& wanted) const {
  return base_->wrong_shape(*merged_[static_cast<std::size_t>(&tensor - infos_.data())].own, wanted);
}

Result<InputRounding> MergedSource::input_rounding(const TensorInfo& tensor) const noexcept {
  const auto index = static_cast<std::size_t>(&tensor - infos_.data());
  return index < base_->tensors().size() ? base_->input_rounding(base_->tensors()[index]) : InputRounding();
}

std::uint64_t MergedSource::memory_bytes() const noexcept {
  std::uint64_t bytes = base_->memory_bytes() + sizeof *this + infos_.capacity() * sizeof(TensorInfo) + merged_.capacity() * sizeof(Merged) +
                        by_name_.capacity() * sizeof(std::uint32_t);
  for (const auto& file : files_) {
    for (const AdapterTensor& tensor : file->tensors) bytes += bytes_of_tensor(tensor);
  }
  std::uint64_t most_prepared = 0, most_inputs = 0;
  for (std::size_t i = 0; i < merged_.size(); ++i) {
    if (merged_[i].changes.empty()) continue;
    std::uint64_t of_tensor = 0;
    for (const Change& change : merged_[i].changes) of_tensor += sizeof(Change) + sizeof(RowChange) + widened_bytes(*change.tensor);
    most_prepared = std::max(most_prepared, of_tensor);
    most_inputs = std::max(most_inputs, infos_[i].dims[0]);
  }
  if (most_prepared != 0) bytes += most_prepared + kMostReadAtOnce + most_inputs * (sizeof(float) + 2 * sizeof(double));
  return bytes;
}

}  // namespace tessera::detail
