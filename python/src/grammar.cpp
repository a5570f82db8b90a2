// tessera.Grammar: which texts are allowed; and grammars compiled for a model's vocabulary.
#include "calls.hpp"
#include "types/boxes.hpp"
#include "types/names.hpp"

namespace tessera::python {

namespace {

GrammarHandle made(Result<Grammar> grammar, std::string source) {
  if (source.size() > 60) source = source.substr(0, 57) + "...";
  return GrammarHandle(std::make_shared<GrammarBox>(take(std::move(grammar)), std::move(source)));
}

std::vector<Grammar> parts_of(const std::vector<GrammarHandle>& parts) {
  std::vector<Grammar> all;
  for (const GrammarHandle& part : parts) all.push_back(part->grammar);
  return all;
}

GrammarHandle json_schema(const nb::object& schema, const std::string& whitespace, const std::string& numbers,
                          const std::string& order, const std::string& formats, const std::string& unsupported) {
  const std::string text = nb::cast<std::string>(nb::module_::import_("tessera._schema").attr("schema_text")(schema));
  const JsonSchemaOptions options = json_options(whitespace, numbers, order, formats, unsupported);
  return made(unlocked([&] { return Grammar::json_schema(text, options); }), "json_schema " + text);
}

struct MatcherBox {
  CompiledGrammar grammar;
  Matcher matcher;
};
struct CompiledHandle {
  CompiledGrammar grammar;
};

void bind_matcher(nb::module_& m) {
  nb::class_<CompiledHandle>(m, "CompiledGrammar", no_constructor(),
                             "A grammar that is compiled for a vocabulary. Engine.compile() returns it. Any thread may use it.")
      .def(
          "check",
          [](const CompiledHandle& self,
             const std::string& text) -> std::optional<std::pair<std::size_t, std::string>> {
            const TextCheck check = take(unlocked([&] { return self.grammar.check(text); }));
            if (check.accepted) return std::nullopt;
            return std::pair(check.at, check.expected);
          },
          nb::arg("text"),
          R"(Returns None if the grammar accepts the text. Otherwise returns the index of the first byte that the grammar does not allow, and words for what it
allows there.)")
      .def_prop_ro("memory_bytes", [](const CompiledHandle& self) { return self.grammar.memory_bytes(); });

  nb::class_<MatcherBox>(
      m, "Matcher",
      R"(Follows one text in a grammar, token by token, for programs with a sampler of their own. (Sampler(grammar=...) needs no matcher.)

    matcher = tessera.Matcher(engine.compile(grammar))
    allowed = matcher.mask()          # uint64 words: bit t % 64 of word t // 64 says whether token t may come next
    matcher.accept(token))")
      .def(
          "__init__",
          [](MatcherBox* self, const CompiledHandle& grammar) {
            new (self) MatcherBox{grammar.grammar, take(Matcher::create(grammar.grammar))};
          },
          nb::arg("grammar"))
      .def(
          "mask", [](MatcherBox& self) { return array_copy<std::uint64_t>(take(self.matcher.mask())); },
          nb::sig("def mask(self) -> numpy.typing.NDArray[numpy.uint64]"),
          "Returns one bit for each token of the vocabulary: 1 if the token may come next.")
      .def(
          "accept", [](MatcherBox& self, Token token) { take(self.matcher.accept(token)); }, nb::arg("token"))
      .def(
          "rollback", [](MatcherBox& self, std::size_t n) { take(self.matcher.rollback(n)); }, nb::arg("n"),
          "Undoes the last n calls of accept().")
      .def(
          "forced",
          [](MatcherBox& self) {
            const std::string f = take(self.matcher.forced());
            return nb::bytes(f.data(), f.size());
          },
          "Returns the bytes that the grammar forces to come next. Empty if there is a choice.")
      .def_prop_ro("may_end", [](const MatcherBox& self) { return self.matcher.may_end(); })
      .def_prop_ro("ended", [](const MatcherBox& self) { return self.matcher.ended(); })
      .def_prop_ro(
          "accepted", [](const MatcherBox& self) { return self.matcher.accepted(); }, "Number of accepted tokens.")
      .def(
          "copy", [](const MatcherBox& self) { return MatcherBox(self); },
          "Returns a copy that goes on independently.")
      .def("__copy__", [](const MatcherBox& self) { return MatcherBox(self); });
}

}  // namespace

Result<CompiledGrammar> GrammarBox::compiled_for(EngineBox& engine) {
  const Hash128 fingerprint = engine.engine.tokenizer().fingerprint();
  const std::scoped_lock lock(mutex);
  for (const auto& [key, ready] : compiled) {
    if (key == fingerprint) return ready;
  }
  auto vocabulary = engine.grammar_vocabulary();
  if (!vocabulary) return vocabulary.error();
  auto ready = CompiledGrammar::create(grammar, *vocabulary);
  if (!ready) return ready.error();
  if (compiled.size() == 8) compiled.erase(compiled.begin());
  compiled.emplace_back(fingerprint, *ready);
  return *ready;
}

void bind_grammar(nb::module_& m) {
  nb::class_<GrammarHandle>(m, "Grammar", no_constructor(),
                            R"(The set of texts that a sampler may write. Pass a grammar to Sampler(grammar=...) or to SamplingParams(grammar=...).

    tessera.Grammar.json_schema({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]})
    tessera.Grammar.regex("[0-9]{4}-[0-9]{2}")
    tessera.Grammar.choice(["yes", "no"])
    tessera.Grammar.ebnf('root ::= "a"+ "b"?')

a + b allows a text of a followed by a text of b; a | b allows a text of either. Any thread may use a grammar.)")
      .def_static(
          "json_schema", &json_schema, nb::arg("schema"), nb::kw_only(), nb::arg("whitespace") = "blank",
          nb::arg("numbers") = "plain", nb::arg("order") = "any", nb::arg("formats") = "assertion",
          nb::arg("unsupported") = "refuse",
          nb::sig("def json_schema(schema: object, *, whitespace: str = 'blank', numbers: str = 'plain', order: str = "
                  "'any', "
                  "formats: str = 'assertion', unsupported: str = 'refuse') -> Grammar"),
          R"(Allows the JSON texts that a schema accepts. schema: a dict, a text, or a pydantic model (any class with model_json_schema()). whitespace between
JSON's tokens: "any", "none", or "blank" (at most one blank). numbers: "any", or "plain" (a limited number of digits, so that a model cannot write digits
without end). order of an object's properties: "any", or "stated" (as the schema lists them). formats: "assertion" (the keyword `format` is enforced),
"annotation" (it has no effect), or "by_draft" (no effect if $schema names draft 2020-12, else enforced). unsupported keywords: "refuse" raises
Unsupported, "ignore" leaves them out.)")
      .def_static(
          "json",
          [](const std::string& whitespace) {
            return made(Grammar::json(json_options(whitespace, "any", "any", "assertion", "refuse").space), "json");
          },
          nb::kw_only(), nb::arg("whitespace") = "blank", "Allows any JSON text.")
      .def_static(
          "regex",
          [](const std::string& pattern) {
            return made(unlocked([&] { return Grammar::regex(pattern); }), "regex " + pattern);
          },
          nb::arg("pattern"), "Allows the texts that the regular expression (ECMA-262) matches as a whole.")
      .def_static(
          "ebnf",
          [](const std::string& text) { return made(unlocked([&] { return Grammar::ebnf(text); }), "ebnf " + text); },
          nb::arg("text"), "Allows the texts that rules in EBNF describe. GBNF is part of this EBNF.")
      .def_static(
          "choice",
          [](const std::vector<std::string>& texts) {
            std::string words;
            for (const std::string& text : texts) words += (words.empty() ? "" : "|") + text;
            return made(unlocked([&] { return Grammar::choice(texts); }), "choice " + words);
          },
          nb::arg("texts"), "Allows each of these texts.")
      .def_static(
          "literal", [](const std::string& text) { return made(Grammar::literal(text), "literal " + text); },
          nb::arg("text"))
      .def_static(
          "until",
          [](const std::vector<std::string>& triggers) {
            return made(unlocked([&] { return Grammar::until(triggers); }), "until");
          },
          nb::arg("triggers"), "Allows any text that ends with one of the triggers, and has no trigger before.")
      .def_static(
          "without",
          [](const std::vector<std::string>& triggers) {
            return made(unlocked([&] { return Grammar::without(triggers); }), "without");
          },
          nb::arg("triggers"), "Allows any text that contains none of the triggers.")
      .def_static(
          "sequence",
          [](const std::vector<GrammarHandle>& parts) { return made(Grammar::sequence(parts_of(parts)), "sequence"); },
          nb::arg("parts"))
      .def_static(
          "alternatives",
          [](const std::vector<GrammarHandle>& parts) {
            return made(Grammar::alternatives(parts_of(parts)), "alternatives");
          },
          nb::arg("parts"))
      .def(
          "repeat",
          [](const GrammarHandle& self, std::uint32_t min, std::uint32_t max) {
            return made(Grammar::repeat(self->grammar, min, max), "repeat");
          },
          nb::arg("min") = 0, nb::arg("max") = 0,
          "Allows min to max texts of this grammar, one after another. max=0: no limit.")
      .def(
          "__add__",
          [](const GrammarHandle& self, const GrammarHandle& other) {
            return made(Grammar::sequence({self->grammar, other->grammar}), "sequence");
          },
          nb::is_operator(), nb::arg("other"))
      .def(
          "__or__",
          [](const GrammarHandle& self, const GrammarHandle& other) {
            return made(Grammar::alternatives({self->grammar, other->grammar}), "alternatives");
          },
          nb::is_operator(), nb::arg("other"))
      .def_prop_ro(
          "ignored",
          [](const GrammarHandle& self) {
            const auto all = self->grammar.ignored();
            return std::vector<std::string>(all.begin(), all.end());
          },
          "Path and name of each keyword that unsupported=\"ignore\" has left out.")
      .def("__repr__", [](const GrammarHandle& self) { return "<tessera.Grammar " + self->source + ">"; });
  bind_matcher(m);
}

void bind_compile(nb::module_& m) {
  m.attr("Engine").attr("compile") = nb::cpp_function(
      [](const EngineHandle& engine, const GrammarHandle& grammar) {
        return CompiledHandle{take(unlocked([&] { return grammar->compiled_for(*engine); }))};
      },
      nb::name("compile"), nb::is_method(), nb::scope(m.attr("Engine")), nb::arg("grammar"),
      "Compiles a grammar for the engine's vocabulary, and keeps the result with the grammar. Samplers compile their grammars by themselves.");
}

}  // namespace tessera::python
