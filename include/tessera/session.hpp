// A Session is one sequence: its tokens, their keys and values, and the logits after the last. Sessions of one engine are
// independent. A session is changed by one call at a time: another one meanwhile, from another thread, from a callback of
// the first, or while a Generation of the session has not ended, is invalid_state. Const functions that return a Result
// (fork, clone, convert, verify, save) may run at the same time as each other, also between the pieces of a Generation.
//
// The last token that generate() delivered is pending: it belongs to the sequence, but its keys and values are not
// computed yet, so neither are the logits after it. The next append(), generate() or forward() does that first (no
// tokens to append: just that). So position() may be behind tokens().size(): by one, or by more after truncate() with a
// sliding window.
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

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/files/byte_sink.hpp>
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
  on = 1,  // of paged sessions: pages that another session has computed for the same beginning are shared, not recomputed
  automatic = 2,
};

// What is automatic (or 0) in a session's options is as in the engine's; what is so there too is the default.
struct KvOptions {
  DType dtype = DType::automatic;    // one of kv_types(); default: F32 for models of F32 weights, else F16
  KvKind kind = KvKind::automatic;   // default: paged
  std::uint32_t page_tokens = 0;     // 16, 32 or 64; default: 32
  PrefixReuse prefix = PrefixReuse::automatic;  // default: on, of paged sessions
  std::string salt = {};             // pages are shared only between sessions of the same salt: a tenant's name, say
  // Of recurrent layers: states kept at the borders of so many full pages, the newest, for truncate() to go back to; each is
  // KvLayout::state_bytes(). kAllCheckpoints: of every page, so that a page's tokens at most are computed again. Default: 2.
  std::uint32_t checkpoints = 0;
  // Default: none. h2o and snapkv need room of the workspace: an engine whose own budget has one of the two makes sessions of
  // either. kNoTokenBudget: none, though the engine has one. A session of h2o takes nothing from the prefix index, which does
  // not know what rows have attended to; one of snapkv takes all but the last kAskingRows tokens.
  TokenBudget budget = {};
  // Layers at the two ends that have another type, wider or not; default: none. A session with a dtype of its own does not have
  // the engine's. invalid_argument: more layers than keep keys and values.
  WideLayers wide = {};
};

// Attention sinks and a sliding window, so that a sequence need not end (Xiao et al. 2023). When the context is full, the
// session is cut: the first `sinks` and the last `window` tokens are kept, as keep_window() does.
//
// The call that fills the context cuts it, after everything else that could fail. A cut needs memory of its own. If there
// is none, the call succeeds, and the session stays full; the next call cuts it before it begins, or fails for the same
// reason. (So it is with a session that was full when it was restored.) If that next call then fails for a reason of its
// own, the session stays cut.
//
// An append must fit into the room that a cut leaves: `context` - `sinks` - `window` tokens. Such a session keeps the keys
// and values that the model's own sliding window has passed, since a cut needs them.
struct StreamOptions {
  std::uint32_t sinks = 4;
  std::uint32_t window = 0;  // 0: a full context is an error. The smaller, the rarer and the larger the cuts
};

struct SessionOptions {
  KvOptions kv = {};
  std::uint32_t context = 0;  // tokens at most; 0: the engine's
  StreamOptions stream = {};
};

enum class LogitsOf : std::int32_t { last = 0, all = 1, none = 2 };

struct AppendOptions {
  LogitsOf logits = LogitsOf::last;
  std::span<const std::size_t> rows = {};  // indices into the tokens, ascending: instead of `logits`
  std::stop_token stop = {};               // looked at before every layer
  // Tokens done and tokens in all, after each step of a long prompt. Return false to cancel. It must not use the
  // session.
  std::function<bool(std::size_t done, std::size_t total)> progress = {};
};

// Logits of the rows that were asked for, in order  [rows, vocab]. A view into the session, until its next call.
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

  // Computes the tokens after those the session has. On error (a token that is not in the vocabulary, a full cache, no
  // memory, a stop) the session is as it was. No tokens: just the pending ones; and if there are none, the logits after
  // the last token, which is computed again if they are not known (after truncate(), say; if that fails, it is pending).
  Result<Logits> append(std::span<const Token> tokens, const AppendOptions& options = {}) noexcept;

  // Appends (`logits` and `rows` do not matter), and gives ln p(token | everything before it) of each token  [tokens]. The
  // first token of an empty session has nothing before it: its value is NaN.
  [[nodiscard]] Result<std::vector<float>> score(std::span<const Token> tokens, const AppendOptions& options = {}) noexcept;

  // Draws tokens until an end is reached: a range of Result<Piece>, an error being its last element. The sampler must
  // outlive the Generation, which has the session to itself until its end or its destruction. Leaving the loop early
  // keeps the tokens delivered. If the logits after the last token are not known, that token is computed again first.
  [[nodiscard]] Generation generate(Sampler& sampler, const GenerateOptions& options = {}) noexcept;
  // The same with a callback; it returns false to stop. If it throws, that is the error; the tokens delivered stay.
  Result<GenerationSummary> generate(Sampler& sampler, const GenerateOptions& options,
                                     const std::function<bool(const Piece&)>& callback) noexcept;

  // Makes a token that the host drew the sequence's next one: it is pending, as one of generate()'s. invalid_argument: it
  // is not in the vocabulary; cache_full: the context has no room for those that are pending.
  Status add_pending(Token token) noexcept;

  // Drops the tokens from `position` on; at or beyond the end it changes nothing. The logits are gone: append({}) and
  // generate() compute the last token again for new ones. If the model's sliding window has given back keys that
  // `position` needs, the tokens before it are pending again: the next call computes them, with the same bits, or if it is edited()
  // those of a new session. (An embedding cannot be: a sequence with one is dropped as a whole.) The one error is invalid_state.
  Status truncate(std::size_t position) noexcept;
  Status clear() noexcept { return truncate(0); }

  // Removes tokens [first, last), none of them pending; what follows moves up, its keys rotated to their new positions.
  // The values of the tokens that stay still know of those that went: that is no longer what the model would compute from tokens(), and
  // the session is edited(). Its last logits stay, unless the last token went. unsupported: learned positions, keys that are normed
  // behind their rotation, recurrent layers, a loaded MTP head. Removing the end is truncate(). If a device fails, the session is as
  // it was, but edited().
  Status remove(std::size_t first, std::size_t last) noexcept;
  // Of the tokens that are not pending, keeps the first `sinks` and the last `window`, and removes what is between
  // (StreamingLLM; Xiao et al. 2023). Pending tokens stay as well.
  Status keep_window(std::size_t sinks, std::size_t window) noexcept;
  [[nodiscard]] bool edited() const noexcept;

  // Another session with the same tokens, at the cost of no memory for keys and values: pages are shared until one of
  // the two writes to one, and then that page alone is copied. Of a contiguous session an error: clone() it.
  [[nodiscard]] Result<Session> fork() const noexcept;
  // A copy with a cache of its own.
  [[nodiscard]] Result<Session> clone() const noexcept;
  // A copy in another type, layout or page size (what is automatic stays as it is here). To another type, values are
  // decoded and encoded again: that is not what computing in that type would give, and the copy is edited().
  [[nodiscard]] Result<Session> convert(const KvOptions& to) const noexcept;

  // To the engine's kv_file and back (KvCache::suspend() says more): a suspended session keeps its tokens and logits,
  // and no memory for keys and values once they are written. What needs them resumes it by itself, except copies,
  // verify() and save().
  Status suspend() noexcept;
  Status prefetch() noexcept;
  Status resume() noexcept;
  [[nodiscard]] bool suspended() const noexcept;

  // Computes the sequence again, uncached and unshared, and compares keys, values and logits bit by bit. It takes the
  // memory of another session, and the time of its prompt. An edited session is compared with a replay of the same
  // operations.
  [[nodiscard]] Result<Verification> verify(const VerifyOptions& options = {}) const noexcept;

  // Writes all that the session needs to go on with the same bits (format: docs/kv-format.md); Engine::restore() reads
  // it back, into any layout and page size, in any process, on any backend. The file appears whole or not at all. With a
  // sink, an error of the sink comes back as it is; if it throws, that is callback_failed.
  [[nodiscard]] Status save(const std::filesystem::path& path) const noexcept;
  [[nodiscard]] Status save(const ByteSink& sink) const noexcept;

  [[nodiscard]] std::size_t position() const noexcept;               // tokens whose keys and values are there
  [[nodiscard]] std::span<const Token> tokens() const noexcept;      // all, pending ones too; -1 for an embedding
  [[nodiscard]] bool has_pending() const noexcept;
  // Of the next token, for Sampler::sample(): tokens().size(), and those that edits removed, so that a position's random
  // numbers never come twice.
  [[nodiscard]] std::uint64_t next_position() const noexcept;
  [[nodiscard]] std::span<const float> logits() const noexcept;      // after the last token  [vocab]; empty if unknown
  [[nodiscard]] std::size_t context() const noexcept;                // tokens at most
  [[nodiscard]] std::size_t reused() const noexcept;                 // tokens taken from the prefix index so far
  [[nodiscard]] const TokenBudget& budget() const noexcept;          // nothing automatic
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
