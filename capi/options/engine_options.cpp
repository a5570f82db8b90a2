#include "options/engine_options.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include <tessera/extend/kv/kv_layout.hpp>

#include "values/tables.hpp"

namespace tessera::c {

namespace {

DType kv_dtype(const Value& value) {
  std::string wanted = value.string();
  const auto lower = [](std::string_view text) {
    std::string result(text);
    for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return result;
  };
  if (lower(wanted) == "auto") return DType::automatic;
  std::string known = "\"auto\"";
  for (const DType type : kv_types()) {
    if (lower(wanted) == lower(to_string(type))) return type;
    known += ", \"" + lower(to_string(type)) + "\"";
  }
  value.refuse("must be one of " + known);
}

constexpr std::string_view kKvKinds[] = {"contiguous", "paged", "auto"};
constexpr std::string_view kTokenChoices[] = {"window", "h2o", "snapkv"};

constexpr Key<TokenBudget> kBudgetKeys[] = {
    {"tokens", "integer", "tokens of a sequence that keep their keys and values, at least 128",
     [](TokenBudget& to, const Value& v) { to.tokens = v.integer<std::uint32_t>(); }},
    {"choice", "\"window\", \"h2o\", \"snapkv\"", "which tokens stay beside the first and the last; default \"window\"",
     [](TokenBudget& to, const Value& v) { to.choice = v.one_of<TokenChoice>(kTokenChoices); }},
    {"sinks", "integer", "first tokens that stay; default 4",
     [](TokenBudget& to, const Value& v) { to.sinks = v.integer<std::uint32_t>(); }},
    {"recent", "integer", "last tokens that stay; default: by `choice`",
     [](TokenBudget& to, const Value& v) { to.recent = v.integer<std::uint32_t>(); }},
};

constexpr Key<WideLayers> kWideKeys[] = {
    {"dtype", "text", "KV type of the first and last layers",
     [](WideLayers& to, const Value& v) { to.dtype = kv_dtype(v); }},
    {"first", "integer", "how many layers at the beginning; default 1",
     [](WideLayers& to, const Value& v) { to.first = v.integer<std::uint32_t>(); }},
    {"last", "integer", "how many layers at the end; default 1",
     [](WideLayers& to, const Value& v) { to.last = v.integer<std::uint32_t>(); }},
};

// Holds only KV options. kv_keys() are the keys of these options in any struct with a member `kv`: engines and sessions
// have one.
struct KvAlone {
  KvOptions kv;
};
template <class T>
constexpr auto kv_keys() {
  return std::to_array<Key<T>>({
      {"kv_dtype", "text",
       "KV type: \"auto\", \"f32\", \"f16\", \"bf16\", \"int8\", \"fp8\", \"int4\", \"k8v4\"; default \"auto\"",
       [](T& to, const Value& v) { to.kv.dtype = kv_dtype(v); }},
      {"kv_kind", "\"paged\", \"contiguous\", \"auto\"",
       "\"paged\": in pages that sessions can share; \"contiguous\": at consecutive addresses, not shared; default "
       "\"paged\"",
       [](T& to, const Value& v) { to.kv.kind = v.one_of<KvKind>(kKvKinds); }},
      {"page_tokens", "16, 32, 64", "tokens of a page; default 32",
       [](T& to, const Value& v) { to.kv.page_tokens = v.integer<std::uint32_t>(); }},
      {"prefix_reuse", "boolean",
       "true: sequences that begin alike share the pages of the beginning; default true for paged sessions",
       [](T& to, const Value& v) { to.kv.prefix = v.boolean() ? PrefixReuse::on : PrefixReuse::off; }},
      {"salt", "text", "pages are shared only between sessions of the same salt",
       [](T& to, const Value& v) { to.kv.salt = v.string(); }},
      {"checkpoints", "integer, \"all\"", "how many states of recurrent layers are kept, so that a session can go back to them; default 0: 2 states",
       [](T& to, const Value& v) {
         if (const std::string* text = v.json().string(); text != nullptr && *text != "all")
           v.refuse("must be an integer from 0 upwards, or \"all\"");
         to.kv.checkpoints = v.json().string() != nullptr ? kAllCheckpoints : v.integer<std::uint32_t>();
       }},
      {"token_budget", "object",
       "`tokens`, `choice`, `sinks`, `recent`: drops keys and values of all but `tokens` tokens; default none",
       [](T& to, const Value& v) { read_keys<TokenBudget>(v, kBudgetKeys, to.kv.budget); }},
      {"wide_layers", "object", "`dtype`, `first`, `last`: another KV type for the first and last layers; default none",
       [](T& to, const Value& v) { read_keys<WideLayers>(v, kWideKeys, to.kv.wide); }},
  });
}

constexpr auto kSessionKvKeys = kv_keys<SessionOptions>();
constexpr auto kEngineKvKeys = kv_keys<EngineOptions>();
constexpr auto kKvKeys = kv_keys<KvAlone>();

constexpr std::string_view kBackends[] = {"cpu", "cuda"};
constexpr std::string_view kRankSplits[] = {"heads", "layers"};
constexpr std::string_view kFallbacks[] = {"allow", "refuse"};
constexpr std::string_view kTokenizers[] = {"from_model", "none"};
constexpr std::string_view kLevels[] = {"debug", "info", "warning", "error", "off"};

template <class Parsed>
auto named(const Value& value, Parsed (*parse)(std::string_view), std::string_view what) {
  const Parsed found = parse(value.string());
  if (!found) value.refuse(what);
  return *found;
}

constexpr Key<MergedAdapter> kMergeKeys[] = {
    {"path", "text", "a GGUF file, or a folder of PEFT",
     [](MergedAdapter& to, const Value& v) { to.path = std::u8string(v.string().begin(), v.string().end()); }},
    {"scale", "number", "strength of the adapter; default 1", [](MergedAdapter& to, const Value& v) { to.scale = v.real(); }},
};

constexpr Key<EngineOptions> kEngineKeys[] = {
    {"context", "integer", "tokens of a session at most; default 0: the model's own",
     [](EngineOptions& to, const Value& v) { to.context = v.integer<std::uint32_t>(); }},
    {"threads", "integer", "threads of the engine; default 0: the processors that the process may use",
     [](EngineOptions& to, const Value& v) { to.threads = v.integer<std::uint32_t>(); }},
    {"ranks", "integer", "ranks among which the model is divided, 1 to 64; results are the same; default 1",
     [](EngineOptions& to, const Value& v) { to.ranks = v.integer<std::uint32_t>(); }},
    {"rank_split", "\"heads\", \"layers\"", "how ranks divide the model: each layer, or whole layers; default \"heads\"",
     [](EngineOptions& to, const Value& v) { to.rank_split = v.one_of<RankSplit>(kRankSplits); }},
    {"rank_addresses", "list", "addresses of `tessera-rank` programs that become ranks beside this process; default none",
     [](EngineOptions& to, const Value& v) { to.rank_addresses = v.strings(); }},
    {"rank_secret", "text", "the secret of those programs; default none", [](EngineOptions& to, const Value& v) { to.rank_secret = v.string(); }},
    {"rank_timeout_ms", "integer", "milliseconds after which a silent rank has failed; default 120000",
     [](EngineOptions& to, const Value& v) { to.rank_timeout_ms = v.integer<std::uint32_t>(); }},
    {"step_rows", "integer", "tokens computed at once in a prefill, 1 to 8192; default 512",
     [](EngineOptions& to, const Value& v) { to.step_rows = v.integer<std::uint32_t>(); }},
    {"memory_budget", "integer", "bytes that the plan's peak may reach; default 0: no limit",
     [](EngineOptions& to, const Value& v) { to.memory_budget = v.integer<std::uint64_t>(); }},
    {"kv_budget", "integer", "bytes of KV pages at most; default 0: no limit",
     [](EngineOptions& to, const Value& v) { to.kv_budget = v.integer<std::uint64_t>(); }},
    {"adapter_budget", "integer",
     "bytes that all adapters together may take, which the plan's peak includes; default 0: the rest of "
     "`memory_budget`, or no limit",
     [](EngineOptions& to, const Value& v) { to.adapter_budget = v.integer<std::uint64_t>(); }},
    {"merge", "list", "adapters that become part of the weights: paths, or objects with `path` and `scale` (default 1)",
     [](EngineOptions& to, const Value& v) {
       for (const Value& each : v.elements()) {
         MergedAdapter& one = to.merge.emplace_back();
         if (each.json().string() != nullptr) kMergeKeys[0].read(one, each);
         else read_keys<MergedAdapter>(each, kMergeKeys, one);
       }
     }},
    {"kv_file", "text", "path of a new file for pages that are not in memory; default none",
     [](EngineOptions& to, const Value& v) { to.kv_file = std::u8string(v.string().begin(), v.string().end()); }},
    {"kv_file_bytes", "integer", "size of that file; needed with `kv_file`",
     [](EngineOptions& to, const Value& v) { to.kv_file_bytes = v.integer<std::uint64_t>(); }},
    {"numerics", "text", "\"auto\", \"bf16\", \"fastest\", \"reference\", \"invariant\"; default \"auto\"",
     [](EngineOptions& to, const Value& v) {
       to.numerics =
           named(v, parse_numerics, "must be one of \"auto\", \"bf16\", \"fastest\", \"reference\", \"invariant\"");
     }},
    {"activations", "text", "\"auto\", or \"model\": rounds the inputs of products as a folder with quantised activations says; default \"auto\"",
     [](EngineOptions& to, const Value& v) { to.activations = named(v, parse_activations, "must be one of \"auto\", \"model\""); }},
    {"instruction_set", "text", "\"auto\", \"avx2\", \"avx512\", ...; default \"auto\": the best that the machine runs",
     [](EngineOptions& to, const Value& v) {
       to.instruction_set = named(v, parse_instruction_set,
                                  "must be one of \"auto\", \"baseline\", \"avx2\", \"avx2-vnni\", \"avx512\", "
                                  "\"avx512-vnni\", \"amx\", \"neon\", "
                                  "\"neon-dotprod\"");
     }},
    {"fallback", "\"allow\", \"refuse\"", "refuse: an operation without its best kernel is an error; default \"allow\"",
     [](EngineOptions& to, const Value& v) { to.fallback = v.one_of<Fallback>(kFallbacks); }},
    {"tokenizer", "\"from_model\", \"none\"",
     "none: no tokenizer is made, because the program has its own; default \"from_model\"",
     [](EngineOptions& to, const Value& v) { to.tokenizer = v.one_of<TokenizerUse>(kTokenizers); }},
    {"sliding_window", "integer", "window of the layers with a window; 0: no window; default: the file's",
     [](EngineOptions& to, const Value& v) { to.sliding_window = v.integer<std::uint32_t>(); }},
    {"mtp", "boolean",
     "loads the model's MTP heads, which guess further tokens for the drafter \"head\"; default false",
     [](EngineOptions& to, const Value& v) { to.mtp = v.boolean() ? MtpHeads::load : MtpHeads::leave_out; }},
    {"draft_heads", "text",
     "path of draft heads in a file of their own, for the drafter \"head\": a folder with Medusa or EAGLE heads, or a GGUF file of an EAGLE-3 "
     "head; default none",
     [](EngineOptions& to, const Value& v) { to.draft_heads = std::u8string(v.string().begin(), v.string().end()); }},
    {"backend", "\"cpu\", \"cuda\"", "the processor that computes; default \"cpu\"",
     [](EngineOptions& to, const Value& v) { to.backend = v.one_of<BackendKind>(kBackends); }},
    {"cuda_device", "integer", "number of the GPU; default 0",
     [](EngineOptions& to, const Value& v) { to.cuda.device = v.integer<std::int32_t>(0); }},
    {"cuda_memory_budget", "integer", "bytes of device memory that the plan may reach; default 0: no limit",
     [](EngineOptions& to, const Value& v) { to.cuda.memory_budget = v.integer<std::uint64_t>(); }},
    {"cuda_driver_library", "text", "path of the driver; default: where the system finds it",
     [](EngineOptions& to, const Value& v) { to.cuda.driver_library = v.string(); }},
    {"cuda_blas_library", "text", "path of cuBLASLt; default: where the system finds it",
     [](EngineOptions& to, const Value& v) { to.cuda.blas_library = v.string(); }},
    {"log_level", "text",
     "`log` gets the messages of this level and above: \"debug\", \"info\", \"warning\", \"error\", \"off\"; default "
     "\"info\"",
     [](EngineOptions& to, const Value& v) { to.log_level = v.one_of<LogLevel>(kLevels); }},
};

constexpr Key<SessionOptions> kSessionKeys[] = {
    {"context", "integer", "tokens at most; default 0: the engine's",
     [](SessionOptions& to, const Value& v) { to.context = v.integer<std::uint32_t>(); }},
    {"window", "integer",
     "a sequence without end: the last tokens that stay when the context is full; default 0: a full context is an "
     "error",
     [](SessionOptions& to, const Value& v) { to.stream.window = v.integer<std::uint32_t>(); }},
    {"sinks", "integer", "with `window`: the first tokens that stay; 0: none; default 4",
     [](SessionOptions& to, const Value& v) { to.stream.sinks = v.integer<std::uint32_t>(); }},
};

template <class T, std::size_t A, std::size_t B>
std::vector<Key<T>> joined(const Key<T> (&own)[A], const std::array<Key<T>, B>& kv) {
  std::vector<Key<T>> keys(own, own + A);
  keys.insert(keys.end(), kv.begin(), kv.end());
  return keys;
}

}  // namespace

void read_engine_options(const char* json, std::size_t size, EngineOptions& to) {
  const auto keys = joined(kEngineKeys, kEngineKvKeys);
  read_options<EngineOptions>(json, size, "options.json", keys, to);
}

SessionOptions read_session_options(const char* json, std::size_t size) {
  SessionOptions options;
  const Json parsed = parse_json(json, size, "json");
  read_session_options(Value(parsed, {}), options);
  return options;
}

void read_session_options(const Value& value, SessionOptions& to) {
  const auto keys = joined(kSessionKeys, kSessionKvKeys);
  read_keys<SessionOptions>(value, keys, to);
}

KvOptions read_kv_options(const char* json, std::size_t size) {
  KvAlone options;
  read_options<KvAlone>(json, size, "json", kKvKeys, options);
  return options.kv;
}

std::vector<Table> engine_tables() {
  std::vector<Table> tables;
  tables.push_back(table_of<EngineOptions>("Engine", kEngineKeys));
  tables.push_back(table_of<SessionOptions>("Session", kSessionKeys));
  tables.push_back(table_of<KvAlone>("KV cache", kKvKeys));
  return tables;
}

}  // namespace tessera::c
