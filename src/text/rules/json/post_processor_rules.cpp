#include "text/rules/json/post_processor_rules.hpp"

#include <array>
#include <span>
#include <utility>

namespace tessera::detail {
namespace {

constexpr std::size_t kMostInPlace = 64;  // limit for the tokens before a text, and for those after it

// Reads the pair ["[CLS]", 101] of BertProcessing and RobertaProcessing.
Result<std::int64_t> read_pair(const RuleReader& rule, std::string_view key) {
  const Json* pair = rule.json().find(key);
  const Json::Array* elements = pair == nullptr ? nullptr : pair->elements();
  const std::int64_t* id = elements == nullptr || elements->size() != 2 ? nullptr : (*elements)[1].integer();
  if (id == nullptr) return rule.error(ErrorCode::corrupt_file, key, "should be a token's text and its id");
  return *id;
}

// Appends the ids that "special_tokens" gives for one name of a template.
Status append_ids(const RuleReader& rule, const Json* names, std::string_view name, std::vector<std::int64_t>& out) {
  const Json* special = names == nullptr ? nullptr : names->find(name);
  const Json* ids = special == nullptr ? nullptr : special->find("ids");
  if (ids == nullptr || ids->elements() == nullptr) {
    return rule.error(ErrorCode::corrupt_file, "special_tokens", "has no ids for \"{}\", which the template names", printable(name));
  }
  for (const Json& id : *ids->elements()) {
    if (id.integer() == nullptr) return rule.error(ErrorCode::corrupt_file, "special_tokens", "the ids of \"{}\" are not integers", printable(name));
    if (out.size() == kMostInPlace) return rule.error(ErrorCode::unsupported, "", "puts more than {} tokens in one place", kMostInPlace);
    out.push_back(*id.integer());
  }
  return {};
}

// Reads a template of a post-processor, which says what tokens are put around one text, or around and between two texts. For one text,
// `lists` has two lists: the tokens before the text, and those after it. For two texts it has three: the tokens before the first text,
// between the texts, and after the second text. The tokens are appended to these lists. Sets `has_segments` to whether the last text has
// another segment number (type_id) than 0.
Status read_pieces(const RuleReader& rule, std::string_view key, std::span<std::vector<std::int64_t>* const> lists, bool& has_segments) {
  TESSERA_TRY(const std::vector<RuleReader> pieces, rule.list(key));
  std::size_t at = 0;
  for (const RuleReader& piece : pieces) {
    if (piece.json().find("Sequence") != nullptr) {
      TESSERA_TRY(const RuleReader sequence, piece.rule("Sequence"));
      TESSERA_TRY(const std::string_view id, sequence.text("id"));
      if (at + 1 == lists.size() || id != (at == 0 ? "A" : "B")) {
        return sequence.error(ErrorCode::unsupported, "id", "the template \"{}\" has the sequences in order, each once", key);
      }
      const Json* segment = sequence.json().find("type_id");
      has_segments = segment != nullptr && segment->integer() != nullptr && *segment->integer() != 0;
      ++at;
      continue;
    }
    TESSERA_TRY(const RuleReader special, piece.rule("SpecialToken"));
    TESSERA_TRY(const std::string_view name, special.text("id"));
    TESSERA_TRY_STATUS(append_ids(rule, rule.json().find("special_tokens"), name, *lists[at]));
  }
  if (at + 1 != lists.size()) return rule.error(ErrorCode::unsupported, key, "the template lacks a sequence, so that it drops a text");
  return {};
}

Result<Frame> read_template(const RuleReader& rule) {
  Frame frame;
  bool one_has_segments = false;
  TESSERA_TRY_STATUS(read_pieces(rule, "single", std::array{&frame.front, &frame.back}, one_has_segments));
  const Json* pair = rule.json().find("pair");
  if (pair == nullptr || pair->elements() == nullptr) return frame;
  Frame two;
  const Status read = read_pieces(rule, "pair", std::array{&two.pair_front, &two.pair_between, &two.pair_back}, two.has_segments);
  // A template with two texts in another order is ignored, because only reranking uses templates of two texts.
  if (!read && read.error().code() == ErrorCode::unsupported) return frame;
  TESSERA_TRY_STATUS(read);
  two.front = std::move(frame.front);
  two.back = std::move(frame.back);
  return two;
}

Status read_rule(const RuleReader& rule, Frame& frame) {
  TESSERA_TRY(const std::string_view type, rule.type());
  Frame added;
  if (type == "Sequence") {
    TESSERA_TRY(const std::vector<RuleReader> rules, rule.list("processors"));
    for (const RuleReader& one : rules) TESSERA_TRY_STATUS(read_rule(one, frame));
    return {};
  }
  if (type == "ByteLevel") return {};
  if (type == "TemplateProcessing") {
    TESSERA_TRY(added, read_template(rule));
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    TESSERA_TRY(const std::int64_t front, read_pair(rule, "cls"));
    TESSERA_TRY(const std::int64_t back, read_pair(rule, "sep"));
    const bool is_bert = type == "BertProcessing";
    added = {.front = {front},
             .back = {back},
             .pair_front = {front},
             .pair_between = std::vector<std::int64_t>(is_bert ? 1 : 2, back),
             .pair_back = {back},
             .has_segments = is_bert};
  } else {
    return rule.unknown("type", type, "Sequence, TemplateProcessing, ByteLevel, BertProcessing, RobertaProcessing");
  }
  frame.front.insert(frame.front.begin(), added.front.begin(), added.front.end());
  frame.back.insert(frame.back.end(), added.back.begin(), added.back.end());
  frame.pair_front = std::move(added.pair_front);
  frame.pair_between = std::move(added.pair_between);
  frame.pair_back = std::move(added.pair_back);
  frame.has_segments = added.has_segments;
  if (frame.front.size() > kMostInPlace || frame.back.size() > kMostInPlace) {
    return rule.error(ErrorCode::unsupported, "", "puts more than {} tokens in front of or behind a text", kMostInPlace);
  }
  return {};
}

}  // namespace

Result<Frame> read_frame(const Json& json) {
  Frame frame;
  if (!json.is_null()) TESSERA_TRY_STATUS(read_rule(RuleReader(json, "post_processor"), frame));
  return frame;
}

}  // namespace tessera::detail
