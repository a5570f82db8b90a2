#include "text/rules/old_files.hpp"

#include <algorithm>
#include <cstdint>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "json/pull_reader.hpp"
#include "json/spelling.hpp"

namespace tessera::detail {
namespace {

// Calls act(line, number) for each line of a text, without its newline.
template <class Act>
void each_line(std::string_view text, const Act& act) {
  for (std::size_t number = 0; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    act(line, number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void append_added(std::string& out, std::string_view text, std::int64_t id) {
  if (out.back() != '[') out += ',';
  out += fmt::format(R"({{"id":{},"special":true,"content":)", id);
  append_json_string(out, text);
  out += '}';
}

}  // namespace

Result<std::string> gpt2_tokenizer_json(std::string_view vocab_json, std::string_view merges_txt,
                                        std::span<const std::string_view> special, bool add_prefix_space) {
  std::string out = R"({"added_tokens":[)";
  JsonPullReader json(vocab_json);
  TESSERA_TRY_STATUS(json.begin_object());
  std::size_t found = 0;
  for (std::string key;;) {
    TESSERA_TRY(const bool more, json.next_key(key));
    if (!more) break;
    TESSERA_TRY(const std::int64_t id, json.integer());
    for (const std::string_view text : special) {
      if (text != key) continue;
      append_added(out, text, id);
      ++found;
    }
  }
  if (found < special.size()) {
    return error_at(ErrorCode::invalid_argument, "vocab.json", "has {} of the {} control tokens that tokenizer_config.json names", found, special.size());
  }
  out += fmt::format(R"(],"pre_tokenizer":{{"type":"ByteLevel","add_prefix_space":{},"use_regex":true}},"decoder":{{"type":"ByteLevel"}},)"
                     R"("model":{{"type":"BPE","vocab":)",
                     add_prefix_space);
  out.append(vocab_json).append(R"(,"merges":[)");
  each_line(merges_txt, [&](std::string_view line, std::size_t number) {
    if (line.empty() || (number == 0 && line.starts_with("#version"))) return;
    if (out.back() != '[') out += ',';
    append_json_string(out, line);
  });
  out += "]}}";
  return out;
}

Result<std::string> bert_tokenizer_json(std::string_view vocab_txt, bool lower_case) {
  std::string vocab, added = "[";
  std::int64_t cls = -1, sep = -1, unknown = -1;
  each_line(vocab_txt, [&](std::string_view line, std::size_t number) {
    const auto id = static_cast<std::int64_t>(number);
    if (!vocab.empty()) vocab += ',';
    append_json_string(vocab, line);
    vocab += fmt::format(":{}", id);
    if (line == "[CLS]") cls = id;
    if (line == "[SEP]") sep = id;
    if (line == "[UNK]") unknown = id;
    for (const std::string_view text : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
      if (line == text) append_added(added, text, id);
    }
  });
  if (cls < 0 || sep < 0 || unknown < 0) {
    return error_at(ErrorCode::corrupt_file, "vocab.txt", "has no [UNK], [CLS] or [SEP]: it is not a vocabulary of BERT");
  }
  return fmt::format(R"({{"added_tokens":{}],"normalizer":{{"type":"BertNormalizer","lowercase":{}}},"pre_tokenizer":{{"type":"BertPreTokenizer"}},)"
                     R"("post_processor":{{"type":"BertProcessing","cls":["[CLS]",{}],"sep":["[SEP]",{}]}},"decoder":{{"type":"WordPiece"}},)"
                     R"("model":{{"type":"WordPiece","unk_token":"[UNK]","vocab":{{{}}}}}}})",
                     added, lower_case, cls, sep, vocab);
}

}  // namespace tessera::detail
