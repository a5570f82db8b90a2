#include "importance.hpp"

#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace tessera::quantize {
namespace {

constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";

template <class... Args>
Error damaged(std::string_view tensor, fmt::format_string<Args...> text, Args&&... args) {
  return {ErrorCode::corrupt_file, fmt::format(text, std::forward<Args>(args)...), std::string(tensor)};
}

Result<std::vector<float>> read_floats(const ModelFile& file, const GgufTensor& tensor) {
  std::vector<float> values(tensor.bytes / sizeof(float));
  if (auto ok = file.read(tensor, 0, std::as_writable_bytes(std::span(values))); !ok) return std::move(ok).error();
  for (const float value : values) {
    if (!std::isfinite(value) || value < 0) return damaged(tensor.name, "has {} among its values: the importance matrix is damaged", value);
  }
  return values;
}

// Checks that the sums fit the tensor of this model.
Status check_fit(std::string_view name, const GgufTensor& sums, const GgufTensor* weights) {
  const auto wrong = [&](std::string what) {
    return Error(ErrorCode::invalid_argument, what + ": the importance matrix belongs to another model", std::string(name));
  };
  if (weights == nullptr) return wrong("the model has no such tensor");
  if (sums.dims[0] != weights->dims[0]) {
    return wrong(fmt::format("the model has {} inputs, the importance matrix {}", weights->dims[0], sums.dims[0]));
  }
  if (sums.dims[1] != weights->dims[2]) {
    return wrong(fmt::format("the model has {} matrices in the tensor, the importance matrix {}", weights->dims[2], sums.dims[1]));
  }
  return {};
}

}  // namespace

Result<Importance> Importance::read(const std::filesystem::path& path, const ModelSource& model) {
  const auto file = ModelFile::open(path);
  if (!file) return file.error();
  auto type = file->metadata().string_or("general.type", "model");
  if (!type) return type.error();
  if (*type != "imatrix") {
    return Error(ErrorCode::invalid_argument, fmt::format("is no importance matrix: its general.type is \"{}\", not \"imatrix\"", *type),
                 path.string());
  }
  Importance importance;
  for (const GgufTensor& sums : file->tensors()) {
    if (!sums.name.ends_with(kSums)) continue;
    const std::string_view name = sums.name.substr(0, sums.name.size() - kSums.size());
    if (auto ok = check_fit(name, sums, model.find_tensor(name)); !ok) return std::move(ok).error();
    const GgufTensor* counts = file->find_tensor(std::string(name) + std::string(kCounts));
    if (counts == nullptr) return damaged(name, "its {} are missing: the importance matrix is damaged", kCounts.substr(1));
    const std::uint64_t inputs = sums.dims[0], matrices = sums.dims[1];
    if (sums.dtype != DType::f32 || counts->dtype != DType::f32 || sums.bytes != inputs * matrices * sizeof(float) ||
        counts->bytes != matrices * sizeof(float)) {
      return damaged(name, "sums of {} bytes and counts of {} do not fit {} inputs of {} matrices", sums.bytes, counts->bytes, inputs,
                     matrices);
    }
    auto means = read_floats(*file, sums);
    if (!means) return means.error();
    const auto rows = read_floats(*file, *counts);
    if (!rows) return rows.error();
    for (std::size_t i = 0; i < means->size(); ++i) {
      const float count = (*rows)[i / inputs];
      (*means)[i] = count > 0 ? (*means)[i] / count : 0;
    }
    importance.means_.emplace(name, *std::move(means));
  }
  if (importance.empty()) return Error(ErrorCode::corrupt_file, "an importance matrix of no tensor", path.string());
  return importance;
}

const std::vector<float>* Importance::of(std::string_view tensor) const {
  const auto found = means_.find(tensor);
  return found == means_.end() ? nullptr : &found->second;
}

}  // namespace tessera::quantize
