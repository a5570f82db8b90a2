// A Session is one sequence: its tokens, their keys and values, and the logits after the last token. Sessions of one engine do not depend
// on each other.
//
//   auto session = engine.session();
//   auto logits = session->append(*engine.tokenizer().encode("Once upon a time"));
//   for (const auto& piece : session->generate(sampler, {.max_tokens = 100})) std::fputs(piece->text.c_str(), stdout);
//   auto other = session->fork();      // goes its own way from here, and shares what was computed
//
// Threads: only one call at a time may change a session. A call that would change it meanwhile returns invalid_state, whether it comes from
// another thread, from a callback of the first call, or while a Generation of the session has not ended. Const functions that return a
// Result (fork, clone, convert, verify, save) may run at the same time as each other, and between the pieces of a Generation.
//
// Pending tokens: the last token that generate() delivered is *pending*. It belongs to the sequence, but its keys and values, and the
// logits after it, are not computed yet. The next append(), generate() or forward() computes pending tokens first; append() without tokens
// computes nothing else. So position() may be less than tokens().size(): usually by one. More tokens can be pending after use_adapters(), and
// after truncate() in a model with a sliding window or recurrent layers.
//
// An empty Session (docs/headers.md) has no tokens and no context, and its engine() is empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <tessera/adapter.hpp>
#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/extend/core/hash.hpp>
#include <tessera/extend/files/byte_sink.hpp>
#include <tessera/generation.hpp>
#include <tessera/kv/kv_cache.hpp>
#include <tessera/kv/token_budget.hpp>
#include <tessera/kv/wide_layers.hpp>
#include <tessera/verification.hpp>

namespace tessera {

class Engine;
class Sampler;

enum class PrefixReuse : std::int32_t {
  off = 0,
  on = 1,  // paged sessions share the pages that another session has computed for the same beginning
  automatic = 2,
};

// Options of a session's keys and values. If an option is `automatic` or 0 in a session's options, the engine's option (EngineOptions::kv)
// applies; if that is `automatic` or 0 too, the default in the comment applies.
struct KvOptions {
  DType dtype = DType::automatic;    // one of kv_types(); default: F32 for models of F32 weights, else F16
  KvKind kind = KvKind::automatic;   // default: paged
  std::uint32_t page_tokens = 0;     // 16, 32 or 64; default: 32
  PrefixReuse prefix = PrefixReuse::automatic;  // default: on for paged sessions
  std::string salt = {};             // only sessions with equal salts share pages; a tenant's name, for example
  // In models with recurrent layers: the number of checkpoints that a session keeps (the newest ones). A checkpoint is the state after the
  // last token of a full page, to which truncate() can go back, and takes KvLayout::state_bytes() bytes. kAllCheckpoints: a checkpoint for
  // every page, so that after truncate() at most a page of tokens must be computed again. Default: 2.
  std::uint32_t checkpoints = 0;
  // Limit of the number of tokens that keep their keys and values (token_budget.hpp). Default: no limit. kNoTokenBudget: no limit for this
  // session, although the engine's options have one.
  // TokenChoice::h2o and snapkv count which keys rows attend to. The memory for this is allocated while the engine is loaded, so a session
  // can use them only if the budget in EngineOptions::kv uses h2o or snapkv.
  // Prefix reuse: a session with h2o takes no pages from the prefix index, because the index does not know what the rows of these pages
  // have attended to. For the same reason a session with snapkv computes at least the last kAskingRows tokens of a prompt itself.
  TokenBudget budget = {};
  // Another KV type for the model's first and last layers (wide_layers.hpp). Default: the type of the other layers. If a session sets
  // `dtype`, the engine's `wide` does not apply to it. Error: invalid_argument, more layers than have keys and values.
  WideLayers wide = {};
};

// A stream: a sequence that may go on without end (attention sinks and a window; Xiao et al. 2023). When the context is full, the session
// is *cut*, as keep_window() does: the first `sinks` tokens and the last `window` tokens stay, and the tokens between them are removed.
//
// The call that fills the context makes the cut before it returns. A cut needs memory. If no memory is free, this call still succeeds and
// the session stays full; the next call then begins with the cut, and fails if there is still no memory. If the next call makes the cut and
// then fails for another reason, the session stays cut.
//
// An append must fit into the room that a cut makes: `context` - `sinks` - `window` tokens. Also, a session with a stream keeps the keys
// and values that the model's own sliding window has passed, because a cut needs them.
struct StreamOptions {
  std::uint32_t sinks = 4;
  std::uint32_t window = 0;  // 0: no stream, so a full context is an error. A smaller window makes cuts rarer and larger
};

struct SessionOptions {
  KvOptions kv = {};
  std::uint32_t context = 0;  // most tokens of the session; 0: the engine's context (Plan::context)
  StreamOptions stream = {};
  std::vector<AdapterUse> adapters = {};  // adapters of the same engine; use_adapters() changes them later
  // A function of the host that returns the embedding with this content_hash()  [d_model], or an empty span if it does not know the
  // embedding. Purpose: a session keeps only the hashes of its embeddings. With this function it can compute embeddings again, as it does
  // with tokens: after truncate(), use_adapters() and restore(), in verify(), and after a scheduler has taken the session's pages. If a
  // call needs an embedding that is not known, it returns invalid_state. Default: no function.
  // A returned span must live until the session's call returns. The function must not use the session. It must not throw: an exception
  // counts as an unknown embedding. Copies of the session share the function, and several threads may call it at once.
  std::function<std::span<const float>(const Hash128& content)> embedding_of = {};
};

enum class LogitsOf : std::int32_t { last = 0, all = 1, none = 2 };

struct AppendOptions {
  LogitsOf logits = LogitsOf::last;
  std::span<const std::size_t> rows = {};  // indices of the tokens whose logits are wanted, ascending; empty: `logits` decides
  std::stop_token stop = {};               // checked before every layer
  // Called after each step of a long prompt. done: tokens computed so far; total: tokens to compute. Return false to cancel. The callback
  // must not use the session.
  std::function<bool(std::size_t done, std::size_t total)> progress = {};
};

// Logits of the tokens that AppendOptions chose, in order  [rows, vocab]. A view into the session, valid until the session's next call.
struct Logits {
  std::span<const float> values;
  std::size_t vocab = 0;
  [[nodiscard]] std::size_t rows() const noexcept { return vocab == 0 ? 0 : values.size() / vocab; }
  [[nodiscard]] std::span<const float> operator[](std::size_t row) const noexcept {
    return values.subspan(row * vocab, vocab);
  }
};

class Session {
 public:
  Session() noexcept;  // an empty handle (docs/headers.md)
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // Appends the tokens and computes them, pending tokens first. Returns the logits that `options` choose (by default those after the last
  // token). If `tokens` is empty: computes the pending tokens and returns the logits after the last of them. If there are no pending tokens
  // either: returns the logits after the session's last token; if they are no longer known (after truncate(), for example), this token is
  // computed again.
  // Errors: invalid_argument, a token that is not in the vocabulary; cache_full; out_of_memory; cancelled. After an error the session is as
  // it was. Exception: if the last token had to be computed again, it is pending afterwards.
  Result<Logits> append(std::span<const Token> tokens, const AppendOptions& options = {}) noexcept;

  // Appends the tokens, and returns how likely the model finds each of them: ln p(token | all tokens before it)  [tokens]. `options.logits`
  // and `options.rows` have no effect. If the session was empty, the first value is NaN, because no token comes before the first token.
  // Errors: invalid_state, the logits after the session's last token are not known, for example after truncate() (call append({}) first);
  // invalid_argument, no tokens, or a token that is not in the vocabulary; numeric, the model's logits hold a NaN or an infinity;
  // cache_full; out_of_memory; cancelled. After an error the session is as it was.
  [[nodiscard]] Result<std::vector<float>> score(std::span<const Token> tokens, const AppendOptions& options = {}) noexcept;

  // Draws tokens until the text ends as `options` say. Returns a range of Result<Piece>; if an error ends the text, it is the last element.
  // The sampler must outlive the Generation. Until the Generation has ended or is destroyed, it alone may change the session. If you leave
  // the loop early, the delivered tokens stay in the session. If the logits after the session's last token are not known, this token is
  // computed again first.
  [[nodiscard]] Generation generate(Sampler& sampler, const GenerateOptions& options = {}) noexcept;
  // Draws tokens as above, and passes each piece to `callback`, which returns false to stop. If the callback throws, the error is
  // callback_failed, and the delivered tokens stay.
  Result<GenerationSummary> generate(Sampler& sampler, const GenerateOptions& options,
                                     const std::function<bool(const Piece&)>& callback) noexcept;

  // Appends a token that the host drew, without computing it: the token becomes pending. Errors: invalid_argument, the token is not in the
  // vocabulary; cache_full, the context has no room for the pending tokens.
  Status add_pending(Token token) noexcept;

  // Changes the session's adapters. All tokens stay. Tokens whose keys and values would be different with the new adapters become pending:
  // the next call computes them again, or finds them in the prefix index. Errors: invalid_argument, an adapter of another engine or an
  // empty one, or a scale that is not finite; invalid_state, the session is edited and its computed tokens would change; unsupported, these
  // tokens include embeddings that the session cannot compute again (SessionOptions::embedding_of). After an error the session is as it
  // was.
  Status use_adapters(std::span<const AdapterUse> adapters) noexcept;
  // Returns the session's adapters, in the order of their first positions. Adapters with scale 0 are left out.
  [[nodiscard]] Result<std::vector<AdapterUse>> adapters() const noexcept;

  // Drops the tokens from `position` on. If `position` is the number of tokens or more, nothing changes. Afterwards the logits are not
  // known: append({}) and generate() compute the last token again.
  // With a sliding window, the next token may need keys that were freed already. Then tokens before `position` become pending, and the next
  // call computes them again, with the same bits (in an edited() session: with the bits of a new session). Exception: if one of these
  // tokens is an embedding and there is no SessionOptions::embedding_of, the whole sequence is dropped.
  // Errors: invalid_state, another call or a Generation uses the session, or the session is empty.
  Status truncate(std::size_t position) noexcept;
  Status clear() noexcept { return truncate(0); }

  // Removes tokens [first, last), none of which may be pending. Later tokens move up: their keys are rotated to the new positions, but
  // their values stay, although they were computed while the removed tokens were visible. So the session's keys and values are not those
  // that the model would compute from tokens(): the session is edited(). The last logits stay, unless the last token was removed. (To
  // remove the end of the sequence, use truncate().) Errors: unsupported, with learned positions, keys that are normed after their
  // rotation, recurrent layers or loaded draft heads; device_error, the session is as it was but edited().
  Status remove(std::size_t first, std::size_t last) noexcept;
  // Keeps the first `sinks` and the last `window` of the tokens that are not pending, and removes the tokens between them (StreamingLLM;
  // Xiao et al. 2023). Pending tokens stay too. Errors: those of remove().
  Status keep_window(std::size_t sinks, std::size_t window) noexcept;
  // Returns whether the keys and values may differ from those that the model would compute from tokens(), because tokens were removed or
  // converted, for example.
  [[nodiscard]] bool edited() const noexcept;

  // Returns another session with the same tokens. A fork takes no memory for keys and values: both sessions share all pages, and when one of
  // them writes to a shared page, only that page is copied. Errors: invalid_state, a contiguous session: use clone().
  [[nodiscard]] Result<Session> fork() const noexcept;
  // Returns a copy with its own keys and values.
  [[nodiscard]] Result<Session> clone() const noexcept;
  // Returns a copy in another KV type, kind or page size; options that are automatic stay as in this session. If the type changes, keys and
  // values are decoded and encoded again. They then differ from keys and values that the model would compute in the new type, so the copy
  // is edited().
  [[nodiscard]] Result<Session> convert(const KvOptions& to) const noexcept;

  // suspend() moves keys and values to the engine's kv_file. resume() reads them back. prefetch() begins to read them, so that resume()
  // waits less (see KvCache). A suspended session keeps its tokens and logits. Calls that need keys and values resume the session by
  // themselves. Exception: fork(), clone(), convert(), verify() and save() return invalid_state.
  Status suspend() noexcept;
  Status prefetch() noexcept;
  Status resume() noexcept;
  [[nodiscard]] bool suspended() const noexcept;

  // Computes the sequence again, without pages of the prefix index or of other sessions, and compares keys, values and logits bit by bit.
  // An edited session is compared with a new session to which the same operations are applied. Costs the memory of another session and the
  // time to compute all tokens.
  [[nodiscard]] Result<Verification> verify(const VerifyOptions& options = {}) const noexcept;

  // Writes everything that the session needs to go on with the same bits (format: docs/kv-format.md). Engine::restore() reads it back, into
  // any kind of cache and page size, in any process, on any backend. A file gets its name only when it is complete. If a sink returns an
  // error, save() returns it unchanged; if a sink throws, the error is callback_failed.
  [[nodiscard]] Status save(const std::filesystem::path& path) const noexcept;
  [[nodiscard]] Status save(const ByteSink& sink) const noexcept;

  [[nodiscard]] std::size_t position() const noexcept;               // tokens whose keys and values are computed
  [[nodiscard]] std::span<const Token> tokens() const noexcept;      // all tokens, pending ones included; -1 for an embedding
  [[nodiscard]] std::span<const Hash128> contents() const noexcept;  // content_hash() of each embedding among tokens(), in order
  [[nodiscard]] bool has_pending() const noexcept;
  // Returns the position to pass to Sampler::sample() for the next token: tokens().size() plus the number of tokens that edits removed. The
  // sampler's random numbers depend on the position, so each draw must have another position, even after tokens were removed.
  [[nodiscard]] std::uint64_t next_position() const noexcept;
  [[nodiscard]] std::span<const float> logits() const noexcept;      // after the last token  [vocab]; empty if unknown
  [[nodiscard]] std::size_t context() const noexcept;                // tokens at most
  [[nodiscard]] std::size_t reused() const noexcept;                 // tokens taken from the prefix index so far
  [[nodiscard]] const TokenBudget& budget() const noexcept;          // with the defaults filled in
  [[nodiscard]] const KvCache& kv() const noexcept;
  [[nodiscard]] const Engine& engine() const noexcept;

  struct State;

 private:
  friend class Engine;
  friend class Batch;
  friend class TextStream;
  friend class Samples;
  friend class BeamSearch;
  friend class Scheduler;
  explicit Session(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
