#include "imatrix.hpp"

#include <algorithm>

#include <tessera/extend/files/gguf_writer.hpp>

namespace tessera::quality {
namespace {

constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";

}  // namespace

bool InputSums::Sums::any() const noexcept {
  return std::ranges::any_of(counts, [](std::uint64_t count) { return count != 0; });
}

InputSums::InputSums(const ModelSource& model) {
  for (const TensorInfo& tensor : model.tensors()) {
    if (tensor.n_dims < 2 || !tensor.name.ends_with(".weight")) continue;
    const std::uint64_t inputs = tensor.dims[0], matrices = tensor.dims[2];
    sums_.emplace(tensor.name, Sums{inputs, matrices, std::vector<double>(inputs * matrices), std::vector<std::uint64_t>(matrices)});
  }
}

void InputSums::see(std::string_view tensor, std::uint32_t matrix, std::span<const float> input) noexcept {
  const auto found = sums_.find(tensor);
  if (found == sums_.end()) return;
  Sums& sums = found->second;
  if (matrix >= sums.matrices || input.size() != sums.inputs) return;
  ++sums.counts[matrix];
  double* squares = sums.squares.data() + matrix * sums.inputs;
  for (std::size_t i = 0; i < input.size(); ++i) squares[i] += double{input[i]} * double{input[i]};
}

Status InputSums::write(const std::filesystem::path& path, const std::filesystem::path& source, const Documents& documents) const {
  GgufWriter writer;
  std::size_t longest = 0;
  for (const auto& document : documents) longest = std::max(longest, document.size());
  const std::string sources[] = {source.filename().string()};
  if (auto ok = writer.set_string("general.type", "imatrix"); !ok) return ok;
  if (auto ok = writer.set_array("imatrix.datasets", sources); !ok) return ok;
  if (auto ok = writer.set("imatrix.chunk_count", static_cast<std::uint32_t>(documents.size())); !ok) return ok;
  if (auto ok = writer.set("imatrix.chunk_size", static_cast<std::uint32_t>(longest)); !ok) return ok;
  for (const auto& [name, sums] : sums_) {
    if (!sums.any()) continue;
    const std::uint64_t of_sums[] = {sums.inputs, sums.matrices}, of_counts[] = {1, sums.matrices};
    if (auto ok = writer.add_tensor(name + std::string(kSums), DType::f32, of_sums); !ok) return ok;
    if (auto ok = writer.add_tensor(name + std::string(kCounts), DType::f32, of_counts); !ok) return ok;
  }
  return writer.write_file(path, [&](std::string_view name, const ByteSink& sink) -> Status {
    const bool is_sums = name.ends_with(kSums);
    const Sums& sums = sums_.find(name.substr(0, name.size() - (is_sums ? kSums : kCounts).size()))->second;
    const std::size_t n = is_sums ? sums.squares.size() : sums.counts.size();
    std::vector<float> values(n);
    for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>(is_sums ? sums.squares[i] : static_cast<double>(sums.counts[i]));
    return sink(std::as_bytes(std::span(values)));
  });
}

}  // namespace tessera::quality
