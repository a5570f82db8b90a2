#include "text/rules/json/model_reader.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "text/rules/json/serde_number.hpp"

namespace tessera::detail {
namespace {

constexpr std::size_t kMostTextBytes = std::size_t{1} << 30;
constexpr std::size_t kLongestOption = std::size_t{64} << 10;
constexpr std::int64_t kMostIds = std::numeric_limits<std::int32_t>::max() / 2;

}  // namespace

Error json_error_at(std::string_view place, const Error& error) {
  if (error.code() == ErrorCode::out_of_memory || error.code() == ErrorCode::cancelled) return error;
  return error_at(error.code(), fmt::format("tokenizer.json: {}", place), "{}", error.message());
}

Status ModelReader::read() {
  const auto named = [](std::string_view place, Status status) -> Status {
    return status ? std::move(status) : json_error_at(place, status.error());
  };
  TESSERA_TRY_STATUS(named("model", json_.begin_object()));
  for (std::string key;;) {
    Result<bool> more = json_.next_key(key);
    if (!more) return json_error_at("model", more.error());
    if (!*more) break;
    if (key == "vocab") {
      TESSERA_TRY_STATUS(named("model.vocab", read_vocabulary()));
    } else if (key == "merges") {
      TESSERA_TRY_STATUS(named("model.merges", read_merges()));
    } else {
      TESSERA_TRY_STATUS(named(fmt::format("model.{}", printable(key)), read_option(key)));
    }
  }
  return finish();
}

Status ModelReader::add_entry(std::string_view text, std::int64_t id) {
  if (id < 0 || id > kMostIds) return json_.error(fmt::format("token id {}; ids are 0 to {}", id, kMostIds));
  if (texts.size() + text.size() > kMostTextBytes) return json_.error("more than 1 GiB of texts");
  entries.push_back({static_cast<std::uint32_t>(id), static_cast<std::uint32_t>(texts.size()), static_cast<std::uint32_t>(text.size())});
  texts.append(text);
  return {};
}

// Reads {"text": id, ...}, or the list [["text", score], ...] of Unigram.
Status ModelReader::read_vocabulary() {
  if (std::exchange(has_vocabulary_, true)) return json_.error("stands twice");
  TESSERA_TRY(const JsonPullReader::Type type, json_.type());
  std::string text;
  if (type == JsonPullReader::Type::object) {
    TESSERA_TRY_STATUS(json_.begin_object());
    for (;;) {
      if (stop_.stop_requested() && entries.size() % 4096 == 0) return loading_stopped();
      TESSERA_TRY(const bool more, json_.next_key(text));
      if (!more) return {};
      TESSERA_TRY(const std::int64_t id, json_.integer());
      TESSERA_TRY_STATUS(add_entry(text, id));
    }
  }
  TESSERA_TRY_STATUS(json_.begin_array());
  for (;;) {
    if (stop_.stop_requested() && entries.size() % 4096 == 0) return loading_stopped();
    TESSERA_TRY(const bool more, json_.next_element());
    if (!more) return {};
    TESSERA_TRY_STATUS(json_.begin_array());
    TESSERA_TRY(const bool has_text, json_.next_element());
    if (!has_text) return json_.error("expected a text and a score");
    TESSERA_TRY_STATUS(json_.string(text));
    TESSERA_TRY(const bool has_score, json_.next_element());
    if (!has_score) return json_.error("expected a text and a score");
    TESSERA_TRY(const std::string_view written, json_.written_number());
    const double score = serde_number(written);
    TESSERA_TRY(const bool has_third, json_.next_element());
    if (has_third) return json_.error("expected a text and a score, and nothing else");
    TESSERA_TRY_STATUS(add_entry(text, static_cast<std::int64_t>(entries.size())));
    scores.push_back(score + 0.0);
    least_score = std::min(least_score, score);
  }
}

// Reads ["left right", ...] or [["left", "right"], ...].
Status ModelReader::read_merges() {
  if (std::exchange(has_merges_, true)) return json_.error("stands twice");
  TESSERA_TRY_STATUS(json_.begin_array());
  std::string left, right;
  for (;;) {
    if (stop_.stop_requested() && merges.size() % 4096 == 0) return loading_stopped();
    TESSERA_TRY(const bool more, json_.next_element());
    if (!more) return {};
    if (merges.size() / 2 >= static_cast<std::uint64_t>(kMostIds)) return json_.error("too many merges");
    TESSERA_TRY(const JsonPullReader::Type type, json_.type());
    if (type == JsonPullReader::Type::string) {
      TESSERA_TRY_STATUS(json_.string(left));
      if (left.starts_with("#version")) continue;
      const std::size_t space = left.find(' ');
      if (space == left.npos || left.find(' ', space + 1) != left.npos) {
        return json_.error(fmt::format("merge {} is not two tokens with a space between them", merges.size() / 2));
      }
      merges.add(std::string_view(left).substr(0, space));
      merges.add(std::string_view(left).substr(space + 1));
      continue;
    }
    TESSERA_TRY_STATUS(json_.begin_array());
    for (std::string* part : {&left, &right}) {
      TESSERA_TRY(const bool has_part, json_.next_element());
      if (!has_part) return json_.error(fmt::format("merge {} is not two tokens", merges.size() / 2));
      TESSERA_TRY_STATUS(json_.string(*part));
    }
    TESSERA_TRY(const bool has_third, json_.next_element());
    if (has_third) return json_.error(fmt::format("merge {} is not two tokens", merges.size() / 2));
    merges.add(left);
    merges.add(right);
  }
}

Status ModelReader::read_option(const std::string& key) {
  TESSERA_TRY(const std::string_view written, json_.skipped());
  if (written.size() > kLongestOption) return json_.error("an option this long is not supported");
  TESSERA_TRY(Json value, Json::parse(written));
  options_.set(key, std::move(value));
  return {};
}

Status ModelReader::finish() {
  const RuleReader rule(options_, "model");
  TESSERA_TRY(std::string_view type, rule.text_or("type", ""));
  if (type.empty()) {  // files of the first versions do not name the type
    type = has_merges_ ? "BPE" : !scores.empty() ? "Unigram" : rule.has("max_input_chars_per_word") ? "WordPiece" : "WordLevel";
  }
  if (!has_vocabulary_) return rule.error(ErrorCode::corrupt_file, "vocab", "is missing");
  const bool is_unigram = type == "Unigram";
  if (!entries.empty() && is_unigram == scores.empty()) {
    return rule.error(ErrorCode::corrupt_file, "vocab", "{}", is_unigram ? "should be a list of texts and scores" : "should be an object of texts and ids");
  }
  TESSERA_TRY(rules.bpe.byte_fallback, rule.boolean_or("byte_fallback", false));
  if (is_unigram) {
    rules.type = WordModel::unigram;
    if (rule.has("unk_id")) {
      TESSERA_TRY(const std::uint64_t id, rule.size_or("unk_id", 0));
      if (id >= entries.size()) return rule.error(ErrorCode::corrupt_file, "unk_id", "{} is not in a vocabulary of {}", id, entries.size());
      rules.unknown_id = static_cast<std::int64_t>(id);
    }
    for (const double score : scores) {
      if (std::isnan(score) || std::isinf(score)) return rule.error(ErrorCode::corrupt_file, "vocab", "a score is not a number");
    }
  } else if (rule.has("unk_token")) {
    TESSERA_TRY(const std::string_view unknown, rule.text("unk_token"));
    rules.unknown_text = std::string(unknown);
  }
  if (type == "BPE") {
    TESSERA_TRY_STATUS(read_bpe(rule));
  } else if (type == "WordPiece") {
    rules.type = WordModel::word_piece;
    TESSERA_TRY(rules.word_piece.longest_word, rule.size_or("max_input_chars_per_word", 100));
    TESSERA_TRY(const std::string_view prefix, rule.text_or("continuing_subword_prefix", "##"));
    rules.word_piece.prefix = prefix;
  } else if (type == "WordLevel") {
    rules.type = WordModel::word_level;
  } else if (!is_unigram) {
    return rule.unknown("type", type, "BPE, Unigram, WordPiece, WordLevel");
  }
  options = options_.dump();
  return {};
}

Status ModelReader::read_bpe(const RuleReader& rule) {
  rules.type = WordModel::bpe;
  if (!has_merges_) return rule.error(ErrorCode::corrupt_file, "merges", "is missing");
  if (rule.has("dropout")) {
    const Json& dropout = *rule.json().find("dropout");
    const bool zero = (dropout.integer() != nullptr && *dropout.integer() == 0) || (dropout.number() != nullptr && *dropout.number() == 0.0);
    if (!zero) return rule.error(ErrorCode::unsupported, "dropout", "drops merges at random, which is for training: set it to null");
  }
  TESSERA_TRY(rules.bpe.fuse_unknown, rule.boolean_or("fuse_unk", false));
  TESSERA_TRY(rules.bpe.ignore_merges, rule.boolean_or("ignore_merges", false));
  TESSERA_TRY(rules.bpe.ranks_of_results, rule.boolean_or("ranks_of_results", false));  // only in the texts of tekken_tokenizer_json()
  TESSERA_TRY(const std::string_view prefix, rule.text_or("continuing_subword_prefix", ""));
  TESSERA_TRY(const std::string_view suffix, rule.text_or("end_of_word_suffix", ""));
  rules.bpe.prefix = prefix;
  rules.bpe.suffix = suffix;
  return {};
}

}  // namespace tessera::detail
