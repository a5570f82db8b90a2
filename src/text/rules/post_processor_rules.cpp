#include "text/rules/post_processor_rules.hpp"

namespace tessera::detail {
namespace {

constexpr std::size_t kMostTokens = 64;  // in front of a text, or behind

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
    out.push_back(*id.integer());
  }
  return {};
}

Result<Frame> read_template(const RuleReader& rule) {
  TESSERA_TRY(const std::vector<RuleReader> pieces, rule.list("single"));
  Frame frame;
  bool behind = false;
  for (const RuleReader& piece : pieces) {
    if (piece.json().find("Sequence") != nullptr) {
      TESSERA_TRY(const RuleReader sequence, piece.rule("Sequence"));
      TESSERA_TRY(const std::string_view id, sequence.text("id"));
      if (behind || id != "A") return sequence.error(ErrorCode::unsupported, "id", "a template for one text has the sequence A, once");
      behind = true;
      continue;
    }
    TESSERA_TRY(const RuleReader special, piece.rule("SpecialToken"));
    TESSERA_TRY(const std::string_view name, special.text("id"));
    TESSERA_TRY_STATUS(append_ids(rule, rule.json().find("special_tokens"), name, behind ? frame.back : frame.front));
  }
  if (!behind) return rule.error(ErrorCode::unsupported, "single", "the template has no sequence A, so that it drops the text");
  return frame;
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
    added = {{front}, {back}};
  } else {
    return rule.unknown("type", type, "Sequence, TemplateProcessing, ByteLevel, BertProcessing, RobertaProcessing");
  }
  frame.front.insert(frame.front.begin(), added.front.begin(), added.front.end());
  frame.back.insert(frame.back.end(), added.back.begin(), added.back.end());
  if (frame.front.size() > kMostTokens || frame.back.size() > kMostTokens) {
    return rule.error(ErrorCode::unsupported, "", "puts more than {} tokens in front of or behind a text", kMostTokens);
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
