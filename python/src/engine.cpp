// tessera.Engine: a loaded model.
#include <algorithm>
#include <cstddef>
#include <filesystem>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/tuple.h>

#include "adapters.hpp"
#include "calls.hpp"
#include "engine_doc.hpp"
#include "types/names.hpp"

namespace tessera::python {

namespace {

using Path = std::filesystem::path;
using Merges = std::vector<std::variant<Path, std::pair<Path, float>>>;  // adapters to merge, with their scales

// Options of Engine() and Engine.plan_for().
struct Arguments {
  std::uint32_t context = 0;
  std::string kv = "auto";
  std::uint32_t page_tokens = 0;
  std::optional<bool> prefix = {};
  std::uint32_t threads = 0, ranks = 1;
  std::string backend = "cpu";
  std::string numerics = "auto", activations = "auto";
  std::uint64_t memory_budget = 0, kv_budget = 0, adapter_budget = 0;
  std::optional<Path> kv_file = {};
  std::uint64_t kv_file_bytes = 0;
  std::optional<std::uint32_t> sliding_window = {};
  bool mtp = false;
  std::optional<Path> draft_heads = {};
  bool strict = false, tokenizer = true;
  std::string instruction_set = "auto";
  std::uint32_t step_rows = 512;
  std::int32_t cuda_device = 0;
  std::uint64_t cuda_memory_budget = 0;
  Merges merge = {};
  std::vector<std::string> rank_at = {};
  std::string rank_secret, rank_split = "heads";
};

EngineOptions options_of(const Arguments& a) {
  static constexpr Named<BackendKind> kBackends[] = {{"cpu", BackendKind::cpu}, {"cuda", BackendKind::cuda}};
  EngineOptions options;
  options.kv.dtype = kv_type_named("kv", a.kv);
  options.kv.page_tokens = a.page_tokens;
  if (a.prefix) options.kv.prefix = *a.prefix ? PrefixReuse::on : PrefixReuse::off;
  options.context = a.context;
  options.sliding_window = a.sliding_window;
  options.tokenizer = a.tokenizer ? TokenizerUse::from_model : TokenizerUse::none;
  options.mtp = a.mtp ? MtpHeads::load : MtpHeads::leave_out;
  if (a.draft_heads) options.draft_heads = *a.draft_heads;
  options.numerics = numerics_named(a.numerics);
  options.activations = activations_named(a.activations);
  options.backend = value_named("backend", a.backend, kBackends);
  options.cuda.device = a.cuda_device;
  options.cuda.memory_budget = a.cuda_memory_budget;
  options.instruction_set = instruction_set_named(a.instruction_set);
  options.threads = a.threads;
  static constexpr Named<RankSplit> kRankSplits[] = {{"heads", RankSplit::heads}, {"layers", RankSplit::layers}};
  options.ranks = a.ranks;
  options.rank_addresses = a.rank_at;
  options.rank_secret = a.rank_secret;
  options.rank_split = value_named("rank_split", a.rank_split, kRankSplits);
  options.fallback = a.strict ? Fallback::refuse : Fallback::allow;
  options.step_rows = a.step_rows;
  options.memory_budget = a.memory_budget;
  options.kv_budget = a.kv_budget;
  options.adapter_budget = a.adapter_budget;
  for (const auto& each : a.merge) {
    if (const auto* path = std::get_if<Path>(&each)) options.merge.push_back({.path = *path});
    else options.merge.push_back({.path = std::get<1>(each).first, .scale = std::get<1>(each).second});
  }
  if (a.kv_file) options.kv_file = *a.kv_file;
  options.kv_file_bytes = a.kv_file_bytes;
  return options;
}

LogCallback log_callback(const nb::object& log) {
  if (log.is_none()) return {};
  return [call = PyRef(log)](LogLevel level, std::string_view message) {
    static constexpr const char* kLevels[] = {"debug", "info", "warning", "error", "off"};
    const Entered entered;
    if (!entered) return;
    try {
      call.get()(kLevels[static_cast<std::size_t>(level)], nb::str(message.data(), message.size()));
    } catch (nb::python_error& error) {
      error.discard_as_unraisable(call.get());
    } catch (...) {
    }
  };
}

EngineHandle load(const Path& path, const Arguments& arguments, const nb::object& progress, const nb::object& log) {
  check_callable(progress, "Engine()", "progress", true);
  check_callable(log, "Engine()", "log");
  EngineOptions options = options_of(arguments);
  const auto failure = std::make_shared<Failure>();
  options.progress = progress_callback(progress_of(progress, path.filename().string()), failure);
  options.log = log_callback(log);
  auto loaded = interruptible([&](std::stop_token stop) {
    options.stop = std::move(stop);
    return Engine::load(path, options);
  });
  auto box = std::make_shared<EngineBox>();
  box->engine = take(std::move(loaded), *failure);
  return EngineHandle(std::move(box));
}

Plan plan_for(const Path& path, const Arguments& arguments) {
  EngineOptions options = options_of(arguments);
  return take(interruptible([&](std::stop_token stop) -> Result<Plan> {
    options.stop = stop;
    auto source = open_model(path, stop);
    if (!source) return source.error();
    return Engine::plan(**source, options);
  }));
}

nb::object python_of(const SettingValue& value) {
  return std::visit(
      [](const auto& v) -> nb::object {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, ValueList>) {
          nb::list list;
          if (v.type() == ValueType::string) {
            for (const std::string_view text : v.strings())
              list.append(nb::bytes(text.data(), text.size()).attr("decode")("utf-8", "replace"));
          } else {
            for (std::uint64_t i = 0; i < v.size(); ++i) {
              if (v.is_integer())
                list.append(v.integer(i));
              else
                list.append(v.number(i));
            }
          }
          return list;
        } else if constexpr (std::is_same_v<T, std::string_view>) {
          return nb::object(nb::bytes(v.data(), v.size()).attr("decode")("utf-8", "replace"));
        } else {
          return nb::cast(v);
        }
      },
      value);
}

nb::dict metadata(const EngineHandle& self) {
  nb::dict all;
  const Settings& settings = self->engine.metadata();
  for (std::size_t i = 0;; ++i) {
    const auto key = settings.file_key(i);
    if (!key) break;
    all[nb::str(key->name.data(), key->name.size())] = python_of(key->value);
  }
  return all;
}

SessionOptions session_options(std::uint32_t context, const std::string& kv, std::uint32_t page_tokens,
                               std::optional<bool> prefix, const std::string& salt,
                               const std::optional<std::pair<std::uint32_t, std::uint32_t>>& stream,
                               std::uint32_t token_budget, const std::string& token_choice, bool contiguous,
                               const AdapterUses& adapters) {
  static constexpr Named<TokenChoice> kChoices[] = {
      {"window", TokenChoice::window}, {"h2o", TokenChoice::h2o}, {"snapkv", TokenChoice::snapkv}};
  SessionOptions options;
  options.context = context;
  options.kv.dtype = kv_type_named("kv", kv);
  options.kv.page_tokens = page_tokens;
  if (prefix) options.kv.prefix = *prefix ? PrefixReuse::on : PrefixReuse::off;
  if (contiguous) options.kv.kind = KvKind::contiguous;
  options.kv.salt = salt;
  options.adapters = adapters.list;
  if (stream) options.stream = {.sinks = stream->first, .window = stream->second};
  options.kv.budget.tokens = token_budget;
  options.kv.budget.choice = value_named("token_choice", token_choice, kChoices);
  return options;
}

SessionHandle session_of(const EngineHandle& engine, Session session) {
  return SessionHandle(std::make_shared<SessionBox>(engine.box(), std::move(session)));
}

SessionHandle restore(const EngineHandle& self, const nb::object& from, const SessionOptions& options) {
  refuse_in_callback("Engine.restore()");
  const bool is_buffer = PyByteArray_Check(from.ptr()) || PyMemoryView_Check(from.ptr());
  if (!is_buffer && !nb::isinstance<nb::bytes>(from)) {
    Path path;
    if (!nb::try_cast<Path>(from, path)) raise_type("Engine.restore()", "source", "bytes, a bytearray, a memoryview or a path", from);
    return session_of(self, take(unlocked([&] { return self->engine.restore(path, options); })));
  }
  const nb::bytes bytes(from);  // a copy, unless the object is bytes: other threads may change a bytearray
  const std::span data(static_cast<const std::byte*>(bytes.data()), bytes.size());
  return session_of(self, take(unlocked([&] { return self->engine.restore(data, options); })));
}

// Arguments of Engine.embed().
struct EmbedArguments {
  std::optional<std::string> pooling = {}, prompt = {};
  std::string role = "plain", long_text = "cut";
  std::uint32_t dimensions = 0, overlap = 0, max_tokens = 0;
  bool normalize = true;
};

EmbedOptions embed_options(const EmbedArguments& a) {
  static constexpr Named<Pooling> kPoolings[] = {{"mean", Pooling::mean}, {"cls", Pooling::cls}, {"last", Pooling::last}};
  static constexpr Named<TextRole> kRoles[] = {{"plain", TextRole::plain}, {"query", TextRole::query}, {"document", TextRole::document}};
  static constexpr Named<LongText> kLong[] = {{"cut", LongText::cut}, {"windows", LongText::windows}, {"refuse", LongText::refuse}};
  return {.pooling = a.pooling ? value_named("pooling", *a.pooling, kPoolings) : Pooling::automatic,
          .role = value_named("role", a.role, kRoles),
          .prompt = a.prompt,
          .dimensions = a.dimensions,
          .normalises = a.normalize,
          .long_text = value_named("long_text", a.long_text, kLong),
          .overlap = a.overlap,
          .most_tokens = a.max_tokens};
}

// Returns the embedding of each text  [texts, dimensions].
nb::object embed(const EngineHandle& self, const std::vector<TextOrTokens>& texts, const EmbedArguments& arguments) {
  EmbedOptions options = embed_options(arguments);
  const bool are_texts = std::ranges::all_of(texts, [](const TextOrTokens& text) { return std::holds_alternative<std::string>(text); });
  if (!are_texts && !std::ranges::none_of(texts, [](const TextOrTokens& text) { return std::holds_alternative<std::string>(text); })) {
    throw nb::value_error("texts: texts and lists of tokens do not go together; make two calls");
  }
  auto made = take(interruptible([&](const std::stop_token& stop) -> Result<Embeddings> {
    options.stop = stop;
    if (are_texts) {
      std::vector<std::string_view> views;
      for (const TextOrTokens& text : texts) views.emplace_back(std::get<std::string>(text));
      return self->engine.embed(views, options);
    }
    std::vector<std::vector<Token>> tokens;
    for (const TextOrTokens& text : texts) {
      auto of_text = tokens_of(text, self->engine.tokenizer(), true, false);
      if (!of_text) return of_text.error();
      tokens.push_back(*std::move(of_text));
    }
    return self->engine.embed(tokens, options);
  }));
  const auto kept = std::make_shared<Embeddings>(std::move(made));
  return array_of<float>(kept->values(), {texts.size(), kept->dimensions()}, kept);
}

// Returns a score for each document.
std::vector<float> rerank(const EngineHandle& self, const std::string& query, const std::vector<std::string>& documents, const std::string& instruction,
                          std::uint32_t max_tokens) {
  return take(interruptible([&](const std::stop_token& stop) {
    const std::vector<std::string_view> views(documents.begin(), documents.end());
    return self->engine.rerank(query, views, {.instruction = instruction, .most_tokens = max_tokens, .stop = stop});
  }));
}

nb::object apply_chat_template(const EngineHandle& self, const nb::object& messages, const nb::object& tools,
                               bool add_generation_prompt, const nb::object& arguments, bool tokenize) {
  const nb::object check = nb::module_::import_("tessera._schema");
  check.attr("check_messages")(messages, "Engine.apply_chat_template()");
  if (!tools.is_none()) check.attr("check_tools")(tools, "Engine.apply_chat_template()");
  if (!arguments.is_none() && !nb::hasattr(arguments, "keys"))
    raise_type("Engine.apply_chat_template()", "arguments", "a dict or None", arguments);
  nb::dict request;
  if (!arguments.is_none()) request.attr("update")(arguments);
  request["messages"] = messages;
  if (!tools.is_none()) request["tools"] = tools;
  request["add_generation_prompt"] = add_generation_prompt;
  const Json json = json_of(request);
  auto now =
      nb::cast<std::tuple<int, int, int, int, int, int>>(nb::module_::import_("tessera._schema").attr("local_time")());
  RenderOptions options;
  options.now = LocalTime{std::get<0>(now), std::get<1>(now), std::get<2>(now),
                          std::get<3>(now), std::get<4>(now), std::get<5>(now)};
  auto rendered = take(unlocked([&]() -> Result<RenderedText> {
    auto read = ChatRequest::from_json(json);
    if (!read) return read.error();
    auto form = self->chat();
    if (!form) return form.error();
    auto made = form->render(*read, options);
    if (made && !read->tools.empty()) {
      ChatRequest without = *read;
      without.tools.clear();
      const auto plain = form->render(without, options);
      if (plain && plain->text() == made->text())
        return Error(ErrorCode::unsupported, "the model's chat template does not show tools to the model: leave `tools` out, or describe the tools in a message");
    }
    return made;
  }));
  if (!tokenize) return nb::cast(rendered.text());
  return nb::cast(take(unlocked([&] { return rendered.encode(self->engine.tokenizer()); })));
}

}  // namespace

Result<GrammarVocabulary> EngineBox::grammar_vocabulary() {
  const std::scoped_lock lock(mutex);
  if (!vocabulary) {
    auto made = GrammarVocabulary::create(engine.tokenizer());
    if (!made) return made.error();
    vocabulary = *std::move(made);
  }
  return *vocabulary;
}

Result<ChatTemplate> EngineBox::chat() {
  const std::scoped_lock lock(mutex);
  if (!chat_template) {
    auto made = chat_template_of(engine);
    if (!made) return made.error();
    chat_template = *std::move(made);
  }
  return *chat_template;
}

// The options of an engine, which two functions share.
#define TESSERA_ENGINE_ARGUMENTS                                                                                  \
  nb::arg("context") = 0, nb::arg("kv") = "auto", nb::arg("page_tokens") = 0, nb::arg("prefix") = nb::none(),     \
  nb::arg("threads") = 0, nb::arg("ranks") = 1, nb::arg("backend") = "cpu", nb::arg("numerics") = "auto", nb::arg("activations") = "auto", nb::arg("memory_budget") = 0, \
  nb::arg("kv_budget") = 0, nb::arg("adapter_budget") = 0, nb::arg("kv_file") = nb::none(), nb::arg("kv_file_bytes") = 0,                        \
  nb::arg("sliding_window") = nb::none(), nb::arg("mtp") = false, nb::arg("draft_heads") = nb::none(), nb::arg("strict") = false, \
  nb::arg("tokenizer") = true, nb::arg("instruction_set") = "auto", nb::arg("step_rows") = 512,                   \
  nb::arg("cuda_device") = 0, nb::arg("cuda_memory_budget") = 0, nb::arg("merge") = Merges(),                      \
  nb::arg("rank_at") = std::vector<std::string>(), nb::arg("rank_secret") = "", nb::arg("rank_split") = "heads"
#define TESSERA_ENGINE_PARAMETERS                                                                                      \
  std::uint32_t context, std::string kv, std::uint32_t page_tokens, std::optional<bool> prefix, std::uint32_t threads, std::uint32_t ranks, \
      std::string backend, std::string numerics, std::string activations, std::uint64_t memory_budget, std::uint64_t kv_budget,                 \
      std::uint64_t adapter_budget, std::optional<Path> kv_file, std::uint64_t kv_file_bytes, std::optional<std::uint32_t> sliding_window, bool mtp, std::optional<Path> draft_heads, \
      bool strict, bool tokenizer, std::string instruction_set, std::uint32_t step_rows, std::int32_t cuda_device,     \
      std::uint64_t cuda_memory_budget, Merges merge, std::vector<std::string> rank_at, std::string rank_secret, std::string rank_split
#define TESSERA_ENGINE_SIGNATURE                                                                                 \
  "path: str | os.PathLike[str], *, context: int = 0, kv: str = 'auto', page_tokens: int = 0, prefix: bool | "   \
  "None = None, threads: int = 0, ranks: int = 1, backend: str = 'cpu', numerics: str = 'auto', activations: str = 'auto', memory_budget: int = 0, "        \
  "kv_budget: int = 0, adapter_budget: int = 0, kv_file: str | os.PathLike[str] | None = None, kv_file_bytes: int = 0, sliding_window: "  \
  "int | None = None, mtp: bool = False, draft_heads: str | os.PathLike[str] | None = None, strict: bool = False, tokenizer: bool = True, instruction_set: str = "  \
  "'auto', step_rows: int = 512, cuda_device: int = 0, cuda_memory_budget: int = 0, merge: "                      \
  "collections.abc.Sequence[str | os.PathLike[str] | tuple[str | os.PathLike[str], float]] = (), rank_at: collections.abc.Sequence[str] = (), rank_secret: str = '', rank_split: str = 'heads', progress: "    \
  "collections.abc.Callable[[int, int], bool | None] | bool | None = None, log: collections.abc.Callable[[str, " \
  "str], object] | None = None"
#define TESSERA_ENGINE_VALUES                                                                                     \
  Arguments {                                                                                                     \
    context, std::move(kv), page_tokens, prefix, threads, ranks, std::move(backend), std::move(numerics), std::move(activations), memory_budget, \
        kv_budget, adapter_budget, std::move(kv_file), kv_file_bytes, sliding_window, mtp, std::move(draft_heads), strict, tokenizer,                     \
        std::move(instruction_set), step_rows, cuda_device, cuda_memory_budget, std::move(merge), std::move(rank_at), std::move(rank_secret), std::move(rank_split)                  \
  }
#define TESSERA_SESSION_ARGUMENTS                                                                             \
  nb::arg("context") = 0, nb::arg("kv") = "auto", nb::arg("page_tokens") = 0, nb::arg("prefix") = nb::none(), \
  nb::arg("salt") = "", nb::arg("stream") = nb::none(), nb::arg("token_budget") = 0,                          \
  nb::arg("token_choice") = "window", nb::arg("contiguous") = false, nb::arg("adapters") = AdapterUses()
#define TESSERA_SESSION_PARAMETERS                                                                     \
  std::uint32_t context, const std::string &kv, std::uint32_t page_tokens, std::optional<bool> prefix, \
      const std::string &salt, std::optional<std::pair<std::uint32_t, std::uint32_t>> stream,          \
      std::uint32_t token_budget, const std::string &token_choice, bool contiguous, const AdapterUses &adapters
#define TESSERA_SESSION_VALUES \
  session_options(context, kv, page_tokens, prefix, salt, stream, token_budget, token_choice, contiguous, adapters)

void bind_engine(nb::module_& m) {
  nb::class_<EngineHandle>(m, "Engine", nb::is_weak_referenceable(), kEngineDoc)
      .def(
          "__init__",
          [](EngineHandle* self, const Path& path, TESSERA_ENGINE_PARAMETERS, const nb::object& progress,
             const nb::object& log) { new (self) EngineHandle(load(path, TESSERA_ENGINE_VALUES, progress, log)); },
          nb::arg("path"), nb::kw_only(), TESSERA_ENGINE_ARGUMENTS, nb::arg("progress") = nb::none(),
          nb::arg("log") = nb::none(), nb::sig("def __init__(self, " TESSERA_ENGINE_SIGNATURE ") -> None"))
      .def_static(
          "load",
          [](const Path& path, TESSERA_ENGINE_PARAMETERS, const nb::object& progress, const nb::object& log) {
            return load(path, TESSERA_ENGINE_VALUES, progress, log);
          },
          nb::arg("path"), nb::kw_only(), TESSERA_ENGINE_ARGUMENTS, nb::arg("progress") = nb::none(),
          nb::arg("log") = nb::none(), nb::sig("def load(" TESSERA_ENGINE_SIGNATURE ") -> Engine"),
          "Loads a model. The same as Engine().")
      .def_static(
          "plan_for", [](const Path& path, TESSERA_ENGINE_PARAMETERS) { return plan_for(path, TESSERA_ENGINE_VALUES); },
          nb::arg("path"), nb::kw_only(), TESSERA_ENGINE_ARGUMENTS,
          "Returns the memory that Engine() with these options would take. Loads no weights, and does not check the budgets.")
      .def("__repr__",
           [](const EngineHandle& self) {
             const ModelSpec& spec = self->engine.spec();
             return "<tessera.Engine " +
                    (spec.name.empty() ? spec.architecture : "\"" + spec.name + "\" (" + spec.architecture + ")") +
                    ", " + std::to_string(spec.n_layers()) + " layers, context " +
                    std::to_string(self->engine.plan().context) + ", " + std::to_string(self->engine.threads()) +
                    (self->engine.threads() == 1 ? " thread>" : " threads>");
           })
      .def_prop_ro(
          "tokenizer", [](const EngineHandle& self) { return self->engine.tokenizer(); }, "The model's tokenizer.")
      .def_prop_ro(
          "plan", [](const EngineHandle& self) { return self->engine.plan(); }, "The memory that loading has taken.")
      .def_prop_ro("metadata", &metadata,
                   nb::sig("def metadata(self) -> dict[str, str | int | float | bool | list[object]]"),
                   "The file's keys and values, without long lists (the vocabulary, for example).")
      .def(
          "explain", [](const EngineHandle& self) { return take(unlocked([&] { return self->engine.explain(); })); },
          "Returns which kernel computes each operation.")
      .def_prop_ro(
          "architecture", [](const EngineHandle& self) { return self->engine.spec().architecture; },
          "Name of the model's architecture.")
      .def_prop_ro(
          "name", [](const EngineHandle& self) { return self->engine.spec().name; }, "The model's name; may be empty.")
      .def_prop_ro(
          "vocab_size", [](const EngineHandle& self) { return self->engine.spec().vocab_size; },
          "Number of logits in a row.")
      .def_prop_ro(
          "d_model", [](const EngineHandle& self) { return self->engine.spec().d_model; },
          "Number of values in a hidden state and in the embedding of a token.")
      .def_prop_ro(
          "n_layers", [](const EngineHandle& self) { return self->engine.spec().n_layers(); }, "Number of layers.")
      .def_prop_ro(
          "context", [](const EngineHandle& self) { return self->engine.plan().context; },
          "The most tokens that a session can have.")
      .def_prop_ro(
          "threads", [](const EngineHandle& self) { return self->engine.threads(); }, "Number of threads that compute.")
      .def_prop_ro(
          "kv_figures", [](const EngineHandle& self) { return kv_figures_dict(self->engine); },
          nb::sig("def kv_figures(self) -> dict[str, int | None]"),
          R"(A dict of figures of the KV pages and of the prefix index. held_bytes: bytes of all pages, which are used, cached or free. used_bytes: of
pages that sessions hold; a shared page counts once. cached_bytes: of pages that only the prefix index holds. free_bytes: of free pages. room_bytes:
bytes that sessions may still take; None without a kv_budget. hits, misses: prompts whose beginning the prefix index had, and prompts of at least one
page whose beginning it did not have. tokens_saved: tokens that were found there, and not computed. evictions: cached pages that were freed because
memory was needed. copies: shared pages that were copied because a session wrote to them. file_bytes, pages_written, pages_read: use of the kv_file.
file_errors: writes to it that failed.)")
      .def(
          "trim",
          [](const EngineHandle& self) { refuse_in_callback("Engine.trim()"), unlocked([&] { self->engine.trim(); }); },
          "Frees the KV pages that no session uses. They leave the prefix index too.")
      .def(
          "adapter",
          [](const EngineHandle& self, const Path& path) {
            refuse_in_callback("Engine.adapter()");
            return load_adapter(self, path);
          },
          nb::arg("path"), nb::sig("def adapter(self, path: str | os.PathLike[str]) -> Adapter"),
          R"(Loads an adapter for this model: a GGUF file, or a folder of PEFT (adapter_config.json). Sessions may compute at the same time. Raises NotFound;
CorruptFile; Unsupported, for example if the adapter is for another model; OverBudget, if adapter_budget is too small.)")
      .def(
          "session",
          [](const EngineHandle& self, TESSERA_SESSION_PARAMETERS) {
            const SessionOptions options = TESSERA_SESSION_VALUES;
            return session_of(self, take(unlocked([&] { return self->engine.session(options); })));
          },
          nb::kw_only(), TESSERA_SESSION_ARGUMENTS,
          R"(Makes an empty session. An option that is left out has the engine's value. context: the most tokens. kv, page_tokens: as for Engine. prefix: True
lets sessions that begin with the same tokens share their pages, if their salt is equal too. contiguous=True stores keys and values at consecutive
addresses, which cannot be shared. stream=(sinks, window): a sequence without end. When the context is full, only the first `sinks` and the last
`window` tokens stay. token_budget: the most tokens that keep their keys and values. token_choice says which ones: "window" (the first and the
last), "h2o" (those with the most attention so far) or "snapkv" (those with the most attention from the last 32 tokens). adapters: see Adapter.)")
      .def(
          "restore",
          [](const EngineHandle& self, const nb::object& source, TESSERA_SESSION_PARAMETERS) {
            return restore(self, source, TESSERA_SESSION_VALUES);
          },
          nb::arg("source"), nb::kw_only(), TESSERA_SESSION_ARGUMENTS,
          nb::sig("def restore(self, source: bytes | bytearray | memoryview | str | os.PathLike[str], *, context: int = 0, kv: str = 'auto', "
                  "page_tokens: int = 0, "
                  "prefix: bool | None = None, salt: str = '', stream: tuple[int, int] | None = None, token_budget: "
                  "int = 0, "
                  "token_choice: str = 'window', contiguous: bool = False, adapters: Adapter | "
                  "collections.abc.Sequence[Adapter | tuple[Adapter, float] | tuple[Adapter, float, int | None]] = ()) -> Session"),
          R"(Returns a session that Session.save() wrote to a file or to bytes. Options: as for session(). The session has the adapters that the saved session
had; the engine must have loaded them. If `adapters` is given, the session has these instead.)")
      .def(
          "embed",
          [](const EngineHandle& self, const std::vector<TextOrTokens>& texts, std::optional<std::string> pooling, std::string role,
             std::optional<std::string> prompt, std::uint32_t dimensions, bool normalize, std::string long_text, std::uint32_t overlap,
             std::uint32_t max_tokens) {
            return embed(self, texts,
                         {.pooling = std::move(pooling), .prompt = std::move(prompt), .role = std::move(role), .long_text = std::move(long_text),
                          .dimensions = dimensions, .overlap = overlap, .max_tokens = max_tokens, .normalize = normalize});
          },
          nb::arg("texts"), nb::kw_only(), nb::arg("pooling") = nb::none(), nb::arg("role") = "plain", nb::arg("prompt") = nb::none(),
          nb::arg("dimensions") = 0, nb::arg("normalize") = true, nb::arg("long_text") = "cut", nb::arg("overlap") = 0, nb::arg("max_tokens") = 0,
          nb::sig("def embed(self, texts: collections.abc.Sequence[str | collections.abc.Sequence[int]], *, pooling: str | None = None, "
                  "role: str = 'plain', prompt: str | None = None, dimensions: int = 0, normalize: bool = True, long_text: str = 'cut', "
                  "overlap: int = 0, max_tokens: int = 0) -> numpy.typing.NDArray[numpy.float32]"),
          R"(Returns an array with the embedding of each text  [texts, dimensions]. `texts` is a list, also for one text. pooling: the rows from which
the embedding is made: "mean" (all), "cls" (the first) or "last"; None: as the model says. role: "query" or "document" puts the model's prompt for
this role in front of each text; "plain" puts none. prompt: a prompt of your own instead. dimensions: the number of values that are kept of each
vector, from the first on; 0: all. normalize: scales each vector to length 1. long_text: a text of more tokens than the model reads is cut ("cut"),
read in windows that share `overlap` tokens ("windows"), or an error ("refuse"). max_tokens: the most tokens that are read of a text; 0: as many as
the model reads.)")
      .def("rerank", &rerank, nb::arg("query"), nb::arg("documents"), nb::kw_only(), nb::arg("instruction") = "", nb::arg("max_tokens") = 0,
           nb::sig("def rerank(self, query: str, documents: collections.abc.Sequence[str], *, instruction: str = '', max_tokens: int = 0) -> "
                   "list[float]"),
           "Returns a score for each document. The higher the score, the better the document answers the query. Raises Unsupported if the model does not rank.")
      .def("apply_chat_template", &apply_chat_template, nb::arg("messages"), nb::kw_only(),
           nb::arg("tools") = nb::none(), nb::arg("add_generation_prompt") = true, nb::arg("arguments") = nb::none(),
           nb::arg("tokenize") = true,
           nb::sig("def apply_chat_template(self, messages: collections.abc.Sequence[collections.abc.Mapping[str, "
                   "object]], *, "
                   "tools: collections.abc.Sequence[collections.abc.Mapping[str, object]] | None = None, "
                   "add_generation_prompt: bool = True, "
                   "arguments: collections.abc.Mapping[str, object] | None = None, tokenize: bool = True) -> list[int] "
                   "| str"),
           R"(Returns the prompt that the model's chat template makes of messages: its tokens or, with tokenize=False, its text. The text of a message
never becomes a control token. Raises Unsupported if the template leaves the tools out. arguments: further variables of the template, for example
{"enable_thinking": False}. If the model has no template, the prompt is the texts of the messages, one on each line.)");
}

}  // namespace tessera::python
