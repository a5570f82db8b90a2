// The table of pre-tokenizers, with their patterns. The patterns come from each model's tokenizer.json (Hugging Face). The names are
// those in GGUF files (llama.cpp's llama-vocab.cpp). Some patterns look different in llama.cpp, because std::regex lacks some of their
// syntax ("(?i:"); here they are as in the original. llama.cpp also leaves out the "|\s+" at the end of some patterns. That makes no
// difference: text that no pattern matches is a piece anyway.
#include "text/pre_tokenizer/pre_tokenizer_patterns.hpp"

#include <array>
#include <cstddef>

namespace tessera::detail {
namespace {

using Pattern = std::string_view;

// Concatenates several string literals.
template <std::size_t... N>
constexpr auto in_one(const char (&... parts)[N]) noexcept {
  std::array<char, (0 + ... + (N - 1))> all{};
  std::size_t at = 0;
  const auto add = [&](const char* part, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) all[at++] = part[i];
  };
  (add(parts, N - 1), ...);
  return all;
}

constexpr Pattern kGpt2Words = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

constexpr Pattern kGpt2[] = {kGpt2Words};

// Each digit is a piece of its own. The rest is split as in GPT-2.
constexpr Pattern kStarcoder[] = {R"(\p{N})", kGpt2Words};

// Runs of punctuation are pieces of their own. The rest is split as in GPT-2, and then digits into groups of three.
constexpr Pattern kFalcon[] = {R"([\p{P}$+<=>^~|`]+)", kGpt2Words, R"([0-9][0-9][0-9])"};

constexpr Pattern kDefault[] = {R"([\p{P}$+<=>^~|]+)", kGpt2Words, R"(\p{N}+)", R"([0-9][0-9][0-9])"};

constexpr Pattern kLlama3[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr Pattern kQwen2[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr Pattern kQwen35[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr Pattern kSeedCoder[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)"};

// A word is upper-case letters followed by lower-case letters, so a capital begins a new word.
constexpr Pattern kTekken[] = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr Pattern kGpt4o[] = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

// The characters of the script Han, for the pattern of Kimi K2, which makes pieces of consecutive Han characters, and splits other
// letters as GPT-4o does. They are listed, because \p{Han} differs between versions of PCRE2.
#define TESSERA_HAN                                                                                            \
  R"(\x{2E80}-\x{2E99}\x{2E9B}-\x{2EF3}\x{2F00}-\x{2FD5}\x{3005}\x{3007}\x{3021}-\x{3029}\x{3038}-\x{303B})"   \
  R"(\x{3400}-\x{4DBF}\x{4E00}-\x{9FFF}\x{F900}-\x{FA6D}\x{FA70}-\x{FAD9}\x{16FE2}\x{16FE3}\x{16FF0}-\x{16FF6})" \
  R"(\x{20000}-\x{2A6DF}\x{2A700}-\x{2B81E}\x{2B820}-\x{2CEAD}\x{2CEB0}-\x{2EBE0}\x{2EBF0}-\x{2EE5D})"         \
  R"(\x{2F800}-\x{2FA1D}\x{30000}-\x{3134A}\x{31350}-\x{33479})"
constexpr char kHan[] = "[" TESSERA_HAN "]";
constexpr char kUpper[] = R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]))", kLower[] = R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]))";
constexpr char kBefore[] = R"(|[^\r\n\p{L}\p{N}]?(?:(?!)", kContraction[] = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)";
constexpr auto kKimiK2Words =
    in_one(kHan, "+", kBefore, kHan, ")", kUpper, "*(?:(?!", kHan, ")", kLower, "+", kContraction,  //
           kBefore, kHan, ")", kUpper, "+(?:(?!", kHan, ")", kLower, "*", kContraction,
           R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)");
constexpr Pattern kKimiK2[] = {Pattern(kKimiK2Words.data(), kKimiK2Words.size())};

constexpr Pattern kNewline = R"([\r\n])";
constexpr Pattern kCjk = R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";

constexpr Pattern kDeepseekCoder[] = {kNewline, R"(\s?\p{L}+)", R"(\s?\p{P}+)", kCjk, R"(\p{N})"};

// The patterns of DeepSeek LLM. The second lists all letters that have an upper and a lower case. The fourth is \s+$ in a form that takes
// linear time: \s+$ itself would be tried again from each character of a run of white space that is not at the end of the text.
constexpr Pattern kDeepseekLlm[] = {
    kNewline,
    R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF})"
    R"(\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1})"
    R"(\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5})"
    R"(\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A})"
    R"(\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B})"
    R"(\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC})"
    R"(\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107})"
    R"(\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134})"
    R"(\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4})"
    R"(\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787})"
    R"(\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A})"
    R"(\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2})"
    R"(\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)",
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)",
    R"((?<!\s)\s++\z)",
    kCjk,
    R"(\p{N}+)"};

constexpr Pattern kDeepseekV3[] = {
    R"(\p{N}{1,3})", R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr Pattern kBloomWords = R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{0964}\x{06D4}\x{060C})]+)";
constexpr Pattern kBloom[] = {kBloomWords};
constexpr Pattern kViking[] = {kBloomWords, R"(\p{N})"};

constexpr bool kYes = true, kNo = false, kNfc = true;

// The columns are: name, patterns, ignore_merges, add_bos, nfc.
constexpr PreTokenizerSpec kPreTokenizers[] = {
    {"default", kDefault, kNo, kNo},
    {"gpt-2", kGpt2, kNo, kNo},
    {"gpt2", kGpt2, kNo, kNo},
    {"mpt", kGpt2, kNo, kNo, kNfc},
    {"gpt-neox", kGpt2, kNo, kNo, kNfc},
    {"olmo", kGpt2, kNo, kNo, kNfc},
    {"phi-2", kGpt2, kNo, kNo},
    {"jais", kGpt2, kNo, kNo},
    {"exaone4", kGpt2, kNo, kNo},
    {"trillion", kGpt2, kNo, kNo},
    {"gigachat", kGpt2, kNo, kNo},
    {"a.x-4.0", kGpt2, kNo, kNo},
    {"mellum", kGpt2, kNo, kNo},
    {"granite-docling", kGpt2, kNo, kNo},
    {"llama-bpe", kLlama3, kYes, kYes},
    {"llama3", kLlama3, kYes, kYes},
    {"llama-v3", kLlama3, kYes, kYes},
    {"falcon3", kLlama3, kYes, kYes},
    {"falcon-h1", kLlama3, kYes, kYes},
    {"pixtral", kLlama3, kYes, kYes},
    {"midm-2.0", kLlama3, kYes, kYes},
    {"lfm2", kLlama3, kYes, kYes},
    {"dbrx", kLlama3, kNo, kNo},
    {"smaug-bpe", kLlama3, kNo, kNo},
    {"glm4", kLlama3, kNo, kNo},
    {"chatglm-bpe", kLlama3, kNo, kNo},
    {"qwen2", kQwen2, kNo, kNo, kNfc},
    {"deepseek-r1-qwen", kQwen2, kNo, kNo, kNfc},
    {"megrez", kQwen2, kNo, kNo},
    {"stablelm2", kQwen2, kNo, kNo},
    {"hunyuan", kQwen2, kNo, kNo},
    {"grok-2", kQwen2, kNo, kNo},
    {"solar-open", kQwen2, kNo, kNo},
    {"qwen35", kQwen35, kNo, kNo, kNfc},
    {"seed-coder", kSeedCoder, kNo, kNo},
    {"tekken", kTekken, kYes, kYes},
    {"gpt-4o", kGpt4o, kNo, kNo},
    {"llama4", kGpt4o, kNo, kNo},
    {"minimax-m2", kGpt4o, kNo, kNo},
    {"kimi-k2", kKimiK2, kNo, kNo},
    {"deepseek-llm", kDeepseekLlm, kNo, kNo},
    {"deepseek-coder", kDeepseekCoder, kNo, kNo},
    {"deepseek-v3", kDeepseekV3, kNo, kNo},
    {"joyai-llm", kDeepseekV3, kNo, kNo},  // DeepSeek-V4 has this one too
    {"hunyuan-dense", kDeepseekV3, kNo, kNo},
    {"falcon", kFalcon, kNo, kNo},
    {"starcoder", kStarcoder, kNo, kNo},
    {"refact", kStarcoder, kNo, kNo},
    {"command-r", kStarcoder, kNo, kNo, kNfc},
    {"smollm", kStarcoder, kNo, kNo},
    {"codeshell", kStarcoder, kNo, kNo},
    {"exaone", kStarcoder, kNo, kNo},
    {"minerva-7b", kStarcoder, kNo, kNo},
    {"mellum2", kStarcoder, kNo, kNo},
    {"bloom", kBloom, kNo, kNo},
    {"poro-chat", kBloom, kNo, kNo},
    {"gpt3-finnish", kBloom, kNo, kNo},
    {"viking", kViking, kNo, kNo},
};

}  // namespace

constinit const std::string_view kHanMembers = TESSERA_HAN;
#undef TESSERA_HAN

const PreTokenizerSpec* find_pre_tokenizer(std::string_view name) noexcept {
  for (const PreTokenizerSpec& spec : kPreTokenizers) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

std::string known_pre_tokenizers() {
  std::string names;
  for (const PreTokenizerSpec& spec : kPreTokenizers) names.append(names.empty() ? "" : ", ").append(spec.name);
  return names;
}

}  // namespace tessera::detail
