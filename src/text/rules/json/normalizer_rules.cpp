#include "text/rules/json/normalizer_rules.hpp"

#include "text/rules/base64.hpp"
#include "text/rules/json/pattern.hpp"

namespace tessera::detail {
namespace {

using NormalizerStepKind = NormalizerStep::Kind;
using NormalizerSteps = std::vector<NormalizerStep>;

constexpr std::string_view kKnownNormalizers =
    "Sequence, NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Replace, Prepend, Append, Strip, BertNormalizer, Precompiled, ByteLevel, Nmt";

constexpr std::pair<std::string_view, NormalForm> kForms[] = {
    {"NFC", {false, true}}, {"NFD", {false, false}}, {"NFKC", {true, true}}, {"NFKD", {true, false}}};

Status read_bert(const RuleReader& rule, NormalizerSteps& steps) {
  TESSERA_TRY(const bool clean, rule.boolean_or("clean_text", true));
  TESSERA_TRY(const bool ideographs, rule.boolean_or("handle_chinese_chars", true));
  TESSERA_TRY(const bool lower, rule.boolean_or("lowercase", true));
  TESSERA_TRY(const bool strip, rule.boolean_or("strip_accents", lower));
  if (clean) steps.push_back({.kind = NormalizerStepKind::clean});
  if (ideographs) steps.push_back({.kind = NormalizerStepKind::surround_ideographs});
  if (strip) {
    steps.push_back({.kind = NormalizerStepKind::normal_form, .form = {false, false}});
    steps.push_back({.kind = NormalizerStepKind::remove_nonspacing});
  }
  if (lower) steps.push_back({.kind = NormalizerStepKind::lower_case});
  return {};
}

Status read_charsmap(const RuleReader& rule, NormalizerSteps& steps) {
  TESSERA_TRY(const std::string_view written, rule.text_or("precompiled_charsmap", ""));
  const std::optional<std::string> blob = base64_bytes(written);
  if (!blob) return rule.error(ErrorCode::corrupt_file, "precompiled_charsmap", "is not base64");
  if (const Status good = Charsmap::check(*blob); !good) {
    return rule.error(good.error().code(), "precompiled_charsmap", "{}", good.error().message());
  }
  steps.push_back({.kind = NormalizerStepKind::charsmap, .map = Charsmap(*blob)});
  return {};
}

Status read_rule(const RuleReader& rule, NormalizerSteps& steps) {
  TESSERA_TRY(const std::string_view type, rule.type());
  for (const auto& [name, form] : kForms) {
    if (type != name) continue;
    steps.push_back({.kind = NormalizerStepKind::normal_form, .form = form});
    return {};
  }
  if (type == "Sequence") {
    TESSERA_TRY(const std::vector<RuleReader> rules, rule.list("normalizers"));
    for (const RuleReader& one : rules) TESSERA_TRY_STATUS(read_rule(one, steps));
  } else if (type == "Lowercase") {
    steps.push_back({.kind = NormalizerStepKind::lower_case});
  } else if (type == "StripAccents") {
    steps.push_back({.kind = NormalizerStepKind::remove_marks});
  } else if (type == "Replace") {
    TESSERA_TRY(Regex pattern, read_pattern(rule, "pattern"));
    TESSERA_TRY(const std::string_view content, rule.text("content"));
    steps.push_back({.kind = NormalizerStepKind::replace, .pattern = std::move(pattern), .text = std::string(content)});
  } else if (type == "Prepend" || type == "Append") {
    const bool prepend = type == "Prepend";
    TESSERA_TRY(const std::string_view text, rule.text(prepend ? "prepend" : "append"));
    steps.push_back({.kind = prepend ? NormalizerStepKind::prepend : NormalizerStepKind::append, .text = std::string(text)});
  } else if (type == "Strip") {
    TESSERA_TRY(const bool left, rule.boolean_or("strip_left", true));
    TESSERA_TRY(const bool right, rule.boolean_or("strip_right", true));
    steps.push_back({.kind = NormalizerStepKind::strip, .left = left, .right = right});
  } else if (type == "BertNormalizer") {
    TESSERA_TRY_STATUS(read_bert(rule, steps));
  } else if (type == "Precompiled") {
    TESSERA_TRY_STATUS(read_charsmap(rule, steps));
  } else if (type == "ByteLevel") {
    steps.push_back({.kind = NormalizerStepKind::bytes});
  } else if (type == "Nmt") {
    steps.push_back({.kind = NormalizerStepKind::nmt});
  } else {
    return rule.unknown("type", type, kKnownNormalizers);
  }
  return {};
}

}  // namespace

Result<Normalizer> read_normalizer(const Json& json) {
  NormalizerSteps steps;
  if (!json.is_null()) TESSERA_TRY_STATUS(read_rule(RuleReader(json, "normalizer"), steps));
  return Normalizer(std::move(steps));
}

}  // namespace tessera::detail
