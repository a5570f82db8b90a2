// Turns text into tokens and back, with the vocabulary among a model's settings; no weights are needed. The settings have the vocabulary as
// lists (GGUF files), as the text of a tokenizer.json (Setting::tokenizer_json), or as the bytes of SentencePiece's tokenizer.model
// (Setting::sentencepiece_model). Lists and tokenizer.model belong to one of four families:
//   llama    SentencePiece BPE: scores, byte fallback (Kudo & Richardson, 2018)
//   gpt2     byte-level BPE: a pre-tokenizer cuts the text into words, ranked merges join the bytes of each (Radford et al., 2019)
//   unigram  "t5" in files: the text is cut into the tokens whose scores have the greatest sum (Kudo, 2018)
//   gemma4   ranked merges join the characters of the text as it is, with U+2581 for spaces and byte fallback
// A tokenizer.json states its steps itself: added tokens, normalizer, pre-tokenizer, model (BPE, Unigram, WordPiece, WordLevel),
// post-processor, decoder. docs/reference/tokenizers.md lists the steps that tessera supports.
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

namespace detail {
class Decoder;
}

// The tokens that encode() puts around a text. as_model: BOS and EOS if the model's metadata demands them. always: BOS in front, even if
// the metadata does not demand it, and no EOS. never: no BOS and no EOS.
enum class Bos : std::int32_t { as_model = 0, always = 1, never = 2 };

// The meaning of "<|im_end|>" in a text. as_text: letters, so that text from strangers cannot forge control tokens. parse: the control
// token of that name, for prompts made from a chat template.
enum class Special : std::int32_t { as_text = 0, parse = 1 };

// Control (and unknown) tokens in decoded text: omit leaves them out, show writes their names.
enum class ControlText : std::int32_t { omit = 0, show = 1 };

// The place of decoded text in its sequence. At a sequence's start, a `llama` vocabulary drops the space that encoding put in front of the
// text. In a continuation of a prompt, the text keeps the space.
enum class TextStart : std::int32_t { sequence = 0, continuation = 1 };

// Types of tokens, with the numbers of Setting::token_types.
enum class TokenType : std::int32_t {
  undefined = 0, normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6
};

// bpe (BPE on characters), word_piece and word_level are models of a tokenizer.json only. gpt2 is also the byte-level BPE of a
// tokenizer.json.
enum class TokenizerModel : std::int32_t {
  none = 0, llama = 1, gpt2 = 2, unigram = 3, gemma4 = 4, bpe = 5, word_piece = 6, word_level = 7
};

struct EncodeOptions {
  Bos bos = Bos::as_model;
  Special special = Special::as_text;
};

struct DecodeOptions {
  ControlText control = ControlText::omit;
  TextStart start = TextStart::sequence;
};

// The tokens that a model wants around a text.
struct TextFrame {
  std::vector<Token> front = {}, back = {};
};
// The tokens that a model wants around and between two texts: front, first text, between, second text, back.
struct PairFrame {
  std::vector<Token> front = {}, between = {}, back = {};
  bool has_segments = false;  // true: the second text and the tokens after it are of segment 1 (Row::segment)
};

// The size of the Tokenizer that from_settings() will make.
struct TokenizerPlan {
  std::uint64_t tokens = 0;
  // Bytes that the Tokenizer will hold; making the Tokenizer needs hardly more. Compiled pre-tokenizer patterns count as 64 KiB. Exception:
  // for a tokenizer.json and a tokenizer.model these are the bytes at the peak, while the Tokenizer is made; afterwards the Tokenizer holds
  // a third less.
  std::uint64_t bytes = 0;
};

// A vocabulary and its rules: a cheap immutable handle whose copies share the vocabulary. Threads: several threads may call every function
// at once.
//
//   auto tokens = engine.tokenizer().encode("Once upon a time");
//   auto text = engine.tokenizer().decode(*tokens);
//   if (text) std::fputs(text->c_str(), stdout);
class Tokenizer {
 public:
  // Makes an empty handle, for a model without a vocabulary (the host then has its own). encode() returns invalid_state.
  Tokenizer() noexcept;

  // Makes the tokenizer of a model's settings (ModelSource::settings()). Accepts faults that other programs accept too: arrays longer than
  // the token list (the rest is ignored), tokens with the same text (encode() returns the lowest id), empty tokens (never encoded), and
  // merges whose parts or result are not tokens (never applied).
  // "truncation" and "padding" of a tokenizer.json are ignored: encode() returns all tokens of a text.
  // Errors name the setting as its file calls it, and the index in it: corrupt_file; not_found; unsupported, an unknown model or
  // pre-tokenizer, or control and user-defined tokens of more than 2 MiB of text; out_of_memory; cancelled, by `stop`.
  [[nodiscard]] static Result<Tokenizer> from_settings(const Settings& settings, const std::stop_token& stop = {}) noexcept;

  // Returns the size of the tokenizer that from_settings() will make, without making it. Returns every error of from_settings() except
  // out_of_memory.
  [[nodiscard]] static Result<TokenizerPlan> plan(const Settings& settings, const std::stop_token& stop = {}) noexcept;
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept;  // bytes that the vocabulary holds; copies share them

  // Returns the tokens of a text. Every text can be encoded: bytes that are not UTF-8 become byte tokens. A byte for which the vocabulary
  // has no token becomes the unknown token, or nothing if there is none or if it is a control token. With Special::as_text no text becomes
  // a control token. If the model's tokenizer normalises (NFC: Qwen, Command R, GPT-NeoX), text between special tokens is brought into
  // normal form first, and decoding returns the normal form; bytes that are not UTF-8 stay as they are.
  // Errors: invalid_argument, Bos::always with a vocabulary that has no BOS, or a text over 1 GiB; invalid_state, an empty handle;
  // out_of_memory. With a tokenizer.json also: unsupported, a pattern of the file takes too much work on this text; invalid_argument, the
  // normalizer makes the text far too long.
  // Time: n log n in the text's length. Memory, the result included: a few KB, and at most ten bytes for each byte of the text or for each
  // token, whichever are more. A text that is not in normal form takes eleven bytes instead of ten; if its normal form is longer, the bytes
  // of the normal form count. The steps of a tokenizer.json take twice as much.
  [[nodiscard]] Result<std::vector<Token>> encode(std::string_view text, EncodeOptions options = {}) const noexcept;

  // Returns the text of tokens, as a Detokenizer returns it: always UTF-8, with U+FFFD for bytes that form no character. Errors:
  // invalid_argument, a token that is not in the vocabulary.
  [[nodiscard]] Result<std::string> decode(std::span<const Token> tokens, DecodeOptions options = {}) const noexcept;

  // Returns the bytes that a token adds to a text, which may be a part of a character: the byte of a byte token, the bytes that a
  // byte-level token spells, the text of a `llama` token with spaces for U+2581. Empty for control tokens and for a token that is not in
  // the vocabulary. Valid as long as any copy of the handle.
  [[nodiscard]] std::string_view piece(Token token) const noexcept;
  // Returns whether a token marks something in a sequence and is no part of its text: BOS, "<|im_end|>", the unknown token. (A token whose
  // piece() is empty need not be a control token: vocabularies have empty tokens.)
  [[nodiscard]] bool is_control(Token token) const noexcept;
  // Return a token's text as the vocabulary spells it ("Ġthe", "▁the", "<0x0A>"), and the token of a text.
  [[nodiscard]] std::string_view text(Token token) const noexcept;
  [[nodiscard]] std::optional<Token> find(std::string_view text) const noexcept;

  [[nodiscard]] std::size_t vocab_size() const noexcept;
  [[nodiscard]] TokenType type(Token token) const noexcept;
  [[nodiscard]] TokenizerModel model() const noexcept;
  [[nodiscard]] std::string_view pre_tokenizer() const noexcept;  // "gpt-2", "llama-bpe", ...; empty for other families than gpt2
  // Returns whether the file does not name its pre-tokenizer (old converters did not), so that "default" is a guess: tokens may differ from
  // the tokens that the model was trained with.
  [[nodiscard]] bool pre_tokenizer_is_assumed() const noexcept;
  [[nodiscard]] std::optional<Token> bos() const noexcept;
  [[nodiscard]] std::optional<Token> eos() const noexcept;
  // Return the tokens that encode() puts around a text by Bos::as_model, and the tokens that the vocabulary's rules put around and between
  // two texts; empty if the vocabulary has none.
  [[nodiscard]] const TextFrame& frame() const noexcept;
  [[nodiscard]] const PairFrame& pair_frame() const noexcept;
  [[nodiscard]] bool adds_bos() const noexcept;  // by Bos::as_model
  [[nodiscard]] bool adds_eos() const noexcept;
  [[nodiscard]] bool adds_space_prefix() const noexcept;
  // Returns whether a token is EOS, EOT or EOM of the metadata, or is known by its name to end a turn or a file ("<|im_end|>", ...).
  [[nodiscard]] bool is_end_of_generation(Token token) const noexcept;
  // Returns the tokens that no generation, batch or beam draws (tokenizer.ggml.suppress_tokens), ascending. Their logits stay as they are.
  // Valid as long as any copy of the handle.
  [[nodiscard]] std::span<const Token> suppressed() const noexcept;

  // Returns a hash of everything that decides what encode() and decode() return: texts, types, merges or scores, the pre-tokenizer and
  // the options. The same on every machine. Zero without a vocabulary.
  [[nodiscard]] Hash128 fingerprint() const noexcept;
  // Returns whether both tokenizers return the same tokens for the same texts, and the same texts for the same tokens. If the fingerprints
  // are equal, compares both vocabularies in full.
  [[nodiscard]] bool operator==(const Tokenizer& other) const noexcept;

 private:
  friend class Detokenizer;
  struct State;
  [[nodiscard]] const detail::Decoder* decoder() const noexcept;  // nullptr unless the file is a tokenizer.json
  explicit Tokenizer(std::shared_ptr<const State> state) noexcept;
  std::shared_ptr<const State> state_;
};

}  // namespace tessera
