// Text to tokens and back, from the vocabulary among a model's settings; no weights are needed. Three families: `llama`
// (SentencePiece BPE: scores, byte fallback; Kudo & Richardson, 2018), `gpt2` (byte-level BPE: a pre-tokenizer cuts the
// text into words, ranked merges join the bytes of each; Radford et al., 2019) and `unigram`, in files "t5" (of all ways
// to cut a text the one whose scores have the greatest sum; Kudo, 2018).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/extend/core/hash.hpp>
#include <tessera/extend/files/settings.hpp>

namespace tessera {

// Tokens that frame a sequence. as_model: BOS and EOS where the model's metadata asks for them. always: BOS in front,
// also where the model does not ask, and no EOS. never: neither.
enum class Bos : std::int32_t { as_model = 0, always = 1, never = 2 };

// What "<|im_end|>" in a text is. as_text: letters, so that text from strangers cannot forge control tokens. parse: the
// control token of that name, for prompts made from a chat template.
enum class Special : std::int32_t { as_text = 0, parse = 1 };

// Whether control (and unknown) tokens appear in decoded text.
enum class ControlText : std::int32_t { omit = 0, show = 1 };

// Where decoded text stands. At a sequence's start, `llama` vocabularies drop the space that encoding put in front;
// text that continues a prompt keeps it.
enum class TextStart : std::int32_t { sequence = 0, continuation = 1 };

// Of Setting::token_types.
enum class TokenType : std::int32_t {
  undefined = 0, normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6
};

enum class TokenizerModel : std::int32_t { none = 0, llama = 1, gpt2 = 2, unigram = 3, gemma4 = 4 };

struct EncodeOptions {
  Bos bos = Bos::as_model;
  Special special = Special::as_text;
};

struct DecodeOptions {
  ControlText control = ControlText::omit;
  TextStart start = TextStart::sequence;
};

// What from_settings() will make of a file.
struct TokenizerPlan {
  std::uint64_t tokens = 0;
  // What it will hold and need; it needs next to nothing beyond what it holds. Compiled pre-tokenizer patterns are an
  // allowance of 64 KiB.
  std::uint64_t bytes = 0;
};

// A cheap immutable handle: copies share the vocabulary. Every function may be called from several threads at once.
class Tokenizer {
 public:
  // No vocabulary: of a model that has none, whose host brings its own. Encoding is an error that says so.
  Tokenizer() noexcept;

  // From ModelSource::settings(). Errors name the setting as its file calls it, and the index in it where there is one. Tolerated, because files with them work
  // elsewhere: arrays longer than the token list (the rest is ignored), tokens with the same text (encoding gives the
  // lowest id), empty tokens (never encoded), merges whose parts or result are not tokens (never applied). Control and
  // user-defined tokens may have 2 MiB of text in all. `stop` ends it with ErrorCode::cancelled.
  [[nodiscard]] static Result<Tokenizer> from_settings(const Settings& settings, const std::stop_token& stop = {}) noexcept;

  // From the counts in the metadata, without memory. Any error of from_settings() but for out of memory is given here too.
  [[nodiscard]] static Result<TokenizerPlan> plan(const Settings& settings, const std::stop_token& stop = {}) noexcept;
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept;  // what this vocabulary holds, copies counted once

  // Any bytes encode; those that are not UTF-8 become byte tokens. A byte that a vocabulary cannot say becomes its
  // unknown token, or nothing if it has none or one that is a control token. With Special::as_text no text becomes a
  // control token. Where the model's tokenizer normalises (NFC: Qwen, Command R, GPT-NeoX), text between special tokens
  // is brought into normal form first, so that decoding gives the normal form; bytes that are not UTF-8 stay as they
  // are. Time is n log n in the text's length. Memory, the result's included, is at most ten bytes for each byte of the
  // text (for each token where there are more of them; eleven, also for each byte of the normal form, where a text is not normal) and a few KB. Errors:
  // no memory; Bos::always with a vocabulary that has no BOS; a text over 1 GiB.
  [[nodiscard]] Result<std::vector<Token>> encode(std::string_view text, EncodeOptions options = {}) const noexcept;

  // What a Detokenizer gives for these tokens: always UTF-8, bytes that form no character become U+FFFD. A token that
  // is not in the vocabulary is an error.
  [[nodiscard]] Result<std::string> decode(std::span<const Token> tokens, DecodeOptions options = {}) const noexcept;

  // The bytes that a token adds to a text, which may be part of a character: of a byte token its byte, of a
  // byte-level token the bytes that it spells, of a `llama` token its text with spaces for U+2581. Empty for control
  // tokens, and for a token that is not in the vocabulary. Lives as long as any copy of the handle.
  [[nodiscard]] std::string_view piece(Token token) const noexcept;
  // A token that says something about a text and is none of it: BOS, "<|im_end|>", the unknown token. (A token without
  // a piece need not be one: vocabularies have empty tokens.)
  [[nodiscard]] bool is_control(Token token) const noexcept;
  // A token as the vocabulary spells it ("Ġthe", "▁the", "<0x0A>"), and back.
  [[nodiscard]] std::string_view text(Token token) const noexcept;
  [[nodiscard]] std::optional<Token> find(std::string_view text) const noexcept;

  [[nodiscard]] std::size_t vocab_size() const noexcept;
  [[nodiscard]] TokenType type(Token token) const noexcept;
  [[nodiscard]] TokenizerModel model() const noexcept;
  [[nodiscard]] std::string_view pre_tokenizer() const noexcept;  // "gpt-2", "llama-bpe", ...; empty for others
  // Whether the file does not name its pre-tokenizer (old converters did not), so that "default" is a guess: tokens may
  // be other ones than those the model was trained with.
  [[nodiscard]] bool pre_tokenizer_is_assumed() const noexcept;
  [[nodiscard]] std::optional<Token> bos() const noexcept;
  [[nodiscard]] std::optional<Token> eos() const noexcept;
  [[nodiscard]] bool adds_bos() const noexcept;  // what Bos::as_model does
  [[nodiscard]] bool adds_eos() const noexcept;
  [[nodiscard]] bool adds_space_prefix() const noexcept;
  // EOS, EOT and EOM of the metadata, and tokens that are known by name to end a turn or a file ("<|im_end|>", ...).
  [[nodiscard]] bool is_end_of_generation(Token token) const noexcept;
  // Tokens that no generation, batch or beam draws (tokenizer.ggml.suppress_tokens), ascending. Logits have numbers for
  // them like for others. Lives as long as any copy of the handle.
  [[nodiscard]] std::span<const Token> suppressed() const noexcept;

  // Of everything that decides what encode() and decode() give: texts, types, merges or scores, the pre-tokenizer and
  // the options. The same on every machine. Zero without a vocabulary.
  [[nodiscard]] Hash128 fingerprint() const noexcept;
  // Whether both give the same tokens for the same texts, and the same texts for the same tokens. Compares all of both
  // vocabularies where their fingerprints agree.
  [[nodiscard]] bool operator==(const Tokenizer& other) const noexcept;

 private:
  struct State;
  explicit Tokenizer(std::shared_ptr<const State> state) noexcept;
  std::shared_ptr<const State> state_;
};

}  // namespace tessera
