// A model without some layers, heads and FFN columns of another model (structured pruning).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/extend/files/gguf_writer.hpp>
#include <tessera/extend/files/model_source.hpp>
#include <tessera/extend/model/model_spec.hpp>

namespace tessera::convert {

// A layer that is kept.
struct KeptLayer {
  std::uint32_t index;                  // its number in the whole model
  std::vector<std::uint32_t> groups;    // KV heads that are kept, ascending, each with its query heads
  std::vector<std::uint32_t> columns;   // columns of the FFN that are kept, ascending
};

// The layers that are kept, ascending. whole_cut() keeps everything.
using Cut = std::vector<KeptLayer>;
[[nodiscard]] Cut whole_cut(const ModelSpec& spec);

// Returns an error if layers of this model cannot be cut. Each layer must be a decoder's layer with attention and a gated FFN, without a
// window, and all of its tensors must be tensors that the program knows how to cut.
[[nodiscard]] Status check_prunable(const ModelSource& model, const ModelSpec& spec);

// Presents what is left of a pruned model as a model of its own, whose tensors can be read. Reads rows of the original and leaves out cut
// rows and columns. Columns are copied as whole blocks of the matrix's format, so the kept columns of a quantised matrix must be whole
// blocks (see column_unit()).
class PrunedSource final : public ModelSource {
 public:
  // Preconditions: check_prunable() returned no error; `cut` fits the model, and its columns are whole blocks.
  PrunedSource(std::shared_ptr<const ModelSource> model, const ModelSpec& spec, const Cut& cut);

  [[nodiscard]] const Settings& settings() const noexcept override { return settings_; }
  [[nodiscard]] std::span<const TensorInfo> tensors() const noexcept override { return tensors_; }
  [[nodiscard]] const TensorInfo* find_tensor(std::string_view name) const noexcept override;
  [[nodiscard]] Status read(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const noexcept override;
  [[nodiscard]] std::string called(std::string_view name) const override { return std::string(name); }
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept override;

  // Sets the keys of a GGUF file that differ from the whole model's keys, under the names that the whole model's GGUF file uses.
  [[nodiscard]] Status write_keys(GgufWriter& writer) const;

 private:
  // The whole model's settings, with other numbers of layers, heads and FFN columns.
  class CutSettings final : public Settings {
   public:
    explicit CutSettings(const Settings& whole) noexcept : whole_(whole) {}
    [[nodiscard]] std::optional<SettingValue> find(Setting setting) const noexcept override;
    [[nodiscard]] std::string called(Setting setting) const override { return whole_.called(setting); }
    [[nodiscard]] std::string origin() const override { return whole_.origin(); }
    [[nodiscard]] std::optional<std::string_view> chat_template(std::string_view name) const noexcept override { return whole_.chat_template(name); }

    std::uint32_t key_dim = 0, value_dim = 0;
    std::vector<std::int32_t> heads, kv_heads, columns;  // one element a layer

   private:
    const Settings& whole_;
  };

  // The part of a tensor that is kept. An empty list keeps everything.
  struct KeptPart {
    std::uint32_t tensor;                // index in the whole model's tensors
    std::vector<std::uint32_t> rows;     // kept rows of a matrix
    std::vector<std::uint32_t> blocks;   // kept blocks of each row, in blocks of the format
  };

  void add(std::uint32_t tensor, std::string name, const KeptLayer* kept, const LayerSpec* layer);
  [[nodiscard]] Status read_part(const KeptPart& part, const TensorInfo& to, std::uint64_t offset, std::span<std::byte> out) const;

  std::shared_ptr<const ModelSource> model_;
  CutSettings settings_;
  std::vector<std::string> names_;
  std::vector<TensorInfo> tensors_;
  std::vector<KeptPart> parts_;  // one for each of tensors_
};

}  // namespace tessera::convert
