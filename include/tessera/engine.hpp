// An Engine is a loaded model: weights, tokenizer, backend, threads. It is immutable, safe to use from any thread, and
// a cheap handle: copies and sessions share it and keep it alive. Forward passes of several threads queue in order. An empty
// Engine (docs/headers.md) has an empty spec(), metadata(), plan() and tokenizer().
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <tessera/backend/cuda_options.hpp>
#include <tessera/backend/instruction_set.hpp>
#include <tessera/batch.hpp>
#include <tessera/core/dtype.hpp>
#include <tessera/core/log.hpp>
#include <tessera/core/numerics.hpp>
#include <tessera/core/result.hpp>
#include <tessera/extend/backend/input_observer.hpp>
#include <tessera/extend/core/executor.hpp>
#include <tessera/extend/core/memory.hpp>
#include <tessera/extend/files/byte_source.hpp>
#include <tessera/extend/files/model_source.hpp>
#include <tessera/extend/model/model_spec.hpp>
#include <tessera/files/model_file.hpp>
#include <tessera/session.hpp>
#include <tessera/text/tokenizer.hpp>

namespace tessera {

enum class BackendKind : std::int32_t { cpu = 0, cuda = 1 };
enum class TokenizerUse : std::int32_t {
  from_model = 0,  // a tokenizer that the file has must load; a file without one gives an engine without one
  none = 1,        // the host brings its own
};

enum class Fallback : std::int32_t {
  allow = 0,
  refuse = 1,  // strict: an operation without its best kernel is an error at load
};

// Bytes done and bytes in all, while weights are read. Return false to cancel.
using LoadProgress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

struct EngineOptions {
  // What changes results.
  KvOptions kv = {};                                     // of sessions that do not say otherwise
  std::uint32_t context = 0;                             // tokens of a session at most; 0: the model's own
  std::optional<std::uint32_t> sliding_window = {};      // instead of the file's (Mistral: 4096); 0 turns it off
  TokenizerUse tokenizer = TokenizerUse::from_model;
  // The layers of a file that guess further tokens, for mtp_drafter(). Loaded, each row is computed in them too, and sessions
  // have the properties of a model with recurrent layers: roll-back and prefixes end at checkpoints (docs/speculation.md).
  // The model's own results are the same. not_found: the file has none.
  MtpHeads mtp = MtpHeads::leave_out;
  Numerics numerics = Numerics::automatic;               // numerics.hpp; explain() lists what came of it

  // What changes speed and memory.
  BackendKind backend = BackendKind::cpu;
  CudaOptions cuda = {};                                 // of the cuda backend alone
  // Of the CPU's kernels; forcing one is for tests and comparisons. One that cannot run here is an error. Tiles (amx)
  // must be asked of the system, for the whole process: signal frames grow by 8 KB, so that alternate signal stacks of
  // less are refused from then on. A host that has such stacks forces avx512_vnni.
  InstructionSet instruction_set = InstructionSet::automatic;
  std::uint32_t threads = 0;                             // of the engine's own pool; 0: usable_threads() (executor.hpp)
  std::shared_ptr<Executor> executor = {};               // the host's, instead of a pool
  Fallback fallback = Fallback::allow;
  std::uint32_t step_rows = 512;                         // tokens computed at once in a prefill
  Memory* memory = nullptr;                              // for large buffers; nullptr: system_memory()
  std::uint64_t memory_budget = 0;                       // bytes that the plan may reach; 0: no limit
  // Bytes of KV pages, of all paged sessions and the prefix index, at most. 0: sessions get what they need, and pages
  // that none uses any more are kept for reuse as long as all are within the plan's `kv`.
  std::uint64_t kv_budget = 0;
  // A file for KV pages that are not in memory, of kv_file_bytes at once: of suspended sessions, and of the prefix
  // index when memory is short. It must not exist, and has no name once the engine has it. Empty: none.
  std::filesystem::path kv_file = {};
  std::uint64_t kv_file_bytes = 0;
  FreedPages freed_pages = FreedPages::leave;            // of paged sessions; fill_nan: for finding mistakes
  // Sees what every matrix multiplies, and outlives the engine; results are the same, and later. Of the cpu backend alone.
  InputObserver* input_observer = nullptr;

  LogCallback log = {};
  LogLevel log_level = LogLevel::info;                   // the least that is told
  LoadProgress progress = {};
  std::stop_token stop = {};                             // cancels loading, also while the header and tokenizer are read
};

// Memory, known before it is taken: bytes of an engine with one session of `context` tokens, its sampler, and logits of
// one row. With the cuda backend `weights`, `kv` and `workspace` are the device's, and `peak` is what the host needs beside
// them. A model with a sliding window gives pages back as it goes; the plan is for a prompt that fills the context
// at once. Logits of many rows (LogitsOf::all, forward) come on top: 4 bytes times rows times vocabulary.
struct Plan {
  std::uint64_t weights = 0;
  std::uint64_t kv = 0;                  // of one full session; paged: in whole slabs (kv_pools.hpp)
  std::uint64_t kv_limit = 0;            // what the peak counts: the KV budget, or without one `kv`
  std::uint64_t kv_per_token = 0;
  std::uint64_t workspace = 0;
  std::uint64_t host = 0;                // tokenizer, tables, one session's logits, tokens and sampler
  std::uint64_t loading = 0;             // in passing, while loading: headers, staging
  std::uint64_t peak = 0;                // of the host's memory, the most at any time
  std::uint64_t device_peak = 0;         // of the device's, likewise; 0: there is none
  std::uint64_t weights_per_token = 0;   // of the file's weight bytes: read for every token
  std::uint32_t context = 0;
  DType kv_dtype = DType::f32;
  WideLayers kv_wide = {};               // automatic: all layers have kv_dtype
  KvKind kv_kind = KvKind::paged;
  std::uint32_t page_tokens = 0;
  KvLayout kv_layout = {};               // where layers keep keys, values and states
};

// Which kernel runs an operation. `fallback` says why it is not the best one there is; empty if it is.
struct KernelUse {
  std::string operation, kernel, family, dtype, backend, fallback;
};

// Of KV memory.
struct KvNeed {
  std::uint64_t pages = 0;             // of paged sessions
  std::uint64_t bytes = 0;             // of those pages
  std::uint64_t contiguous_bytes = 0;  // of contiguous sessions, which no budget counts
};
struct KvRoom {
  std::uint64_t bytes = 0;  // of the budget (EngineOptions::kv_budget), not used by sessions; without one the largest number
};

class Engine {
 public:
  Engine() noexcept = default;  // an empty handle (docs/headers.md)
  // Loads the file, or all parts of a split one. Errors name the file and the key or tensor.
  [[nodiscard]] static Result<Engine> load(const std::filesystem::path& path, const EngineOptions& options = {}) noexcept;
  [[nodiscard]] static Result<Engine> load(const ModelSource& source, const EngineOptions& options = {}) noexcept;

  // What load() with these options would take, without loading.
  [[nodiscard]] static Result<Plan> plan(const ModelSource& source, const EngineOptions& options = {}) noexcept;

  [[nodiscard]] Result<Session> session(const SessionOptions& options = {}) const noexcept;

  // A session as Session::save() wrote it: from a file, a source, or bytes that stay the caller's. `options` are as for
  // a new session, but for the KV types: automatic are the saved ones, and others are an error (restore, then convert()).
  // A damaged file, another format version, model, numerics family, rope option or sliding window, and a context that
  // is too small are errors that say which. What another backend computed goes on here, but this one would not have
  // computed it: the session is edited(), and verify() says unverifiable. Checksums find damage, not malice: pages of an
  // unedited session join the prefix index, so restore what strangers may have written with PrefixReuse::off or a salt
  // of its own.
  [[nodiscard]] Result<Session> restore(const std::filesystem::path& path, const SessionOptions& options = {}) const noexcept;
  [[nodiscard]] Result<Session> restore(const std::shared_ptr<ByteSource>& source,
                                        const SessionOptions& options = {}) const noexcept;
  [[nodiscard]] Result<Session> restore(std::span<const std::byte> bytes, const SessionOptions& options = {}) const noexcept;

  // Runs the transformer over the batch's rows, and appends them to their sessions: prefill, decode, chunks of prompts
  // and mixtures of them. A row's result does not depend on what else is in the batch. A session that cannot have its
  // rows (a bad token, no room, a full context, its own stop) stays as it was, and the others go on: Outputs::outcome()
  // says which. If none of them could, that is an error, of the first one. A session must be of this engine.
  //
  // Where new sessions of one batch begin with the same tokens, those are computed once: the first session computes
  // them, and the others, computed after it, take its full pages, as from any session before (paged sessions with prefix
  // reuse, of the same type, page size and salt). Of rows of which something is wanted each session computes its own.
  [[nodiscard]] Result<Outputs> forward(const Batch& batch, const ForwardOptions& options = {}) const noexcept;

  // What forward() would have to find for these rows, before it is asked: pages that the sessions' caches do not have
  // yet, and copies of pages that they share and would write to. What the prefix index or another session of the batch
  // has of a prompt is not known before, and counted as if nobody had it. Errors are the batch's own, not its sessions'.
  [[nodiscard]] Result<KvNeed> kv_need(const Batch& batch) const noexcept;
  // What paged sessions can still get. Others may get it first.
  [[nodiscard]] KvRoom kv_room() const noexcept;
  // Of the paged sessions' pages and the prefix index.
  [[nodiscard]] KvFigures kv_figures() const noexcept;
  // Gives back the KV pages that no session uses; the prefix index forgets them.
  void trim() const noexcept;

  [[nodiscard]] const ModelSpec& spec() const noexcept;
  // The model's settings, and its file's own keys (Settings::find_key()), but for lists (the vocabulary's) and strings over 1 MiB. They
  // outlive the source, and live as long as any copy of the engine's handle.
  [[nodiscard]] const Settings& metadata() const noexcept;
  [[nodiscard]] const Plan& plan() const noexcept;
  [[nodiscard]] const Tokenizer& tokenizer() const noexcept;  // without a vocabulary, encoding is an error that says so
  [[nodiscard]] Result<std::vector<KernelUse>> explain() const noexcept;
  [[nodiscard]] std::size_t threads() const noexcept;

  struct State;

 private:
  friend class Scheduler;
  explicit Engine(std::shared_ptr<const State> state) noexcept;
  std::shared_ptr<const State> state_;
};

}  // namespace tessera
