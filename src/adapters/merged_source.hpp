// MergedSource is a model whose weights include adapters. It wraps the model's own source, so that the engine loads merged weights like any
// model's. A row is merged when it is read: the model's row is decoded, scale * B A is added in float64, and the sum is rounded once, to
// the tensor's format.
//
// If there are several adapters, they are applied in the order of the list. A plain adapter adds scale * B A to the result of the adapters
// before it. A DoRA adapter adds its scale * B A too. Then it multiplies the row by length / |W + scale * B A|, where W is the model's own
// row, without the adapters before (as PEFT computes it).
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <vector>

#include <tessera/extend/adapters/merged_adapter.hpp>
#include <tessera/extend/files/model_source.hpp>

#include "adapters/adapter_file.hpp"

namespace tessera::detail {

class MergedSource final : public ModelSource {
 public:
  // Reads the adapters, and checks that each can be merged. Errors: those of read_adapter(); unsupported, an adapter has an invocation, or
  // tessera cannot write the format of a tensor; invalid_argument, a scale is not a number.
  [[nodiscard]] static Result<std::shared_ptr<const ModelSource>> make(std::shared_ptr<const ModelSource> base,
                                                                       std::span<const MergedAdapter> adapters, const std::stop_token& stop);

  [[nodiscard]] const Settings& settings() const noexcept override { return base_->settings(); }
  [[nodiscard]] std::span<const TensorInfo> tensors() const noexcept override { return infos_; }
  [[nodiscard]] const TensorInfo* find_tensor(std::string_view name) const noexcept override;
  [[nodiscard]] Status read(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const noexcept override;
  [[nodiscard]] std::string called(std::string_view name) const override { return base_->called(name); }
  [[nodiscard]] std::string wrong_shape(const TensorInfo& tensor, const std::array<std::uint64_t, 4>& wanted) const override;
  [[nodiscard]] Result<InputRounding> input_rounding(const TensorInfo& tensor) const noexcept override;
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept override;

  struct Change;    // one adapter's change of one tensor
  struct Prepared;  // matrices A of a tensor's changes, as F32

 private:
  struct Merged {
    const TensorInfo* own = nullptr;  // the base's tensor
    std::vector<Change> changes;      // empty: the tensor is the base's
  };

  [[nodiscard]] Status add(std::shared_ptr<const AdapterFile> file, float scale, std::span<const AdaptedTensor> tensors, const std::string& place);
  [[nodiscard]] Result<std::size_t> changed_index(const AdapterTensor& tensor, const std::string& name, const std::string& place);
  [[nodiscard]] std::size_t untied_output();
  [[nodiscard]] std::shared_ptr<const Prepared> prepared(std::size_t index) const;
  [[nodiscard]] Status read_merged(std::size_t index, std::uint64_t offset, std::span<std::byte> out) const;

  std::shared_ptr<const ModelSource> base_;
  std::vector<std::shared_ptr<const AdapterFile>> files_;
  std::vector<TensorInfo> infos_;  // the base's tensors, in its order; then the output matrix, if the model was untied
  std::vector<Merged> merged_;     // one for each element of infos_
  std::vector<std::uint32_t> by_name_;
  // The tensor that was read last, and its changes as F32. They are kept because loading reads a tensor in several pieces.
  mutable std::mutex mutex_;
  mutable std::size_t last_ = 0;
  mutable std::shared_ptr<const Prepared> last_prepared_;
};

}  // namespace tessera::detail
