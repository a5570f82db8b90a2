#include "text/rules/json/splitter_rules.hpp"

#include "core/utf8.hpp"
#include "text/rules/json/pattern.hpp"
#include "text/tokenizer_metadata.hpp"

namespace tessera::detail {
namespace {

using SplitStepKind = SplitStep::Kind;
using SplitSteps = std::vector<SplitStep>;

constexpr std::string_view kKnownSplitters =
    "Sequence, Split, ByteLevel, Digits, Metaspace, Whitespace, WhitespaceSplit, BertPreTokenizer, Punctuation, CharDelimiterSplit, "
    "FixedLength";

constexpr std::string_view kGpt2Pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

constexpr std::pair<std::string_view, SplitBehavior> kBehaviors[] = {{"Removed", SplitBehavior::removed},
                                                                     {"Isolated", SplitBehavior::isolated},
                                                                     {"Contiguous", SplitBehavior::contiguous},
                                                                     {"MergedWithPrevious", SplitBehavior::merged_with_previous},
                                                                     {"MergedWithNext", SplitBehavior::merged_with_next}};

Result<SplitBehavior> read_behavior(const RuleReader& rule, std::string_view absent) {
  TESSERA_TRY(const std::string_view written, rule.text_or("behavior", absent));
  for (const auto& [name, behavior] : kBehaviors) {
    if (written == name) return behavior;
  }
  return rule.unknown("behavior", written, "Removed, Isolated, Contiguous, MergedWithPrevious, MergedWithNext");
}

Status read_byte_level(const RuleReader& rule, SplitSteps& steps) {
  TESSERA_TRY(const bool prefix, rule.boolean_or("add_prefix_space", true));
  TESSERA_TRY(const bool regex, rule.boolean_or("use_regex", true));
  if (prefix) steps.push_back({.kind = SplitStepKind::prefix_space});
  if (regex) {
    TESSERA_TRY(Regex pattern, Regex::compile(kGpt2Pattern));
    steps.push_back({.kind = SplitStepKind::pattern, .behavior = SplitBehavior::isolated, .pattern = std::move(pattern)});
  }
  steps.push_back({.kind = SplitStepKind::bytes});
  return {};
}

Status read_rule(const RuleReader& rule, SplitSteps& steps) {
  TESSERA_TRY(const std::string_view type, rule.type());
  if (type == "Sequence") {
    TESSERA_TRY(const std::vector<RuleReader> rules, rule.list("pretokenizers"));
    for (const RuleReader& one : rules) TESSERA_TRY_STATUS(read_rule(one, steps));
  } else if (type == "Split") {
    TESSERA_TRY(Regex pattern, read_pattern(rule, "pattern"));
    TESSERA_TRY(const SplitBehavior behavior, read_behavior(rule, ""));
    TESSERA_TRY(const bool invert, rule.boolean_or("invert", false));
    steps.push_back({.kind = SplitStepKind::pattern, .behavior = behavior, .invert = invert, .pattern = std::move(pattern)});
  } else if (type == "ByteLevel") {
    TESSERA_TRY_STATUS(read_byte_level(rule, steps));
  } else if (type == "Digits") {
    TESSERA_TRY(const bool single, rule.boolean_or("individual_digits", false));
    steps.push_back({.kind = SplitStepKind::numeric, .behavior = single ? SplitBehavior::isolated : SplitBehavior::contiguous});
  } else if (type == "Metaspace") {
    TESSERA_TRY(MetaspaceRule read, read_metaspace(rule));
    steps.push_back({.kind = SplitStepKind::metaspace, .mark = std::move(read.mark), .scheme = read.scheme, .splits = read.splits});
  } else if (type == "Whitespace") {
    steps.push_back({.kind = SplitStepKind::words});
  } else if (type == "WhitespaceSplit") {
    steps.push_back({.kind = SplitStepKind::white_space});
  } else if (type == "BertPreTokenizer") {
    steps.push_back({.kind = SplitStepKind::white_space});
    steps.push_back({.kind = SplitStepKind::punctuation, .behavior = SplitBehavior::isolated});
  } else if (type == "Punctuation") {
    TESSERA_TRY(const SplitBehavior behavior, read_behavior(rule, "Isolated"));
    steps.push_back({.kind = SplitStepKind::punctuation, .behavior = behavior});
  } else if (type == "CharDelimiterSplit") {
    TESSERA_TRY(const std::string_view text, rule.text("delimiter"));
    if (text.empty() || utf8_step(text).size != text.size()) {
      return rule.error(ErrorCode::corrupt_file, "delimiter", "should be one character");
    }
    std::size_t at = 0;
    steps.push_back({.kind = SplitStepKind::delimiter, .delimiter = next_code_point(text, at)});
  } else if (type == "FixedLength") {
    TESSERA_TRY(const std::uint64_t length, rule.size_or("length", 5));
    if (length == 0) return rule.error(ErrorCode::corrupt_file, "length", "should be at least 1");
    steps.push_back({.kind = SplitStepKind::fixed_length, .length = static_cast<std::size_t>(length)});
  } else {
    return rule.unknown("type", type, kKnownSplitters);
  }
  return {};
}

}  // namespace

Result<MetaspaceRule> read_metaspace(const RuleReader& rule) {
  TESSERA_TRY(const std::string_view mark, rule.text_or("replacement", kSpaceMark));
  if (mark.empty() || utf8_step(mark).size != mark.size()) {
    return rule.error(ErrorCode::corrupt_file, "replacement", "should be one character");
  }
  TESSERA_TRY(const bool adds, rule.boolean_or("add_prefix_space", true));
  TESSERA_TRY(const bool splits, rule.boolean_or("split", true));
  TESSERA_TRY(const std::string_view written, rule.text_or("prepend_scheme", adds ? "always" : "never"));
  MetaspaceRule read{std::string(mark), PrependScheme::never, splits};
  if (written == "always") {
    read.scheme = PrependScheme::always;
  } else if (written == "first") {
    read.scheme = PrependScheme::first;
  } else if (written != "never") {
    return rule.unknown("prepend_scheme", written, "always, first, never");
  }
  if (!adds) read.scheme = PrependScheme::never;
  return read;
}

Result<Splitter> read_splitter(const Json& json) {
  SplitSteps steps;
  if (!json.is_null()) TESSERA_TRY_STATUS(read_rule(RuleReader(json, "pre_tokenizer"), steps));
  return Splitter(std::move(steps));
}

}  // namespace tessera::detail
