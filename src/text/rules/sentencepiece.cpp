#include "text/rules/sentencepiece.hpp"

#include <bit>

#include "text/rules/protobuf.hpp"
#include "text/tokenizer_metadata.hpp"

namespace tessera::detail {
namespace {

constexpr std::size_t kMostPieces = std::size_t{1} << 26;

Error unsupported(std::string_view field, std::string_view what) {
  return error_at(ErrorCode::unsupported, fmt::format("tokenizer.model: {}", field), "{}", what);
}

// A negative int32 has ten bytes in a file, as a 64-bit number.
std::int64_t as_int32(std::uint64_t value) noexcept { return static_cast<std::int32_t>(static_cast<std::uint32_t>(value)); }

// Calls act(field) for each field of a message.
template <class Act>
Status each_field(std::string_view message, const Act& act) {
  ProtobufReader reader(message);
  for (ProtobufField field;;) {
    Result<bool> more = reader.next(field);
    if (!more) return error_at(more.error().code(), "tokenizer.model", "{}", more.error().message());
    if (!*more) return {};
    TESSERA_TRY_STATUS(act(field));
  }
}

}  // namespace

Result<SentencePieceModel> SentencePieceModel::read(std::string_view bytes, const std::stop_token& stop) {
  SentencePieceModel model;
  TESSERA_TRY_STATUS(each_field(bytes, [&](const ProtobufField& field) -> Status {
    if (stop.stop_requested()) return loading_stopped();
    if (field.type != 2) return {};
    switch (field.number) {
      case 1: return model.read_piece(field.bytes);
      case 2: return model.read_trainer(field.bytes);
      case 3: return model.read_normalizer(field.bytes);
      case 5:
        return each_field(field.bytes, [&](const ProtobufField& of) -> Status {
          model.has_denormalizer_ |= of.number == 2 && of.type == 2 && !of.bytes.empty();
          return {};
        });
      default: return {};  // self-test data
    }
  }));
  TESSERA_TRY_STATUS(model.check());
  return model;
}

Status SentencePieceModel::read_piece(std::string_view message) {
  std::string_view text;
  float score = 0;
  std::uint64_t type = 1;
  TESSERA_TRY_STATUS(each_field(message, [&](const ProtobufField& field) -> Status {
    if (field.number == 1 && field.type == 2) text = field.bytes;
    if (field.number == 2 && field.type == 5) score = std::bit_cast<float>(static_cast<std::uint32_t>(field.integer));
    if (field.number == 3 && field.type == 0) type = field.integer;
    return {};
  }));
  if (type < 1 || type > 6) {
    return error_at(ErrorCode::corrupt_file, "tokenizer.model: pieces", "piece {} has type {}: types are 1 to 6", types_.size(), type);
  }
  if (types_.size() == kMostPieces) return unsupported("pieces", "there are more pieces than any vocabulary has");
  tokens_.add(text);
  types_.push_back(static_cast<std::int32_t>(type));
  scores_.push_back(score);
  return {};
}

Status SentencePieceModel::read_trainer(std::string_view message) {
  return each_field(message, [&](const ProtobufField& field) -> Status {
    if (field.type != 0) return {};
    switch (field.number) {
      case 3: model_type_ = field.integer; break;
      case 24: suffix_ = field.integer != 0; break;
      case 40: unknown_ = as_int32(field.integer); break;
      case 41: bos_ = as_int32(field.integer); break;
      case 42: eos_ = as_int32(field.integer); break;
      case 43: padding_ = as_int32(field.integer); break;
      default: break;
    }
    return {};
  });
}

Status SentencePieceModel::read_normalizer(std::string_view message) {
  return each_field(message, [&](const ProtobufField& field) -> Status {
    if (field.number == 2 && field.type == 2) charsmap_ = field.bytes;
    if (field.type != 0) return {};
    if (field.number == 3) add_space_prefix_ = field.integer != 0;
    if (field.number == 4) remove_extra_spaces_ = field.integer != 0;
    if (field.number == 5) escape_spaces_ = field.integer != 0;
    return {};
  });
}

Status SentencePieceModel::check() const {
  if (types_.empty()) return error_at(ErrorCode::corrupt_file, "tokenizer.model", "it has no pieces: it is not a SentencePiece model");
  if (model_type_ != 1 && model_type_ != 2) {
    return unsupported("trainer_spec.model_type", fmt::format("{} is not supported; tessera has UNIGRAM (1) and BPE (2)", model_type_));
  }
  if (suffix_) return unsupported("trainer_spec.treat_whitespace_as_suffix", "true is not supported");
  if (!escape_spaces_) return unsupported("normalizer_spec.escape_whitespaces", "false is not supported");
  if (has_denormalizer_) return unsupported("denormalizer_spec", "rules that change decoded text are not supported");
  if (model_type_ == 2 && !charsmap_.empty()) {
    return unsupported("normalizer_spec", "a BPE model with a normalizer other than identity is not supported: use the model's tokenizer.json");
  }
  if (model_type_ == 2 && remove_extra_spaces_) {
    return unsupported("normalizer_spec.remove_extra_whitespaces", "true is not supported in a BPE model: use the model's tokenizer.json");
  }
  return {};
}

std::optional<SettingValue> SentencePieceModel::View::own(Setting setting) const noexcept {
  const SentencePieceModel& m = model_;
  const auto id = [&](std::int64_t value) -> std::optional<SettingValue> {
    if (value < 0) return SettingValue(std::uint64_t{kNoToken});  // kNoToken says that there is no such token
    return SettingValue(static_cast<std::uint64_t>(value));
  };
  switch (setting) {
    case Setting::tokenizer_model: return SettingValue(std::string_view(m.model_type_ == 2 ? "llama" : "t5"));
    case Setting::tokens: return SettingValue(m.tokens_.values());
    case Setting::token_types: return SettingValue(ValueList(m.types_));
    case Setting::token_scores: return SettingValue(ValueList(m.scores_));
    case Setting::charsmap:
      if (m.charsmap_.empty()) return std::nullopt;
      return SettingValue(ValueList(ValueType::u8, m.charsmap_.size(), std::as_bytes(std::span(m.charsmap_))));
    case Setting::bos_token: return id(m.bos_);
    case Setting::eos_token: return id(m.eos_);
    case Setting::unknown_token: return id(m.unknown_);
    case Setting::padding_token: return id(m.padding_);
    case Setting::add_space_prefix: return SettingValue(m.add_space_prefix_);
    case Setting::remove_extra_spaces: return SettingValue(m.remove_extra_spaces_);
    default: return std::nullopt;
  }
}

std::optional<SettingValue> SentencePieceModel::View::find(Setting setting) const noexcept {
  switch (setting) {
    case Setting::tokenizer_model:
    case Setting::tokens:
    case Setting::token_types:
    case Setting::token_scores:
    case Setting::charsmap:
    case Setting::merges: return own(setting);
    default: break;
  }
  if (auto stated = others_.find(setting)) return stated;
  return own(setting);
}

std::string SentencePieceModel::View::called(Setting setting) const {
  switch (setting) {
    case Setting::tokens: return "tokenizer.model: pieces";
    case Setting::token_types: return "tokenizer.model: pieces.type";
    case Setting::token_scores: return "tokenizer.model: pieces.score";
    case Setting::charsmap: return "tokenizer.model: normalizer_spec.precompiled_charsmap";
    default: break;
  }
  if (others_.has(setting)) return others_.called(setting);
  return "tokenizer.model: " + std::string(to_string(setting));
}

}  // namespace tessera::detail
