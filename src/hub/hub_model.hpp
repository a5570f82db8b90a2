// A model as hubs publish it: a folder with config.json, the tokenizer's files, and the weights in *.safetensors. As a ModelSource it has
// the settings and tensors that the same model has in GGUF. What a converter to GGUF does with a tensor (rows in another order, 1 added to
// each number, ...) is done here each time the tensor is read.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include <tessera/extend/files/model_source.hpp>

#include "files/safetensors/safetensors_folder.hpp"
#include "hub/hub_settings.hpp"
#include "hub/quantised/quantisation.hpp"
#include "hub/recipe.hpp"
#include "hub/table.hpp"

namespace tessera::detail::hub {

class HubModel final : public ModelSource {
 public:
  // Opens a folder, and reads its configurations and the headers of its safetensors files. Errors (the message names the file and the
  // key or tensor): not_found; corrupt_file; unsupported; io; cancelled, by `stop`.
  [[nodiscard]] static Result<std::shared_ptr<const ModelSource>> open(const std::filesystem::path& folder, const std::stop_token& stop);

  [[nodiscard]] const Settings& settings() const noexcept override { return settings_; }
  [[nodiscard]] std::span<const TensorInfo> tensors() const noexcept override { return infos_; }
  [[nodiscard]] const TensorInfo* find_tensor(std::string_view name) const noexcept override;
  [[nodiscard]] Status read(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const noexcept override;
  [[nodiscard]] std::string called(std::string_view name) const override;
  [[nodiscard]] Result<InputRounding> input_rounding(const TensorInfo& tensor) const noexcept override;
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept override;
  [[nodiscard]] std::string wrong_shape(const TensorInfo& tensor, const std::array<std::uint64_t, 4>& wanted) const override;

 private:
  friend class TensorList;
  struct Made {
    std::string name;  // the library's name
    Recipe recipe;
  };

  // Returns the layer's number in the names of the folder's tensors.
  [[nodiscard]] std::uint32_t layer_in_folder(std::uint32_t layer) const noexcept;
  // Returns whether the layer has its own weights; false: it uses the weights of the layer before.
  [[nodiscard]] bool has_weights(std::uint32_t layer) const noexcept;
  [[nodiscard]] Status read_ordered(const Recipe& recipe, std::uint64_t offset, std::span<std::byte> out) const;
  [[nodiscard]] Status read_whole(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const;
  [[nodiscard]] Status read_part(const Recipe& recipe, std::uint32_t part, std::uint64_t offset, std::span<std::byte> out) const;

  const Table* table_ = nullptr;
  std::uint32_t n_layers_ = 0;  // without draft heads
  std::uint32_t n_groups_ = 0;  // ALBERT: groups of layers that share weights; tensors' names have the number of the group. 0: no groups
  std::string prefix_;  // prefix of the names of the language model's tensors: "model."
  SafetensorsFolder folder_;
  HubSettings settings_;
  Quantisation quantisation_;
  std::vector<Made> made_;
  std::vector<TensorInfo> infos_;                // one for each element of made_
  std::vector<std::uint32_t> by_name_;           // indices of infos_, sorted by name
  std::uint64_t largest_whole_ = 0;              // bytes of the largest tensor that read_whole() makes
  std::uint64_t largest_staged_ = 0;             // bytes of the largest matrix that must be read whole to be decoded
  // The tensor that read_whole() made last, since loading reads a tensor in several pieces.
  mutable std::mutex mutex_;
  mutable const TensorInfo* last_ = nullptr;
  mutable std::vector<std::byte> last_bytes_;
  mutable std::mutex matrix_mutex_;
  mutable const Matrix* last_matrix_ = nullptr;  // the matrix that was read last, which may keep memory
};

}  // namespace tessera::detail::hub
