#include "text/rules/json/decoder_rules.hpp"

#include "core/utf8.hpp"
#include "text/rules/json/pattern.hpp"
#include "text/rules/json/splitter_rules.hpp"

namespace tessera::detail {
namespace {

using DecoderStepKind = DecoderStep::Kind;

constexpr std::string_view kKnownDecoders = "Sequence, ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace, WordPiece, BPEDecoder";
constexpr std::uint64_t kMostStripped = 255;

class DecoderReader {
 public:
  Status read(const RuleReader& rule) {
    TESSERA_TRY(const std::string_view type, rule.type());
    if (type == "Sequence") {
      TESSERA_TRY(const std::vector<RuleReader> rules, rule.list("decoders"));
      for (const RuleReader& one : rules) TESSERA_TRY_STATUS(read(one));
    } else if (type == "Fuse") {
      fused_ = true;
    } else if (type == "Strip") {
      return read_strip(rule);
    } else if (type == "Replace") {
      return read_replace(rule);
    } else if (type == "ByteFallback") {
      if (!fused_) steps_.push_back({.kind = DecoderStepKind::byte_fallback});
    } else if (type == "CTC") {
      return rule.error(ErrorCode::unsupported, "type", "\"CTC\" decodes speech, which tessera does not; it has {}", kKnownDecoders);
    } else {
      return read_of_tokens(rule, type);
    }
    return {};
  }

  [[nodiscard]] Decoder make() && { return Decoder(std::move(steps_), std::move(stripped_), strips_); }

 private:
  // Reads a decoder that treats a token according to its place among the tokens.
  Status read_of_tokens(const RuleReader& rule, std::string_view type) {
    const bool known = type == "ByteLevel" || type == "Metaspace" || type == "WordPiece" || type == "BPEDecoder";
    if (!known) return rule.unknown("type", type, kKnownDecoders);
    if (fused_) return rule.error(ErrorCode::unsupported, "type", "\"{}\" behind a decoder that joins the tokens is not supported", type);
    if (type == "ByteLevel") {
      steps_.push_back({.kind = DecoderStepKind::bytes});
      fused_ = true;
    } else if (type == "Metaspace") {
      TESSERA_TRY(MetaspaceRule read, read_metaspace(rule));
      steps_.push_back({.kind = DecoderStepKind::metaspace, .text = std::move(read.mark), .drops_first = read.scheme != PrependScheme::never});
    } else if (type == "WordPiece") {
      TESSERA_TRY(const std::string_view prefix, rule.text_or("prefix", "##"));
      TESSERA_TRY(const bool cleans, rule.boolean_or("cleanup", true));
      steps_.push_back({.kind = DecoderStepKind::word_piece, .text = std::string(prefix)});
      if (cleans) steps_.push_back({.kind = DecoderStepKind::clean_up});
    } else {
      TESSERA_TRY(const std::string_view suffix, rule.text_or("suffix", "</w>"));
      steps_.push_back({.kind = DecoderStepKind::end_of_word, .text = std::string(suffix)});
    }
    return {};
  }

  Status read_strip(const RuleReader& rule) {
    TESSERA_TRY(const std::string_view content, rule.text_or("content", " "));
    TESSERA_TRY(const std::uint64_t left, rule.size_or("start", 0));
    TESSERA_TRY(const std::uint64_t right, rule.size_or("stop", 0));
    if (content.empty() || utf8_step(content).size != content.size()) {
      return rule.error(ErrorCode::corrupt_file, "content", "should be one character");
    }
    if (!fused_) {
      steps_.push_back({.kind = DecoderStepKind::strip, .text = std::string(content), .left = left, .right = right});
      return {};
    }
    if (right > 0) {
      return rule.error(ErrorCode::unsupported, "stop", "characters at the end of the whole text cannot be dropped from a stream: 0 is supported");
    }
    if (left > kMostStripped || (strips_ > 0 && left > 0)) {
      return rule.error(ErrorCode::unsupported, "start", "at most {} characters are dropped at the beginning of the text, by one rule", kMostStripped);
    }
    if (left > 0) {
      stripped_ = content;
      strips_ = static_cast<std::uint8_t>(left);
    }
    return {};
  }

  Status read_replace(const RuleReader& rule) {
    TESSERA_TRY(Regex pattern, read_pattern(rule, "pattern"));
    TESSERA_TRY(const std::string_view content, rule.text("content"));
    if (fused_) {
      const Json* written = rule.json().find("pattern")->find("String");
      const std::string* text = written == nullptr ? nullptr : written->string();
      if (text == nullptr || text->empty() || utf8_step(*text).size != text->size() || strips_ > 0) {
        return rule.error(ErrorCode::unsupported, "pattern",
                          "behind a decoder that joins the tokens, only one character can be replaced: a stream does not have the whole text");
      }
    }
    steps_.push_back({.kind = DecoderStepKind::replace, .pattern = std::move(pattern), .text = std::string(content)});
    return {};
  }

  std::vector<DecoderStep> steps_;
  bool fused_ = false;  // true: from here on all tokens are joined to one text
  std::string stripped_;
  std::uint8_t strips_ = 0;
};

}  // namespace

Result<Decoder> read_decoder(const Json& json) {
  if (json.is_null()) {
    std::vector<DecoderStep> steps;
    steps.push_back({.kind = DecoderStepKind::spaces});
    return Decoder(std::move(steps), {}, 0);
  }
  DecoderReader reader;
  TESSERA_TRY_STATUS(reader.read(RuleReader(json, "decoder")));
  return std::move(reader).make();
}

}  // namespace tessera::detail
