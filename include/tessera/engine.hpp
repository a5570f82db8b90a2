// An Engine is a loaded model: its weights and tokenizer, and the backend and threads that compute it.
//
//   auto engine = tessera::Engine::load("model.gguf", {.memory_budget = std::uint64_t{4} << 30});  // 4 GiB at most
//   if (!engine) return report(engine.error());
//   auto session = engine->session();
//
// An Engine is an immutable, cheap handle: copies and sessions share the model and keep it alive. Threads: any thread may call every
// function; forward passes of several threads wait for each other, in order of arrival. An empty Engine (docs/headers.md) has an empty
// spec(), metadata(), plan() and tokenizer().
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
#include <string_view>
#include <vector>

#include <tessera/adapter.hpp>
#include <tessera/backend/cuda_options.hpp>
#include <tessera/backend/instruction_set.hpp>
#include <tessera/batch.hpp>
#include <tessera/core/dtype.hpp>
#include <tessera/core/log.hpp>
#include <tessera/core/numerics.hpp>
#include <tessera/core/result.hpp>
#include <tessera/embedding.hpp>
#include <tessera/extend/adapters/merged_adapter.hpp>
#include <tessera/extend/backend/input_observer.hpp>
#include <tessera/extend/backend/rank_split.hpp>
#include <tessera/extend/backend/rank_transport.hpp>
#include <tessera/extend/core/executor.hpp>
#include <tessera/extend/core/memory.hpp>
#include <tessera/extend/core/operation.hpp>
#include <tessera/extend/files/byte_source.hpp>
#include <tessera/extend/files/model_file.hpp>
#include <tessera/extend/files/model_source.hpp>
#include <tessera/extend/model/model_spec.hpp>
#include <tessera/session.hpp>
#include <tessera/text/tokenizer.hpp>

namespace tessera {

enum class BackendKind : std::int32_t { cpu = 0, cuda = 1 };
enum class TokenizerUse : std::int32_t {
  from_model = 0,  // the file's tokenizer; load() fails if it cannot be loaded. A file without a tokenizer is no error
  none = 1,        // no tokenizer: the host has its own
};

enum class Fallback : std::int32_t {
  allow = 0,
  // load() fails if an operation would run without its best kernel, or if the file does not name its pre-tokenizer
  // (Tokenizer::pre_tokenizer_is_assumed()).
  refuse = 1,
};

// A callback that load() calls while it reads the weights. done: bytes read so far; total: bytes to read in all. Return false to cancel.
using LoadProgress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

struct EngineOptions {
  // Options that change results.
  KvOptions kv = {};                                     // defaults for sessions whose own options are automatic
  std::uint32_t context = 0;                             // most tokens of a session; 0: the model's context length
  std::optional<std::uint32_t> sliding_window = {};      // tokens, instead of the file's value (Mistral: 4096); 0: no window
  TokenizerUse tokenizer = TokenizerUse::from_model;
  // Says whether the file's MTP head is loaded: a further layer that guesses tokens, for head_drafter(). The model's own results stay the
  // same.
  // Cost: this layer is computed for each row too. Sessions get the limits of a model with recurrent layers: they can be truncated only to
  // checkpoints, and share only prefixes that end at checkpoints (docs/explanation/speculation.md).
  // Error: not_found, the file has no MTP head.
  MtpHeads mtp = MtpHeads::leave_out;
  // Path of draft heads that have a file of their own, for head_drafter(): a folder of Medusa or EAGLE heads as hubs publish them, or a
  // GGUF file of an EAGLE-3 head in llama.cpp's form. The heads must have been trained for this model. Empty: no such file. Results stay
  // the same, but Session::remove() returns unsupported.
  // Errors: those of reading the file; invalid_argument, the heads are for a model of another width, vocabulary or number of layers, or
  // `mtp` loads heads too; unsupported, heads of another kind.
  std::filesystem::path draft_heads = {};
  // Draft heads from a GGUF source of the host (a ModelFile in memory, for example), instead of from the path `draft_heads`. To set both is
  // an error. The engine keeps the source only while loading.
  std::shared_ptr<const ModelSource> draft_heads_source = {};
  // Adapters (LoRA) to merge into the weights, in this order. The engine then computes as fast as without adapters. Each tensor that an
  // adapter changes is rounded to its format again. Errors: those of reading an adapter; unsupported, an adapter with an invocation
  // (aLoRA), or a tensor in a format that tessera does not write.
  std::vector<MergedAdapter> merge = {};
  Numerics numerics = Numerics::automatic;               // the arithmetic; explain() returns the family of each operation
  // Says how inputs of matrix products are rounded. Errors with as_the_model_says: unsupported, tessera does not compute the rounding that
  // the model states, or the model states one and the backend is not the CPU's.
  Activations activations = Activations::automatic;

  // Options that change speed and memory.
  BackendKind backend = BackendKind::cpu;
  CudaOptions cuda = {};                                 // only for the cuda backend
  // The instruction set of the CPU's kernels. Set it only for tests and comparisons. Error: a set that this machine cannot run.
  // With amx the engine requests tile registers from the system, for the whole process. Signal frames then grow by 8 KB, and the system
  // refuses alternate signal stacks (sigaltstack()) that are too small for such frames. If your process has small signal stacks, set
  // avx512_vnni.
  InstructionSet instruction_set = InstructionSet::automatic;
  std::uint32_t threads = 0;                             // threads of the engine's own pool; 0: usable_threads() (executor.hpp)
  // Number of ranks among which the model is divided, all in this process. Each rank is a thread with a part of the weights and an equal
  // share of `threads` (at least one thread). The results are the same bits for every number of ranks. Several ranks pay on machines with
  // several memories (NUMA nodes): docs/howto/ranks.md.
  // Errors: unsupported, the model is too small for this number of ranks, has draft heads, or has layers that share weights; or an
  // executor, an input observer or another backend than the CPU's is set too.
  std::uint32_t ranks = 1;
  RankSplit rank_split = RankSplit::heads;               // how the model is divided, among threads or processes
  // Addresses ("HOST:PORT" or "unix:PATH") of programs that compute a part of the model, on this machine or others, and that already wait
  // for an engine (serve_rank(), tessera-rank). They become ranks 1, 2, ...; this process is rank 0. Each rank has a part of the weights,
  // and the keys and values of its heads. All ranks must load the same model; a difference is an error.
  // Failures: if a rank fails or does not answer during a call, this call returns device_error, and nothing of its step is kept. Every later
  // call that computes fails too, until the engine is loaded again.
  // Network: saving, restoring, cloning, converting and verifying a session send the other ranks' part of its keys and values. Loading an
  // adapter sends the adapter to the ranks.
  // Errors besides those of `ranks`: io or not_found, no program listens at an address; invalid_argument, an address is wrong or unknown,
  // or a rank refuses; unsupported, kv_file or merge is set too, or `ranks` is above 1.
  std::vector<std::string> rank_addresses = {};
  std::string rank_secret = {};                          // must equal RankOptions::secret of the ranks
  // Connections to the other ranks that the host has made itself (rank_transport.hpp), instead of rank_addresses. The other processes call
  // serve_rank() with their end of the connections. This process must be rank 0. Errors besides those of `ranks`: invalid_argument, this
  // process is not rank 0, or rank_addresses is set too.
  std::shared_ptr<RankTransport> rank_transport = {};
  // Milliseconds after which a rank that sends nothing during a step counts as failed. Choose a longer time than a rank computes between
  // two exchanges with the other ranks. With RankSplit::layers, a rank computes all its layers for step_rows tokens between two exchanges.
  std::uint32_t rank_timeout_ms = 120'000;
  std::shared_ptr<Executor> executor = {};               // the host's executor, instead of a pool
  Fallback fallback = Fallback::allow;
  // The largest number of tokens that one step of a prefill computes. Exception: a model that reads a text as a whole (an encoder) needs
  // the whole text in one step. So its steps have room for the whole context; a context above 8192 tokens is an error, and the default
  // context is at most 8192. Several short texts are still read together only up to step_rows tokens.
  std::uint32_t step_rows = 512;
  Memory* memory = nullptr;                              // for large buffers; nullptr: system_memory()
  std::uint64_t memory_budget = 0;                       // bytes that Plan::peak may reach; 0: no limit
  // Limit, in bytes, of the KV pages of all paged sessions and of the prefix index together. 0: sessions get all pages that they need;
  // pages that no session uses stay in the prefix index only while all pages together take at most Plan::kv bytes.
  std::uint64_t kv_budget = 0;
  // Limit, in bytes, of all loaded adapters together (Engine::adapter()). Plan::peak includes these bytes. 0: what memory_budget leaves, or
  // no limit if memory_budget is 0.
  std::uint64_t adapter_budget = 0;
  // Path of a file to which KV pages are moved from memory: pages of suspended sessions and, when memory is short, pages of the prefix
  // index. The file must not exist. The engine creates it in its full size (kv_file_bytes) and removes its name at once, so the file
  // disappears with the engine. Empty: no file.
  std::filesystem::path kv_file = {};
  std::uint64_t kv_file_bytes = 0;
  FreedPages freed_pages = FreedPages::leave;            // for paged sessions; fill_nan reveals reads of freed pages
  // Receives the input of every matrix product, for example to measure the importance of weights. The observer must outlive the engine.
  // Results stay the same, but computing takes longer. Only for the cpu backend.
  InputObserver* input_observer = nullptr;

  LogCallback log = {};
  LogLevel log_level = LogLevel::info;                   // the lowest level that `log` is called for
  LoadProgress progress = {};
  std::stop_token stop = {};                             // cancels loading, also while the header and tokenizer are read
};

// The memory that an engine will take, computed before it is loaded. Numbers are bytes unless a comment says otherwise. The plan is for an
// engine with one session of `context` tokens, its sampler, and the logits of one row. Not counted: logits of further rows (LogitsOf::all,
// forward()), which take 4 bytes times rows times vocabulary. Sliding windows save nothing here: the plan assumes a prompt that fills the
// context in one call, and a call frees no pages before its end. With the cuda backend `weights`, `kv` and `workspace` are bytes of the
// device, and `peak` counts only the host's memory.
struct Plan {
  std::uint64_t weights = 0;
  // Bytes of one full session; paged: in whole slabs (kv_pools.hpp). For an encoder: of at least 2 * step_rows tokens.
  std::uint64_t kv = 0;
  // KV bytes that `peak` (or device_peak) includes: EngineOptions::kv_budget, if it is set and sessions are paged; otherwise `kv`.
  std::uint64_t kv_limit = 0;
  std::uint64_t kv_per_token = 0;
  std::uint64_t workspace = 0;
  std::uint64_t host = 0;                // tokenizer, tables, one session's logits, tokens and sampler
  std::uint64_t adapters = 0;            // EngineOptions::adapter_budget
  std::uint64_t loading = 0;             // bytes that only loading takes: headers, staging
  std::uint64_t peak = 0;                // most host memory at any time
  std::uint64_t device_peak = 0;         // most device memory at any time; 0: no device
  std::uint64_t weights_per_token = 0;   // bytes, in the file, of the weights that are read for every token; not: draft heads
  std::uint32_t context = 0;             // tokens
  DType kv_dtype = DType::f32;
  WideLayers kv_wide = {};               // kv_wide.dtype is automatic if all layers have kv_dtype
  KvKind kv_kind = KvKind::paged;
  std::uint32_t page_tokens = 0;
  KvLayout kv_layout = {};               // offsets of each layer's keys, values and states in the pages
};

// The kernel that runs an operation: one line of explain(). `operation`: the operation's name and variant, for people ("linear, few rows").
// `fallback`: the reason why no better kernel runs the operation; empty: this is the best kernel.
struct KernelUse {
  Operation kind = Operation::linear;
  std::string operation, kernel, family, dtype, backend, fallback;
};

// The result of Engine::kv_need(): how much more KV memory the rows of a batch need.
struct KvNeed {
  std::uint64_t pages = 0;             // pages of paged sessions, states of recurrent layers included
  std::uint64_t bytes = 0;             // bytes of `pages`
  std::uint64_t contiguous_bytes = 0;  // bytes of contiguous sessions, which no budget counts
};
struct KvRoom {
  std::uint64_t bytes = 0;  // bytes of EngineOptions::kv_budget that no session uses; without a budget, the largest number
};

class Engine {
 public:
  Engine() noexcept = default;  // an empty handle (docs/headers.md)
  // Loads the model at `path`: a GGUF file (with all its parts if it is split), or a folder as hubs publish models (open_model()). Errors
  // name the file, and the key or tensor.
  [[nodiscard]] static Result<Engine> load(const std::filesystem::path& path, const EngineOptions& options = {}) noexcept;
  [[nodiscard]] static Result<Engine> load(const ModelSource& source, const EngineOptions& options = {}) noexcept;

  // Returns the memory that load() with these options would take, without loading. Errors: those that load() would find in the options or
  // in the file's header. Exception: a plan above memory_budget, or above the budget of the device, is no error.
  [[nodiscard]] static Result<Plan> plan(const ModelSource& source, const EngineOptions& options = {}) noexcept;

  // Loads an adapter for this engine's model: a GGUF file, or a folder of PEFT (adapter_config.json). May be called while sessions compute.
  // If an adapter with the same name and content is loaded already, returns that adapter.
  // Errors name the file and the tensor or key: not_found; corrupt_file; unsupported, for example an adapter for another architecture, or a
  // backend that does not compute adapters; over_budget, EngineOptions::adapter_budget is used up; io; cancelled.
  [[nodiscard]] Result<Adapter> adapter(const std::filesystem::path& path, const AdapterOptions& options = {}) const noexcept;

  // Makes an empty session. Errors: invalid_argument, the options contradict each other or the engine's (a context above
  // plan().context, for example); unsupported, an option that this model or backend does not have.
  [[nodiscard]] Result<Session> session(const SessionOptions& options = {}) const noexcept;

  // Reads a session that Session::save() wrote: from a file, a source, or bytes that the caller keeps. `options` apply as to a new session.
  // Exception: with DType::automatic the session gets the saved KV type; any other type is an error (restore first, then convert()).
  // A session that another backend computed can go on here. This backend would have computed other bits, so the session is edited(), and
  // verify() returns unverifiable.
  // Errors say what differs: the file is damaged; the format version, model, numerics family, rope option or sliding window is another one;
  // the context is too small.
  // Security: checksums find damage, but not a forged file. If the session was not edited, its pages join the prefix index, where other
  // sessions find them. So if a stranger may have written the file, set PrefixReuse::off in `options`, or a salt that no other session has.
  [[nodiscard]] Result<Session> restore(const std::filesystem::path& path, const SessionOptions& options = {}) const noexcept;
  [[nodiscard]] Result<Session> restore(const std::shared_ptr<ByteSource>& source,
                                        const SessionOptions& options = {}) const noexcept;
  [[nodiscard]] Result<Session> restore(std::span<const std::byte> bytes, const SessionOptions& options = {}) const noexcept;

  // Computes the batch's rows and appends them to their sessions: whole prompts, pieces of prompts, decoding rows, and mixtures. A row's
  // result does not depend on the other rows of the batch. Exception: numerics whose bits depend on the batch (Numerics).
  // If the rows of a session cannot be computed (a bad token, no room, a full context, its own stop, a session of another engine), this
  // session stays as it was and the other sessions go on; Outputs::outcome() has its error. Errors of forward() itself: if all sessions
  // failed, the error of the first one; invalid_state, a session is empty; invalid_argument, `options` choose no layer; out_of_memory.
  //
  // If several new sessions of the batch begin with the same tokens, these tokens are computed once: the first session computes them, and
  // the other sessions then share its full pages, as through the prefix index. Condition: the sessions are paged, with prefix reuse, and of
  // equal KV type, page size and salt. Exception: rows whose results are wanted are computed for each session.
  [[nodiscard]] Result<Outputs> forward(const Batch& batch, const ForwardOptions& options = {}) const noexcept;

  // Returns the vectors of texts. A text's vector does not depend on the other texts. A step reads as many texts as fit into step_rows
  // tokens, without padding; between two steps, requests of other threads get their turn. An empty text has only the tokens that the
  // tokenizer puts around every text. The second function takes each text as its tokens, and puts no tokens around them; the limit of a
  // list is the context (or EmbedOptions::most_tokens), whatever length the model's files state for texts.
  // Works with every model, but the vectors of a model that was not trained for embeddings compare texts badly. ModelSpec::pooling is the
  // pooling that the model's files state.
  // Errors: invalid_argument, an option, or a text that is too long (LongText::refuse) or has no token; invalid_state, an engine without a
  // tokenizer; those of forward().
  [[nodiscard]] Result<Embeddings> embed(std::span<const std::string_view> texts, const EmbedOptions& options = {}) const noexcept;
  [[nodiscard]] Result<Embeddings> embed(std::span<const std::vector<Token>> tokens, const EmbedOptions& options = {}) const noexcept;
  // Returns a score for each document: the higher, the better the document answers the query. Only scores of the same query can be compared
  // with each other. A cross-encoder's score is the output of its head, unchanged. The score of a decoder (Qwen3-Reranker, recognised by
  // its file or its name) is the probability that the model answers "yes", from 0 to 1. Errors: unsupported, the model does not rank, or
  // has more than two classes; invalid_state, an engine without a tokenizer; those of embed().
  [[nodiscard]] Result<std::vector<float>> rerank(std::string_view query, std::span<const std::string_view> documents,
                                                  const RerankOptions& options = {}) const noexcept;

  // Returns the KV memory that forward() would take for this batch: pages that the sessions' caches do not have yet, and copies of shared
  // pages to which rows would write. The result is an upper limit: pages that the prefix index or the batch's other sessions already have
  // for a prompt are counted as well. Errors: invalid_argument, a session of another engine; invalid_state, a session that is empty or is
  // being changed by another call.
  [[nodiscard]] Result<KvNeed> kv_need(const Batch& batch) const noexcept;
  // Returns the KV memory that paged sessions can still get. Another thread may take this memory first.
  [[nodiscard]] KvRoom kv_room() const noexcept;
  // Returns the figures of the paged sessions' pages and of the prefix index.
  [[nodiscard]] KvFigures kv_figures() const noexcept;
  // Frees the KV pages that no session uses, and removes them from the prefix index.
  void trim() const noexcept;

  [[nodiscard]] const ModelSpec& spec() const noexcept;
  // Returns the model's settings, also by the keys of the file (Settings::find_key()). Left out: lists (the vocabulary, for example) and
  // strings over 1 MiB. The result is valid as long as any copy of this handle, even without the ModelSource.
  [[nodiscard]] const Settings& metadata() const noexcept;
  [[nodiscard]] const Plan& plan() const noexcept;
  [[nodiscard]] const Tokenizer& tokenizer() const noexcept;  // without a vocabulary, encode() returns an error
  // Returns the kernel of each operation, for people and for logs.
  [[nodiscard]] Result<std::vector<KernelUse>> explain() const noexcept;
  [[nodiscard]] std::size_t threads() const noexcept;

  struct State;

 private:
  friend class Scheduler;
  friend class Adapter;
  explicit Engine(std::shared_ptr<const State> state) noexcept;
  std::shared_ptr<const State> state_;
};

}  // namespace tessera
