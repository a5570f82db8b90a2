// Changed config.json, tokenizer.json and tokenizer.model files are refused with a proper error, or load soundly. TESSERA_TEST_FOLDERS: how many
// of each are tried. (Headers and indexes of safetensors files: tests/files/test_safetensors_mutated.cpp.)
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <tessera/json/json.hpp>

#include "hub/folder.hpp"
#include "text/json_rig.hpp"

namespace test_mutated_folders {

using namespace tessera;
using namespace tessera::test;
namespace fs = std::filesystem;

int tries() {
  const char* given = std::getenv("TESSERA_TEST_FOLDERS");
  return given != nullptr ? std::atoi(given) : 600;
}

class Mutations {
 public:
  explicit Mutations(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }

  // Makes one to four changes of the kinds that break parsers of JSON, and readers that believe numbers.
  void change_json(std::string& text) {
    for (std::size_t left = 1 + below(4); left != 0; --left) {
      switch (below(7)) {
        case 0: text[below(text.size())] ^= static_cast<char>(1u << below(8)); break;
        case 1: text.insert(below(text.size()), piece()); break;
        case 2: text.erase(below(text.size()), 1 + below(12)); break;
        case 3: text.insert(below(text.size()), text.substr(below(text.size()), below(80))); break;
        case 4: if (below(4) == 0) text.resize(below(text.size() + 1)); break;
        default: replace_value(text); break;
      }
      if (text.empty()) text = "{";
    }
  }

  void change_bytes(std::string& bytes) {
    for (std::size_t left = 1 + below(4); left != 0; --left) {
      switch (below(5)) {
        case 0: bytes[below(bytes.size())] = static_cast<char>(random_()); break;
        case 1: bytes[below(bytes.size())] ^= static_cast<char>(1u << below(8)); break;
        case 2: bytes.insert(below(bytes.size()), bytes.substr(below(bytes.size()), below(40))); break;
        case 3: bytes.erase(below(bytes.size()), 1 + below(8)); break;
        default: bytes.insert(below(bytes.size()), below(2) == 0 ? "\xff\xff\xff\xff\xff\xff\xff\xff\x7f" : "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"); break;
      }
      if (bytes.empty()) bytes = "\x0a";
    }
  }

 private:
  std::string piece() {
    static const std::string kPieces[] = {"{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "\\ud83d", "0", "-1", "18446744073709551616", "1e308", "1e-400", "4294967296",
                                          "null", "true", "\xff", "\xe2\x82", std::string(1, '\0'), "[[[[[[[[[[", "\n", "{\"a\":"};
    return kPieces[below(std::size(kPieces))];
  }
  // Puts another value in the place of what follows a colon or a comma.
  void replace_value(std::string& text) {
    static const std::string kValues[] = {"0", "1", "-1", "2", "3", "65536", "2147483647", "2147483648", "4294967295", "4294967296", "9223372036854775807",
                                          "1e18", "0.5", "-0.0", "1e308", "null", "true", "false", "\"\"", "\"x\"", "[]", "{}", "[0]", "[1, 2, 3]", "{\"a\": 1}"};
    for (int i = 0; i < 50; ++i) {
      const std::size_t at = text.find_first_of(":,[", below(text.size()));
      if (at == std::string::npos) continue;
      const std::size_t end = text.find_first_of(",}]\n", at + 1);
      if (end == std::string::npos) continue;
      text.replace(at + 1, end - at - 1, " " + kValues[below(std::size(kValues))]);
      return;
    }
  }

  std::mt19937_64 random_;
};

void check_proper(const Error& error) {
  INFO(error.text());
  CHECK_FALSE(error.message().empty());
  CHECK(error.code() != ErrorCode::internal);
  CHECK(error.text().find('\n') == std::string::npos);
}

TEST_CASE("changed config.json files are refused or planned soundly", "[hub]") {
  const std::string_view names[] = {"llama-bias", "qwen3-tied", "gemma3", "gpt-oss", "deepseek-v3", "mixtral", "qwen3next", "granitehybrid",
                                    "phi3-long", "falcon-40b", "../quantised/several-groups", "../quantised/gptq-dynamic", "../activations/w8a8-zero-tensor"};
  Mutations mutations(47);
  int sound = 0;
  for (const std::string_view name : names) {
    ChangedFolder folder(name);
    const std::string whole = text_of_file(folder.path() / "config.json");
    for (int i = 0; i < tries() / static_cast<int>(std::size(names)); ++i) {
      std::string text = whole;
      mutations.change_json(text);
      folder.write("config.json", text);
      CAPTURE(name, text);
      const auto source = open_model(folder.path());
      if (!source) {
        check_proper(source.error());
        continue;
      }
      const auto plan = Engine::plan(**source, {.tokenizer = TokenizerUse::none, .activations = Activations::as_the_model_says, .threads = 1});
      if (!plan) check_proper(plan.error());
      else ++sound;
    }
  }
  CHECK(sound > 0);
}

void use(const Tokenizer& tokenizer) {
  const auto tokens = tokenizer.encode("The <s> \xe4\xb8\xad 12 \xf0\x9f\x98\x80\xff  a\n", {.special = Special::parse});
  if (!tokens) return check_proper(tokens.error());
  const auto text = tokenizer.decode(*tokens);
  if (!text) check_proper(text.error());
}

TEST_CASE("changed tokenizer.json files are refused or load soundly", "[hub]") {
  std::ifstream in(std::string(TESSERA_SOURCE_DIR) + "/tests/text/golden/tokenizer_json.jsonl");
  std::vector<std::string> wholes;
  for (std::string line; std::getline(in, line);) {
    const auto json = Json::parse(line);
    if (json && json->find("json") != nullptr) wholes.push_back(*json->find("json")->string());
  }
  REQUIRE(wholes.size() > 5);
  Mutations mutations(48);
  int sound = 0;
  for (int i = 0; i < tries(); ++i) {
    std::string text = wholes[mutations.below(wholes.size())];
    mutations.change_json(text);
    CAPTURE(text);
    const auto tokenizer = rig::load_json(text);
    if (!tokenizer) {
      check_proper(tokenizer.error());
      continue;
    }
    ++sound;
    use(*tokenizer);
    const auto plan = Tokenizer::plan(rig::FileSettings(text));
    REQUIRE(plan);
    CHECK(plan->bytes >= tokenizer->memory_bytes());
  }
  CHECK(sound > 0);
}

TEST_CASE("changed tokenizer.model files are refused or load soundly", "[hub]") {
  const auto piece = [](std::string_view text, float score, char type) {
    std::string message = "\x0A" + std::string(1, static_cast<char>(text.size())) + std::string(text) + "\x15";
    char bits[4];
    std::memcpy(bits, &score, 4);
    message.append(bits, 4).append("\x18").append(1, type);
    return "\x0A" + std::string(1, static_cast<char>(message.size())) + message;
  };
  std::string pieces = piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) + piece("\xE2\x96\x81", -4, 1) + piece("a", -1, 1) + piece("b", -2, 1) +
                       piece("\xE2\x96\x81" "ab", -3, 1) + piece("user", 0, 4) + piece("\xE2\x96\x81The", -5, 1);
  for (int byte = 0; byte < 256; byte += 51) {
    constexpr char kDigits[] = "0123456789ABCDEF";
    pieces += piece(std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">", 0, 6);
  }
  Mutations mutations(49);
  int sound = 0;
  for (int i = 0; i < tries(); ++i) {
    std::string model = pieces + std::string(i % 2 == 0 ? "\x12\x02\x18\x02" : "\x12\x02\x18\x01", 4) + std::string("\x1A\x04\x18\x01\x20\x00", 6);
    mutations.change_bytes(model);
    const auto tokenizer = Tokenizer::from_settings(rig::FileSettings(Setting::sentencepiece_model, model));
    if (!tokenizer) {
      check_proper(tokenizer.error());
      continue;
    }
    ++sound;
    use(*tokenizer);
  }
  CHECK(sound > 0);
}

}  // namespace test_mutated_folders
