// tessera.Session, one sequence; and tessera.Generation, which generates its text piece by piece.
#include <cstddef>
#include <filesystem>

#include <nanobind/stl/filesystem.h>

#include "calls.hpp"
#include "adapters.hpp"
#include "types/names.hpp"

namespace tessera::python {

namespace {

using Path = std::filesystem::path;

// A generation, and the objects to which it refers.
struct GenerationBox {
  std::shared_ptr<SessionBox> session;
  std::shared_ptr<SamplerBox> sampler;
  std::stop_source stop;
  Use use;
  Generation generation;
  bool ended = false, closed = false;
  FinishReason finish = FinishReason::none;  // reason of a generation that was closed, like `figures`
  Figures figures = {};
};
using GenerationHandle = Handle<GenerationBox>;

// The outputs that append() returns: the rows, and the kind of result.
struct Wanted {
  Want want = Want::logits;
  LogitsOf rows = LogitsOf::last;
};

// Appends the tokens as a batch of one session. The results then have memory of their own, which Python's arrays view.
nb::object append_by_batch(const SessionHandle& self, const Tokens& tokens, const Wanted& wanted) {
  auto claim = self->use.change("session");
  auto outputs = std::make_shared<Outputs>();
  const std::size_t n = tokens.size();
  *outputs = take(interruptible([&](const std::stop_token& stop) -> Result<Outputs> {
    Batch batch;
    for (std::size_t i = 0; i < n; ++i) {
      const bool asked = wanted.rows == LogitsOf::all || (wanted.rows == LogitsOf::last && i + 1 == n);
      if (auto added = batch.add(self->session, Row{.token = tokens[i], .want = asked ? wanted.want : Want::nothing});
          !added)
        return added.error();
    }
    auto made = self->engine->engine.forward(batch, {.stop = stop});
    if (made && !made->status()) return made->status().error();
    return made;
  }));
  self->latest = nullptr;
  if (wanted.rows == LogitsOf::none) return nb::none();
  if (wanted.want == Want::logits) {
    self->latest = outputs;
    self->latest_row = n - 1;
  }
  if (wanted.rows == LogitsOf::last) {
    const auto row = outputs->row(n - 1);
    return array_of<float>(row, {row.size()}, outputs);
  }
  const auto first = outputs->row(0), last = outputs->row(n - 1);
  const std::size_t width = first.size();
  if (last.data() == first.data() + (n - 1) * width) {  // the rows lie one after another
    return array_of<float>({first.data(), n * width}, {n, width}, outputs);
  }
  auto copy = std::make_shared<std::vector<float>>(n * width);
  for (std::size_t i = 0; i < n; ++i)
    std::ranges::copy(outputs->row(i), copy->begin() + static_cast<std::ptrdiff_t>(i * width));
  return array_of<float>({copy->data(), copy->size()}, {n, width}, copy);
}

// Appends by Session::append(), which reports progress and allows an empty list of tokens.
nb::object append_with_progress(const SessionHandle& self, const Tokens& tokens, LogitsOf rows,
                                const nb::object& progress) {
  auto claim = self->use.change("session");
  const auto failure = std::make_shared<Failure>();
  AppendOptions options{.logits = rows};
  options.progress = progress_callback(progress, failure);
  const Logits logits = take(interruptible([&](std::stop_token stop) {
                               options.stop = std::move(stop);
                               return self->session.append(tokens, options);
                             }),
                             *failure);
  self->latest = nullptr;
  if (rows == LogitsOf::none) return nb::none();
  auto copy = std::make_shared<std::vector<float>>(logits.values.begin(), logits.values.end());
  if (rows == LogitsOf::last) return array_of<float>({copy->data(), copy->size()}, {copy->size()}, copy);
  return array_of<float>({copy->data(), copy->size()}, {logits.rows(), logits.vocab}, copy);
}

nb::object append(const SessionHandle& self, const TextOrTokens& prompt, const std::string& rows,
                  const std::string& want, bool special, const nb::object& progress) {
  static constexpr Named<LogitsOf> kRows[] = {
      {"last", LogitsOf::last}, {"all", LogitsOf::all}, {"none", LogitsOf::none}};
  static constexpr Named<Want> kWants[] = {
      {"logits", Want::logits}, {"hidden", Want::hidden}, {"embedding", Want::embedding}};
  refuse_in_callback("Session.append()");
  const Wanted wanted{.want = value_named("want", want, kWants), .rows = value_named("rows", rows, kRows)};
  Tokens tokens;
  {
    auto claim = self->use.read("session");
    tokens = take(unlocked(
        [&] { return tokens_of(prompt, self->engine->engine.tokenizer(), self->session.tokens().empty(), special); }));
  }
  check_callable(progress, "Session.append()", "progress", true);
  const bool has_progress = !progress.is_none() && !progress.is(nb::handle(Py_False));
  if (tokens.empty() || has_progress) {
    if (wanted.want != Want::logits) {
      raise(ErrorCode::invalid_argument,
            tokens.empty() ? "want=\"" + want + "\" needs tokens to append" : "progress is for want=\"logits\" alone");
    }
    return append_with_progress(self, tokens, wanted.rows, has_progress ? progress_of(progress, "prompt") : nb::none());
  }
  return append_by_batch(self, tokens, wanted);
}

nb::object logits_of(const SessionHandle& self) {
  auto claim = self->use.read("session");
  const std::span<const float> known = self->session.logits();
  if (known.empty()) return nb::none();
  if (self->latest != nullptr) {
    const auto row = self->latest->row(self->latest_row);
    return array_of<float>(row, {row.size()}, self->latest);
  }
  return array_copy(known);
}

template <class Change>
void change(const SessionHandle& self, const char* name, Change&& work) {
  refuse_in_callback(name);
  auto claim = self->use.change("session");
  take(unlocked([&] { return work(self->session); }));
  self->latest = nullptr;
}

template <class Make>
SessionHandle copy_of(const SessionHandle& self, const char* name, Make&& make) {
  refuse_in_callback(name);
  auto claim = self->use.read("session");
  auto made = std::make_shared<SessionBox>(self->engine, take(unlocked([&] { return make(self->session); })));
  made->latest = self->latest;
  made->latest_row = self->latest_row;
  return SessionHandle(std::move(made));
}

nb::object score(const SessionHandle& self, const TextOrTokens& text, bool special) {
  refuse_in_callback("Session.score()");
  auto claim = self->use.change("session");
  auto scores = take(interruptible([&](std::stop_token stop) -> Result<std::vector<float>> {
    auto tokens = tokens_of(text, self->engine->engine.tokenizer(), self->session.tokens().empty(), special);
    if (!tokens) return tokens.error();
    return self->session.score(*tokens, {.stop = std::move(stop)});
  }));
  self->latest = nullptr;
  return array_copy<float>(scores);
}

GenerationHandle generate(const SessionHandle& self, const std::optional<SamplerHandle>& sampler,
                          std::optional<std::size_t> max_tokens,
                          const std::optional<std::variant<std::string, std::vector<std::string>>>& stop,
                          const std::optional<Tokens>& stop_tokens, bool ignore_eos, std::uint32_t logprobs,
                          const std::optional<DrafterHandle>& drafter, bool show_control) {
  refuse_in_callback("Session.generate()");
  GenerateOptions options = generate_options(max_tokens, stop, stop_tokens, ignore_eos, logprobs, show_control);
  options.speculate = speculation(drafter);
  auto box = std::make_shared<GenerationBox>();
  box->session = self.box();
  if (sampler) {
    box->sampler = sampler->box();
  } else {
    box->sampler = std::make_shared<SamplerBox>();
    box->sampler->spec.stages.push_back([](sampling::Chain& chain, const Making&) { return chain.greedy(), Status(); });
  }
  options.stop = box->stop.get_token();
  auto session_claim = self->use.change("session");
  auto sampler_claim = box->sampler->use.change("sampler");
  take(unlocked([&]() -> Status {
         if (auto ready = box->sampler->prepare(box->session->engine.get()); !ready) return ready;
         box->generation = box->session->session.generate(box->sampler->sampler, options);
         return {};
       }),
       *box->sampler->failure);
  self->latest = nullptr;
  return GenerationHandle(std::move(box));
}

// Returns the next piece, or nullopt after the last one.
std::optional<PyPiece> next_piece(const GenerationHandle& self) {
  refuse_in_callback("the next piece of a generation");
  auto claim = self->use.change("generation");
  if (self->ended) return std::nullopt;
  auto session_claim = self->session->use.change("session");
  auto sampler_claim = self->sampler->use.change("sampler");
  auto next = unlocked([&] { return self->generation.next(); });
  if (!next) {
    self->ended = true;
    return std::nullopt;
  }
  if (!*next) self->ended = true;
  return PyPiece{0, take(std::move(*next), *self->sampler->failure)};
}

void close(const GenerationHandle& self) {
  auto claim = self->use.change("generation");
  auto session_claim = self->session->use.change("session");
  auto sampler_claim = self->sampler->use.change("sampler");
  if (self->closed) return;
  self->ended = self->closed = true;
  self->finish = self->generation.finish_reason();
  self->figures = self->generation.figures();
  unlocked([&] { self->generation = Generation(); });
}

void bind_generation(nb::module_& m) {
  nb::class_<GenerationHandle>(
      m, "Generation", no_constructor(),
      R"(An iterator over the pieces of a generated text. No other call can use the session until the text has ended, or the generation is closed.

    with session.generate(sampler, max_tokens=100) as pieces:
        for piece in pieces:
            print(piece, end="")

If you leave the loop early, the session keeps the tokens that were delivered. close(), or the end of the with block, frees the session.)")
      .def(
          "__iter__", [](nb::handle self) { return self; }, nb::sig("def __iter__(self) -> Generation"))
      .def("__next__",
           [](const GenerationHandle& self) {
             auto piece = next_piece(self);
             if (!piece) throw nb::stop_iteration();
             return *std::move(piece);
           })
      .def(
          "read",
          [](const GenerationHandle& self) {
            std::string text;
            while (auto piece = next_piece(self)) {
              text += piece->piece.text;
              check_signals();
            }
            return text;
          },
          R"(Draws the rest of the text and returns it. If Ctrl-C or an error stops read(), the session keeps the tokens that were drawn so far; Session.text has
their text.)")
      .def("close", &close, "Ends the generation and frees the session. A generation that is destroyed is closed.")
      .def(
          "__enter__", [](nb::handle self) { return self; }, nb::sig("def __enter__(self) -> Generation"))
      .def(
          "__exit__", [](const GenerationHandle& self, nb::args) { close(self); },
          nb::sig("def __exit__(self, *args: object) -> None"))
      .def_prop_ro(
          "finish_reason",
          [](const GenerationHandle& self) {
            auto claim = self->use.read("generation");
            return finish_name(self->closed ? self->finish : self->generation.finish_reason());
          },
          nb::sig("def finish_reason(self) -> str | None"), "Why the text has ended (see Piece); None while it goes on.")
      .def_prop_ro(
          "figures",
          [](const GenerationHandle& self) {
            auto claim = self->use.read("generation");
            return figures_dict(self->closed ? self->figures : self->generation.figures());
          },
          nb::sig("def figures(self) -> dict[str, float]"), R"(A dict. prompt_tokens: tokens that were appended since the previous generation. tokens: tokens that were drawn. prompt_seconds, time_to_first_token,
generation_seconds: times in seconds. tokens_per_second: speed of the tokens after the first one. bytes_per_token: bytes of weights and of the KV cache
that were read for the last token. steps: steps that drew tokens. drafted, accepted: drafts that were computed, and drafts that became tokens.)")
      .def("__repr__", [](const GenerationHandle& self) {
        return std::string("<tessera.Generation ") + (self->ended ? "ended" : "running") + ">";
      });
}

nb::bytes save_bytes(const SessionHandle& self) {
  auto claim = self->use.read("session");
  std::vector<char> bytes;
  take(unlocked([&] {
    return self->session.save([&](std::span<const std::byte> piece) {
      const char* data = reinterpret_cast<const char*>(piece.data());
      bytes.insert(bytes.end(), data, data + piece.size());
      return Status();
    });
  }));
  return nb::bytes(bytes.data(), bytes.size());
}

Verification verify(const SessionHandle& self, const nb::object& progress) {
  refuse_in_callback("Session.verify()");
  auto claim = self->use.read("session");
  const auto failure = std::make_shared<Failure>();
  check_callable(progress, "Session.verify()", "progress");
  VerifyOptions options;
  options.progress = progress_callback(progress, failure);
  return take(interruptible([&](std::stop_token stop) {
                options.stop = std::move(stop);
                return self->session.verify(options);
              }),
              *failure);
}

std::vector<std::pair<std::string, double>> beam_texts(const SessionHandle& self, std::uint32_t beams,
                                                       std::size_t max_tokens, float length_penalty,
                                                       const std::optional<Tokens>& stop_tokens) {
  refuse_in_callback("Session.beam_search()");
  auto claim = self->use.read("session");
  BeamOptions options{.beams = beams, .max_tokens = max_tokens, .length_penalty = length_penalty};
  if (stop_tokens) options.stop_tokens = *stop_tokens;
  const auto found = take(interruptible([&](std::stop_token stop) {
    options.stop = std::move(stop);
    return beam_search(self->session, options);
  }));
  std::vector<std::pair<std::string, double>> texts;
  for (const Beam& beam : found) texts.emplace_back(beam.text, beam.score);
  return texts;
}

}  // namespace

void bind_session(nb::module_& m) {
  bind_generation(m);
  nb::class_<SessionHandle> session(
      m, "Session", no_constructor(), nb::is_weak_referenceable(),
      R"(One sequence: its tokens, their keys and values, and the logits after the last token.

    session = engine.session()
    session.append("Once upon a time")
    for piece in session.generate(tessera.Sampler(temperature=0.8), max_tokens=100):
        print(piece, end="")

Only one call at a time may change a session. If another thread calls at the same time, its call raises InvalidState. After an error of
append() the session is as it was. A generation that stops early keeps the tokens that it has drawn. An array that a session has returned does not
change when the session goes on.)");
  session
      .def("append", &append, nb::arg("prompt"), nb::kw_only(), nb::arg("rows") = "last", nb::arg("want") = "logits",
           nb::arg("special") = false, nb::arg("progress") = nb::none(),
           nb::sig("def append(self, prompt: str | collections.abc.Sequence[int], *, rows: str = 'last', want: str = "
                   "'logits', special: bool = False, "
                   "progress: collections.abc.Callable[[int, int], bool | None] | bool | None = None) -> "
                   "numpy.typing.NDArray[numpy.float32]"),
           R"(Appends a text or tokens, computes them, and returns an array. Without tokens it computes the pending ones, and returns the logits after the last
token. rows: "last" returns the row of the last token  [vocab], "all" the rows of all appended tokens  [tokens, vocab], "none" returns None. want:
what a row is: "logits"; "hidden", the residual stream after the last layer  [d_model]; or "embedding", the same after the final norm. A text that
begins the sequence gets the model's BOS in front. special=True reads the names of control tokens in a text as these tokens. progress(done, total)
may return False to cancel, and needs want="logits". Ctrl-C cancels too.)")
      .def_prop_ro("logits", &logits_of, nb::sig("def logits(self) -> numpy.typing.NDArray[numpy.float32] | None"),
                   R"(The logits after the last token  [vocab]; None if they are not known. The array does not change when the session goes on. After append() it shares
its memory with the array that append() returned; otherwise it is a copy.)")
      .def("generate", &generate, nb::arg("sampler") = nb::none(), nb::kw_only(), nb::arg("max_tokens") = nb::none(),
           nb::arg("stop") = nb::none(), nb::arg("stop_tokens") = nb::none(), nb::arg("ignore_eos") = false,
           nb::arg("logprobs") = 0, nb::arg("drafter") = nb::none(), nb::arg("show_control") = false,
           R"(Draws tokens, and returns an iterator of pieces. Without a sampler each token is the likeliest one. max_tokens=None: draws until the model ends the
text; if the context is full before, this raises CacheFull. stop: a text or several, which end the answer and are cut from it. stop_tokens: tokens
that end the answer. ignore_eos=True: the model's own end tokens do not end it. logprobs: how many of the likeliest tokens each piece lists.
drafter: guesses tokens, to be faster. show_control=True: the text shows control tokens.)")
      .def("score", &score, nb::arg("text"), nb::kw_only(), nb::arg("special") = false,
           nb::sig("def score(self, text: str | collections.abc.Sequence[int], *, special: bool = False) -> "
                   "numpy.typing.NDArray[numpy.float32]"),
           R"(Appends the tokens and returns for each of them ln p(token | all tokens before it)  [tokens]. The value of the first token of an empty
session is NaN.)")
      .def(
          "truncate",
          [](const SessionHandle& self, std::size_t position) {
            change(self, "Session.truncate()", [&](Session& s) { return s.truncate(position); });
          },
          nb::arg("position"), "Drops the tokens from `position` on. A position beyond the end changes nothing.")
      .def(
          "clear",
          [](const SessionHandle& self) { change(self, "Session.clear()", [](Session& s) { return s.clear(); }); },
          "Drops all tokens.")
      .def(
          "remove",
          [](const SessionHandle& self, std::size_t first, std::size_t last) {
            change(self, "Session.remove()", [&](Session& s) { return s.remove(first, last); });
          },
          nb::arg("first"), nb::arg("last"),
          R"(Removes the tokens at positions [first, last). Later tokens move up. The session is then `edited`: its keys and values are not those that the model
would compute from its tokens.)")
      .def(
          "keep_window",
          [](const SessionHandle& self, std::size_t sinks, std::size_t window) {
            change(self, "Session.keep_window()", [&](Session& s) { return s.keep_window(sinks, window); });
          },
          nb::arg("sinks"), nb::arg("window"), "Removes the tokens between the first `sinks` and the last `window` computed ones. Pending tokens stay. The session is then `edited`.")
      .def(
          "add_pending",
          [](const SessionHandle& self, Token token) {
            change(self, "Session.add_pending()", [&](Session& s) { return s.add_pending(token); });
          },
          nb::arg("token"), "Appends a token without computing it: the token is pending. The next append() or generate() computes it.")
      .def(
          "suspend",
          [](const SessionHandle& self) { change(self, "Session.suspend()", [](Session& s) { return s.suspend(); }); },
          R"(Writes the session's keys and values to the engine's kv_file. Calls that need them read them back. Exception: fork(), clone(), convert(),
verify() and save() raise InvalidState until resume().)")
      .def("resume",
           [](const SessionHandle& self) { change(self, "Session.resume()", [](Session& s) { return s.resume(); }); })
      .def(
          "fork",
          [](const SessionHandle& self) {
            return copy_of(self, "Session.fork()", [](const Session& s) { return s.fork(); });
          },
          "Returns another session with the same tokens. The two sessions share pages until one of them writes.")
      .def(
          "clone",
          [](const SessionHandle& self) {
            return copy_of(self, "Session.clone()", [](const Session& s) { return s.clone(); });
          },
          "Returns a copy with its own keys and values.")
      .def("__copy__",
           [](const SessionHandle& self) {
             return copy_of(self, "Session.fork()", [](const Session& s) { return s.fork(); });
           })
      .def(
          "convert",
          [](const SessionHandle& self, const std::string& kv, std::uint32_t page_tokens) {
            const KvOptions to{.dtype = kv_type_named("kv", kv), .page_tokens = page_tokens};
            return copy_of(self, "Session.convert()", [&](const Session& s) { return s.convert(to); });
          },
          nb::arg("kv"), nb::kw_only(), nb::arg("page_tokens") = 0,
          "Returns a copy of the session whose keys and values have the type `kv` (\"f16\", \"int8\", ...).")
      .def("verify", &verify, nb::kw_only(), nb::arg("progress") = nb::none(),
           nb::sig("def verify(self, *, progress: collections.abc.Callable[[int, int], bool | None] | None = None) -> "
                   "Verification"),
           "Computes the sequence again, and compares keys, values and logits with the stored ones, bit by bit.")
      .def(
          "save",
          [](const SessionHandle& self, const std::optional<Path>& path) -> std::optional<nb::bytes> {
            refuse_in_callback("Session.save()");
            if (!path) return save_bytes(self);
            auto claim = self->use.read("session");
            take(unlocked([&] { return self->session.save(*path); }));
            return std::nullopt;
          },
          nb::arg("path") = nb::none(),
          nb::sig("def save(self, path: str | os.PathLike[str] | None = None) -> bytes | None"),
          "Writes the session to the file `path`. Without a path it returns the session as bytes. Engine.restore() returns a session with the same bits.")
      .def("beam_search", &beam_texts, nb::kw_only(), nb::arg("beams") = 4, nb::arg("max_tokens") = 64,
           nb::arg("length_penalty") = 1.0f, nb::arg("stop_tokens") = nb::none(),
           R"(Searches for likely continuations, and returns them as pairs (text, score), the best first. beams: sequences that are followed at once. max_tokens: the
most tokens of a sequence. length_penalty: above 0 favours long sequences. The session stays as it is.)");
  session
      .def(
          "use_adapters",
          [](const SessionHandle& self, const AdapterUses& adapters) {
            change(self, "Session.use_adapters()", [&](Session& s) { return s.use_adapters(adapters.list); });
          },
          nb::arg("adapters"),
          R"(Changes the session's adapters; an empty list means none. The tokens stay. If the new adapters change keys and values of computed tokens, these tokens
become pending, and the next call computes them again.)")
      .def_prop_ro(
          "adapters",
          [](const SessionHandle& self) {
            auto claim = self->use.read("session");
            return adapters_list(self->engine, take(self->session.adapters()));
          },
          nb::sig("def adapters(self) -> list[tuple[Adapter, float, int | None]]"),
          "The session's adapters, as (adapter, scale, start). start is None while the adapter waits for its invocation.");
  const auto read = [](auto&& get) {
    return [get](const SessionHandle& self) {
      auto claim = self->use.read("session");
      return get(self->session);
    };
  };
  session
      .def_prop_ro("tokens", read([](const Session& s) { return Tokens(s.tokens().begin(), s.tokens().end()); }),
                   "All tokens, pending ones included.")
      .def_prop_ro("text", read([](const Session& s) { return take(s.engine().tokenizer().decode(s.tokens())); }),
                   "The text of all tokens.")
      .def_prop_ro("position", read([](const Session& s) { return s.position(); }),
                   "Number of tokens whose keys and values are computed.")
      .def_prop_ro("next_position", read([](const Session& s) { return s.next_position(); }),
                   "The next token's position for Sampler.sample().")
      .def_prop_ro("has_pending", read([](const Session& s) { return s.has_pending(); }))
      .def_prop_ro("edited", read([](const Session& s) { return s.edited(); }))
      .def_prop_ro("suspended", read([](const Session& s) { return s.suspended(); }))
      .def_prop_ro("reused", read([](const Session& s) { return s.reused(); }),
                   "How many tokens were found in the prefix index so far, and not computed.")
      .def_prop_ro("context", read([](const Session& s) { return s.context(); }), "The most tokens that the session can have.")
      .def_prop_ro("kv_bytes", read([](const Session& s) { return s.kv().bytes(); }),
                   "Bytes of keys and values, shared pages included.")
      .def_prop_ro("kv_dtype", read([](const Session& s) { return std::string(to_string(s.kv().dtype())); }))
      .def_prop_ro("engine", [](const SessionHandle& self) { return EngineHandle(self->engine); })
      .def("__len__", read([](const Session& s) { return s.tokens().size(); }))
      .def("__repr__", read([](const Session& s) {
             return "<tessera.Session " + std::to_string(s.tokens().size()) + " of " + std::to_string(s.context()) +
                    " tokens, kv " + std::string(to_string(s.kv().dtype())) + (s.edited() ? ", edited" : "") + ">";
           }));
}

}  // namespace tessera::python
