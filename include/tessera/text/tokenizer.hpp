// Turns text into tokens and back, with the vocabulary that a model's settings contain; no weights are needed. The settings have the
// vocabulary in one of three forms: as lists (GGUF files), as the text of a tokenizer.json (Setting::tokenizer_json), or as the bytes of
// SentencePiece's tokenizer.model (Setting::sentencepiece_model).
//
// Vocabularies in lists and in a tokenizer.model belong to one of four families:
//   llama    SentencePiece BPE: scores, byte fallback (Kudo & Richardson, 2018)
//   gpt2     byte-level BPE: a pre-tokenizer cuts the text into words, ranked merges join the bytes of each (Radford et al., 2019)
//   unigram  "t5" in files: the text is cut into the tokens whose scores have the greatest sum (Kudo, 2018)
//   gemma4   ranked merges join the characters of the text as it is, with U+2581 for spaces and byte fallback
// Exception: lists of BERT's word pieces are read as a tokenizer.json.
// A tokenizer.json belongs to no family, but states its steps itself: added tokens, normalizer, pre-tokenizer, model (BPE, Unigram,
// WordPiece, WordLevel), post-processor, decoder. docs/reference/tokenizers.md lists the steps that tessera supports.
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

// Says which tokens encode() puts around a text. as_model: BOS and EOS, if the model's metadata demands them. always: BOS in front, even if
// the metadata does not demand it, and no EOS. never: neither.
enum class Bos : std::int32_t { as_model = 0, always = 1, never = 2 };

// Says what the name of a control token in a text, such as "<|im_end|>", becomes. as_text: plain letters, so that text from strangers
// cannot forge control tokens. parse: the control token of that name, for prompts made from a chat template.
enum class Special : std::int32_t { as_text = 0, parse = 1 };

// Says what decode() does with control tokens and the unknown token. omit: leaves them out. show: writes their names.
enum class ControlText : std::int32_t { omit = 0, show = 1 };

// Says where decoded text stands in its sequence. This matters for `llama` vocabularies, where encoding puts a space in front of a text.
// sequence: the text begins the sequence, so decode() drops this space. continuation: the text follows a prompt, so it keeps the space.
enum class TextStart : std::int32_t { sequence = 0, continuation = 1 };

// The types of tokens. The numbers are those of Setting::token_types.
enum class TokenType : std::int32_t {
  undefined = 0, normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6
};

// The algorithm of a vocabulary: one of the four families above, or one of three models that only a tokenizer.json (or a list of BERT's
// word pieces) has: bpe (BPE on characters), word_piece and word_level. A tokenizer.json with byte-level BPE has the value gpt2, one with
// Unigram the value unigram.
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

// The tokens that a model wants around a text: `front` before it, `back` after it.
struct TextFrame {
  std::vector<Token> front = {}, back = {};
};
// The tokens that a model wants around and between two texts: front, first text, between, second text, back.
struct PairFrame {
  std::vector<Token> front = {}, between = {}, back = {};
  bool has_segments = false;  // true: the second text and the tokens after it are of segment 1 (Row::segment)
};

// The result of Tokenizer::plan(): the size of the Tokenizer that from_settings() will make.
struct TokenizerPlan {
  std::uint64_t tokens = 0;
  // Bytes that the Tokenizer will hold; making it needs hardly more. Compiled pre-tokenizer patterns are counted as 64 KiB. Exception: for
  // a tokenizer.json or a tokenizer.model, `bytes` is the peak while the Tokenizer is made; the finished Tokenizer holds a third less.
  std::uint64_t bytes = 0;
};

// A vocabulary and the rules by which text becomes tokens: a cheap immutable handle whose copies share the vocabulary. Threads: several
// threads may call every function at once.
//
//   auto tokens = engine.tokenizer().encode("Once upon a time");
//   auto text = engine.tokenizer().decode(*tokens);
//   if (text) std::fputs(text->c_str(), stdout);
class Tokenizer {
 public:
  // Makes an empty handle, for a model without a vocabulary (the host then tokenizes by itself). encode() returns invalid_state.
  Tokenizer() noexcept;

  // Makes the tokenizer of a model from its settings (ModelSource::settings()). Some faults of files are accepted, as in other programs:
  // arrays longer than the token list (the rest is ignored), several tokens with the same text (encode() returns the lowest id), empty
  // tokens (encode() never returns them), and merges whose parts or result are not tokens (they are never applied).
  // "truncation" and "padding" of a tokenizer.json are ignored: encode() returns all tokens of a text.
  // Errors (they name the setting as its file calls it, and the index in it): corrupt_file; not_found; unsupported, an unknown model or
  // pre-tokenizer, or control and user-defined tokens with more than 2 MiB of text in all; out_of_memory; cancelled, by `stop`.
  [[nodiscard]] static Result<Tokenizer> from_settings(const Settings& settings, const std::stop_token& stop = {}) noexcept;

  // Returns the size of the tokenizer that from_settings() will make, without making it. Errors: those of from_settings(), except
  // out_of_memory.
  [[nodiscard]] static Result<TokenizerPlan> plan(const Settings& settings, const std::stop_token& stop = {}) noexcept;
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept;  // bytes that the vocabulary holds; copies share them

  // Returns the tokens of a text. Every text can be encoded: bytes that are not UTF-8 become byte tokens. A byte for which the vocabulary
  // has no token becomes the unknown token; it becomes nothing if there is no unknown token, or if that is a control token. With
  // Special::as_text no text becomes a control token.
  // If the model's tokenizer normalises (to NFC: Qwen, Command R, GPT-NeoX), text between special tokens is brought into this normal form
  // first, so decoding returns the normal form. Bytes that are not UTF-8 stay as they are.
  // Errors: invalid_argument, Bos::always with a vocabulary that has no BOS, or a text over 1 GiB; invalid_state, an empty handle;
  // out_of_memory. With a tokenizer.json also: unsupported, a pattern of the file takes too much work on this text; invalid_argument, the
  // normalizer makes the text far too long.
  // Time: n log n in the text's length. Memory, the result included, is at most a few KB plus 10 bytes for each byte of the text (or for
  // each of its tokens, if the tokens are more). Exceptions: if the text is not in normal form, 11 bytes for each byte of the text or of its
  // normal form, whichever is longer; for a tokenizer.json, twice as much.
  [[nodiscard]] Result<std::vector<Token>> encode(std::string_view text, EncodeOptions options = {}) const noexcept;

  // Returns the text of tokens. The text is always UTF-8: bytes that form no character become U+FFFD. A Detokenizer returns the same text
  // piece by piece. Errors: invalid_argument, a token that is not in the vocabulary.
  [[nodiscard]] Result<std::string> decode(std::span<const Token> tokens, DecodeOptions options = {}) const noexcept;

  // Returns the bytes that a token adds to a text; they may be only a part of a character. For a byte token: its byte. For a byte-level
  // token: the bytes that its letters stand for. For a `llama` token: its text, with spaces for U+2581. For a control token, and for a
  // token that is not in the vocabulary: nothing. Valid as long as any copy of the handle.
  [[nodiscard]] std::string_view piece(Token token) const noexcept;
  // Returns whether a token is a mark in a sequence and no part of its text: BOS, "<|im_end|>", the unknown token. (Do not ask whether
  // piece() is empty: vocabularies have empty tokens that are no control tokens.)
  [[nodiscard]] bool is_control(Token token) const noexcept;
  // text() returns a token's text as the vocabulary spells it ("Ġthe", "▁the", "<0x0A>"). find() returns the token that has such a text, or
  // nullopt.
  [[nodiscard]] std::string_view text(Token token) const noexcept;
  [[nodiscard]] std::optional<Token> find(std::string_view text) const noexcept;

  [[nodiscard]] std::size_t vocab_size() const noexcept;
  [[nodiscard]] TokenType type(Token token) const noexcept;
  [[nodiscard]] TokenizerModel model() const noexcept;
  [[nodiscard]] std::string_view pre_tokenizer() const noexcept;  // "gpt-2", "llama-bpe", ...; empty unless lists of the family gpt2 were read
  // Returns true if the file does not name its pre-tokenizer (files of old converters do not), so that the library assumes the one called
  // "default". Tokens may then differ from the tokens that the model was trained with.
  [[nodiscard]] bool pre_tokenizer_is_assumed() const noexcept;
  [[nodiscard]] std::optional<Token> bos() const noexcept;
  [[nodiscard]] std::optional<Token> eos() const noexcept;
  // frame() returns the tokens that encode() puts around a text with Bos::as_model. pair_frame() returns the tokens that the vocabulary's
  // rules put around and between two texts; empty if there are no such rules.
  [[nodiscard]] const TextFrame& frame() const noexcept;
  [[nodiscard]] const PairFrame& pair_frame() const noexcept;
  [[nodiscard]] bool adds_bos() const noexcept;  // encode() with Bos::as_model puts BOS in front (adds_eos(): EOS at the end)
  [[nodiscard]] bool adds_eos() const noexcept;
  [[nodiscard]] bool adds_space_prefix() const noexcept;
  // Returns whether a token ends a generation: the EOS, EOT or EOM of the metadata, or a token that is known by its name to end a turn or a
  // file ("<|im_end|>", for example).
  [[nodiscard]] bool is_end_of_generation(Token token) const noexcept;
  // Returns the tokens that the model's file forbids to draw (tokenizer.ggml.suppress_tokens), ascending. No generation, batch or beam
  // search draws them. Their logits stay as they are. Valid as long as any copy of the handle.
  [[nodiscard]] std::span<const Token> suppressed() const noexcept;

  // Returns a hash of everything that decides the results of encode() and decode(): texts, types, merges or scores, the pre-tokenizer and
  // the options. It is the same on every machine. Zero for a handle without a vocabulary.
  [[nodiscard]] Hash128 fingerprint() const noexcept;
  // Returns whether both tokenizers give the same tokens for every text, and the same text for every list of tokens. Compares the fingerprints first,
  // and if they are equal, both vocabularies in full.
  [[nodiscard]] bool operator==(const Tokenizer& other) const noexcept;

 private:
  friend class Detokenizer;
  struct State;
  [[nodiscard]] const detail::Decoder* decoder() const noexcept;  // nullptr unless the file is a tokenizer.json
  explicit Tokenizer(std::shared_ptr<const State> state) noexcept;
  std::shared_ptr<const State> state_;
};

}  // namespace tessera
