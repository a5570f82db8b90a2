// Reads SentencePiece's tokenizer.model, and presents it as the settings that a GGUF file would have. The file is a protobuf message
// ModelProto (sentencepiece_model.proto, Kudo & Richardson, 2018).
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/extend/files/settings.hpp>

#include "text/rules/text_list.hpp"

namespace tessera::detail {

class SentencePieceModel {
 public:
  // Reads the bytes of a file. Errors: corrupt_file, the bytes are not a ModelProto; unsupported, a model (word, char) or an option that
  // tessera does not have; cancelled.
  [[nodiscard]] static Result<SentencePieceModel> read(std::string_view bytes, const std::stop_token& stop);

  [[nodiscard]] std::uint64_t memory_bytes() const noexcept {
    return tokens_.memory_bytes() + types_.capacity() * sizeof(std::int32_t) + scores_.capacity() * sizeof(float);
  }

  // The model's settings together with `others`. The vocabulary (tokens, types, scores, charsmap) comes from the model. Every other setting
  // comes from `others` if it is there, else from the model.
  class View final : public Settings {
   public:
    View(const SentencePieceModel& model, const Settings& others) noexcept : model_(model), others_(others) {}
    [[nodiscard]] std::optional<SettingValue> find(Setting setting) const noexcept override;
    [[nodiscard]] std::string called(Setting setting) const override;
    [[nodiscard]] std::string origin() const override { return others_.origin(); }
    [[nodiscard]] Status status() const noexcept override { return others_.status(); }

   private:
    [[nodiscard]] std::optional<SettingValue> own(Setting setting) const noexcept;

    const SentencePieceModel& model_;
    const Settings& others_;
  };

 private:
  [[nodiscard]] Status read_piece(std::string_view message);
  [[nodiscard]] Status read_trainer(std::string_view message);
  [[nodiscard]] Status read_normalizer(std::string_view message);
  [[nodiscard]] Status check() const;

  TextList tokens_;
  std::vector<std::int32_t> types_;
  std::vector<float> scores_;
  std::string_view charsmap_;  // in the file's bytes
  bool add_space_prefix_ = true, remove_extra_spaces_ = true, escape_spaces_ = true, suffix_ = false;
  bool has_denormalizer_ = false;
  std::uint64_t model_type_ = 1;
  std::int64_t unknown_ = 0, bos_ = 1, eos_ = 2, padding_ = -1;
};

}  // namespace tessera::detail
