#include "text/rules/tekken.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/printable.hpp"
#include "json/pull_reader.hpp"
#include "json/spelling.hpp"
#include "text/models/byte_alphabet.hpp"
#include "text/rules/base64.hpp"
#include "text/tokenizer_metadata.hpp"

namespace tessera::detail {
namespace {

constexpr std::uint64_t kMostTokens = std::uint64_t{1} << 22;
constexpr std::size_t kLongestToken = 4096;  // in bytes; the longest known one has 128

// Control tokens of files that do not list theirs (mistral-common, Tekkenizer.DEPRECATED_SPECIAL_TOKENS).
constexpr std::string_view kFirstSpecial[] = {
    "<unk>",           "<s>",          "</s>",        "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]",       "<pad>",  "[IMG_BREAK]", "[IMG_END]",     "[PREFIX]",           "[MIDDLE]",
    "[SUFFIX]",        "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"};

class TekkenReader {
 public:
  TekkenReader(std::string_view text, const std::stop_token& stop) : json_(text), stop_(stop) {}

  Result<std::string> run() {
    if (Status status = read(); !status) {
      const Error& error = status.error();
      if (error.code() == ErrorCode::out_of_memory || error.code() == ErrorCode::cancelled) return error;
      return error_at(error.code(), "tekken.json", "{}", error.message());
    }
    return write();
  }

 private:
  Status read() {
    std::string key;
    const auto member = [&]() -> Status {
      if (key == "config") return read_config();
      if (key == "vocab") return read_vocabulary();
      if (key == "special_tokens") return read_special();
      return json_.skip();
    };
    TESSERA_TRY_STATUS(json_.members(key, kLongestToken, member));
    TESSERA_TRY_STATUS(json_.end());
    if (pattern_.empty()) return json_.error("config.pattern is missing");
    if (special_count_ == 0 || special_count_ > kMostTokens || size_ <= special_count_ || size_ > kMostTokens) {
      return json_.fail(ErrorCode::corrupt_file, "config: default_vocab_size is {} and default_num_special_tokens is {}: the first must be larger", size_,
                        special_count_);
    }
    return check();
  }

  // Cuts the vocabulary to the tokens that the model has, and checks that there is exactly one token of each rank.
  Status check() {
    const std::size_t wanted = static_cast<std::size_t>(size_ - special_count_);
    if (tokens_.size() < wanted) return json_.fail(ErrorCode::corrupt_file, "vocab has {} tokens, and config says {}", tokens_.size(), wanted);
    tokens_.resize(wanted);
    for (std::uint32_t rank = 0; rank < tokens_.size(); ++rank) {
      if (tokens_[rank].empty()) return json_.fail(ErrorCode::corrupt_file, "vocab has no token of rank {}", rank);
      if (!ranks_.emplace(tokens_[rank], rank).second) return json_.fail(ErrorCode::corrupt_file, "the token of rank {} stands twice in vocab", rank);
    }
    for (int byte = 0; byte < 256; ++byte) {
      const char c = static_cast<char>(byte);
      if (!ranks_.contains(std::string_view(&c, 1))) return json_.fail(ErrorCode::corrupt_file, "vocab has no token of the byte {}", byte);
    }
    if (special_.empty()) special_.assign(std::begin(kFirstSpecial), std::end(kFirstSpecial));
    if (special_.size() > special_count_) {
      return json_.fail(ErrorCode::corrupt_file, "there are {} control tokens, and config says {}", special_.size(), special_count_);
    }
    for (std::size_t id = 0; id < special_count_; ++id) {
      if (id >= special_.size()) special_.emplace_back();
      if (special_[id].empty()) special_[id] = fmt::format("<SPECIAL_{}>", id);
    }
    return {};
  }

  Status read_config() {
    std::string key;
    return json_.members(key, kLongestToken, [&]() -> Status {
      if (key == "pattern") return json_.string(pattern_, std::size_t{16} << 10);
      std::uint64_t* const count = key == "default_vocab_size" ? &size_ : key == "default_num_special_tokens" ? &special_count_ : nullptr;
      if (count == nullptr) return json_.skip();
      TESSERA_TRY(*count, json_.unsigned_integer());
      return {};
    });
  }

  Status read_vocabulary() {
    std::string key, written;
    std::uint64_t rank = 0;
    std::optional<std::string> bytes;
    const auto member = [&]() -> Status {
      if (key == "rank") {
        TESSERA_TRY(rank, json_.unsigned_integer());
        return {};
      }
      if (key != "token_bytes") return json_.skip();
      TESSERA_TRY_STATUS(json_.string(written, 2 * kLongestToken));
      bytes = base64_bytes(written);
      return bytes ? Status() : json_.error("token_bytes is not base64");
    };
    return json_.elements([&]() -> Status {
      if (stop_.stop_requested()) return loading_stopped();
      rank = kMostTokens;
      bytes.reset();
      TESSERA_TRY_STATUS(json_.members(key, kLongestToken, member));
      if (!bytes || bytes->empty()) return json_.error("a token has no token_bytes");
      if (rank >= kMostTokens) return json_.fail(ErrorCode::corrupt_file, "a token has no rank below {}", kMostTokens);
      if (rank > 2 * tokens_.size() + 65'536) return json_.fail(ErrorCode::corrupt_file, "rank {} follows {} tokens", rank, tokens_.size());
      if (rank >= tokens_.size()) tokens_.resize(static_cast<std::size_t>(rank) + 1);
      if (!tokens_[rank].empty()) return json_.fail(ErrorCode::corrupt_file, "two tokens have rank {}", rank);
      tokens_[rank] = *std::move(bytes);
      return {};
    });
  }

  Status read_special() {
    TESSERA_TRY(const JsonPullReader::Type type, json_.type());
    if (type == JsonPullReader::Type::null) return json_.null();
    std::string key, text;
    std::uint64_t rank = 0;
    const auto member = [&]() -> Status {
      if (key == "rank") {
        TESSERA_TRY(rank, json_.unsigned_integer());
        return {};
      }
      return key == "token_str" ? json_.string(text, kLongestToken) : json_.skip();
    };
    return json_.elements([&]() -> Status {
      rank = kMostTokens;
      text.clear();
      TESSERA_TRY_STATUS(json_.members(key, kLongestToken, member));
      if (rank > special_.size() + 65'536) return json_.fail(ErrorCode::corrupt_file, "special_tokens: rank {} follows {} tokens", rank, special_.size());
      if (rank >= special_.size()) special_.resize(static_cast<std::size_t>(rank) + 1);
      special_[rank] = text;
      return {};
    });
  }

  [[nodiscard]] static std::string spelled(std::string_view bytes) {
    std::string text, json;
    spell_bytes(bytes, text);
    append_json_string(json, text);
    return json;
  }

  Result<std::string> write() {
    std::string out = R"({"added_tokens":[)";
    for (std::size_t id = 0; id < special_.size(); ++id) {
      out += fmt::format(R"({}{{"id":{},"special":true,"content":)", id == 0 ? "" : ",", id);
      append_json_string(out, special_[id]);
      out += '}';
    }
    out += R"(],"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","behavior":"Isolated","pattern":{"Regex":)";
    append_json_string(out, pattern_);
    out += R"(}},{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]},"decoder":{"type":"ByteLevel"},)";
    if (const auto bos = std::ranges::find(special_, "<s>"); bos != special_.end()) {
      out += fmt::format(R"("post_processor":{{"type":"TemplateProcessing","single":[{{"SpecialToken":{{"id":"<s>","type_id":0}}}},)"
                         R"({{"Sequence":{{"id":"A","type_id":0}}}}],"special_tokens":{{"<s>":{{"id":"<s>","ids":[{}],"tokens":["<s>"]}}}}}},)",
                         bos - special_.begin());
    }
    out += R"("model":{"type":"BPE","ignore_merges":true,"ranks_of_results":true,"vocab":{)";
    for (std::uint32_t rank = 0; rank < tokens_.size(); ++rank) {
      out += fmt::format("{}{}:{}", rank == 0 ? "" : ",", spelled(tokens_[rank]), rank + special_count_);
    }
    out += R"(},"merges":[)";
    for (std::uint32_t rank = 0; rank < tokens_.size(); ++rank) {
      if (stop_.stop_requested()) return loading_stopped();
      const std::string_view token = tokens_[rank];
      for (std::size_t cut = 1; cut < token.size(); ++cut) {
        const auto left = ranks_.find(token.substr(0, cut)), right = ranks_.find(token.substr(cut));
        if (left == ranks_.end() || right == ranks_.end()) continue;
        if (out.back() != '[') out += ',';
        out.append("[").append(spelled(token.substr(0, cut))).append(",").append(spelled(token.substr(cut))).append("]");
      }
    }
    out += "]}}";
    return out;
  }

  JsonPullReader json_;
  const std::stop_token& stop_;
  std::string pattern_;
  std::uint64_t size_ = 0, special_count_ = 0;  // tokens of the whole vocabulary, and control tokens at its beginning
  std::vector<std::string> tokens_;             // [rank]: the token's bytes
  std::vector<std::string> special_;            // [id]
  std::unordered_map<std::string_view, std::uint32_t> ranks_;
};

}  // namespace

Result<std::string> tekken_tokenizer_json(std::string_view tekken_json, const std::stop_token& stop) {
  return TekkenReader(tekken_json, stop).run();
}

}  // namespace tessera::detail
