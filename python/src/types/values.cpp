// Plain values: plans, pieces, verifications, figures, drafters, and JSON.
#include <algorithm>
#include <cmath>

#include "calls.hpp"
#include "types/boxes.hpp"
#include "types/names.hpp"

namespace tessera::python {

namespace {

std::string amount(std::uint64_t bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < std::size(units)) value /= 1024.0, ++unit;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

nb::object text_object(std::string_view text) { return nb::str(text.data(), text.size()); }

void bind_plan(nb::module_& m) {
  nb::class_<Plan>(m, "Plan", no_constructor(),
                   "The memory that an engine with one session of `context` tokens takes, in bytes, computed before the memory is taken.")
      .def_ro("weights", &Plan::weights)
      .def_ro("kv", &Plan::kv, "Bytes of one full session.")
      .def_ro("kv_limit", &Plan::kv_limit, "Bytes of KV pages that `peak` (on a GPU: `device_peak`) includes: kv_budget, or `kv` if there is no budget.")
      .def_ro("kv_per_token", &Plan::kv_per_token, "Bytes of keys and values of a token.")
      .def_ro("workspace", &Plan::workspace, "Bytes of the activations of a step.")
      .def_ro("host", &Plan::host, "Bytes of the tokenizer, of tables, and of one session's logits, tokens and sampler.")
      .def_ro("adapters", &Plan::adapters, "Bytes that all adapters together may take (adapter_budget).")
      .def_ro("loading", &Plan::loading, "Bytes that only loading takes.")
      .def_ro("peak", &Plan::peak, "The most bytes of the host's memory that are taken at any time.")
      .def_ro("device_peak", &Plan::device_peak, "The most bytes of the GPU's memory that are taken at any time; 0: no GPU is used.")
      .def_ro("weights_per_token", &Plan::weights_per_token, "Bytes of weights that are read for every token.")
      .def_ro("context", &Plan::context)
      .def_ro("page_tokens", &Plan::page_tokens)
      .def_prop_ro("kv_dtype", [](const Plan& self) { return std::string(to_string(self.kv_dtype)); })
      .def("__repr__", [](const Plan& self) {
        return "<tessera.Plan peak " + amount(self.peak) + ": weights " + amount(self.weights) + ", kv " +
               amount(self.kv_limit) + " (" + std::string(to_string(self.kv_dtype)) + ", " +
               std::to_string(self.context) + " tokens), workspace " + amount(self.workspace) + ">";
      });
  nb::class_<KernelUse>(
      m, "KernelUse", no_constructor(),
      "The kernel that computes an operation. fallback: why a better kernel cannot be used; empty if this kernel is the best.")
      .def_prop_ro("kind", [](const KernelUse& self) { return std::string(to_string(self.kind)); },
                   "The operation's name: \"linear\", \"attention\", ...")
      .def_ro("operation", &KernelUse::operation, "The operation in words: its name, and for which case: \"linear, few rows\".")
      .def_ro("kernel", &KernelUse::kernel)
      .def_ro("family", &KernelUse::family)
      .def_ro("dtype", &KernelUse::dtype)
      .def_ro("backend", &KernelUse::backend)
      .def_ro("fallback", &KernelUse::fallback)
      .def("__repr__", [](const KernelUse& self) {
        return "<" + self.operation + ": " + self.kernel + " (" + self.family + ", " + self.dtype + ", " +
               self.backend + ")" + (self.fallback.empty() ? "" : ", fallback: " + self.fallback) + ">";
      });
}

void bind_piece(nb::module_& m) {
  nb::class_<PyPiece>(m, "Piece", no_constructor(),
                      "A drawn token, and the text that is certain since this token: only whole characters. str(piece) is the text.")
      .def_prop_ro(
          "text", [](const PyPiece& self) { return text_object(self.piece.text); }, nb::sig("def text(self) -> str"))
      .def_prop_ro("token", [](const PyPiece& self) { return self.piece.token; })
      .def_prop_ro(
          "finish_reason", [](const PyPiece& self) { return finish_name(self.piece.finish); },
          nb::sig("def finish_reason(self) -> str | None"),
          "On the last piece: \"end_of_generation\", \"max_tokens\", \"stop_string\" or \"stop_token\". On the pieces before: None. The finish_reason of a generation, a request or an answer can also be \"error\" (it failed) or \"cancelled\".")
      .def_prop_ro(
          "stop_string",
          [](const PyPiece& self) -> std::optional<int> {
            return self.piece.stop_string < 0 ? std::nullopt : std::optional(self.piece.stop_string);
          },
          "Index in `stop` of the text that ended the answer, or None.")
      .def_prop_ro(
          "sample", [](const PyPiece& self) { return self.sample; }, "Number of the sample, from 0, if the request has several samples.")
      .def_prop_ro(
          "logprob", [](const PyPiece& self) { return self.piece.logprob; },
          "ln p of the token, if `logprobs` was above 0.")
      .def_prop_ro(
          "top",
          [](const PyPiece& self) {
            std::vector<std::pair<Token, float>> top;
            for (const TokenLogprob& one : self.piece.top) top.emplace_back(one.token, one.logprob);
            return top;
          },
          "The likeliest tokens as pairs (token, ln p), the best first, if `logprobs` was above 0.")
      .def(
          "__str__", [](const PyPiece& self) { return text_object(self.piece.text); },
          nb::sig("def __str__(self) -> str"))
      .def("__repr__", [](const PyPiece& self) {
        nb::str shown = nb::repr(text_object(self.piece.text));
        const nb::object finish = finish_name(self.piece.finish);
        return std::string("<tessera.Piece ") + shown.c_str() + ", token " + std::to_string(self.piece.token) +
               (finish.is_none() ? "" : std::string(", ") + nb::str(finish).c_str()) + ">";
      });
}

void bind_verification(nb::module_& m) {
  static constexpr Named<Verdict> kVerdicts[] = {
      {"same", Verdict::same}, {"differs", Verdict::differs}, {"unverifiable", Verdict::unverifiable}};
  nb::class_<Verification>(m, "Verification", no_constructor(), "The result of Session.verify(). bool(verification) is True if every bit is the same.")
      .def_prop_ro(
          "verdict", [](const Verification& self) { return std::string(name_of(self.verdict, kVerdicts)); },
          "\"same\", \"differs\" or \"unverifiable\".")
      .def_ro("what", &Verification::what, "The result in words; empty for \"same\".")
      .def_ro("layer", &Verification::layer)
      .def_ro("head", &Verification::head)
      .def_ro("position", &Verification::position)
      .def_ro("records", &Verification::records, "Number of keys, values and states that differ.")
      .def_ro("compared", &Verification::compared, "Number of keys, values and states that were compared.")
      .def_ro("logits_differ", &Verification::logits_differ)
      .def("__bool__", [](const Verification& self) { return self.verdict == Verdict::same; })
      .def("__repr__", [](const Verification& self) {
        return "<tessera.Verification " + std::string(name_of(self.verdict, kVerdicts)) +
               (self.what.empty() ? "" : ": " + self.what) + ">";
      });
}

DrafterHandle drafter_of(Result<std::shared_ptr<const Drafter>> made, std::string words) {
  return DrafterHandle(std::make_shared<DrafterBox>(take(std::move(made)), std::move(words)));
}

void bind_drafter(nb::module_& m) {
  nb::class_<DrafterHandle>(
      m, "Drafter", no_constructor(), "Guesses the next tokens (drafts), so that one step computes several tokens. The text is the same as without a drafter.")
      .def_static(
          "ngram",
          [](std::size_t shortest, std::size_t longest) {
            return drafter_of(ngram_drafter({.shortest = shortest, .longest = longest}), "ngram");
          },
          nb::kw_only(), nb::arg("shortest") = 2, nb::arg("longest") = 8,
          R"(Looks for an earlier place with the same last tokens, and guesses the tokens that followed there. shortest, longest: how many of the last tokens must
be the same, and how many are compared at most.)")
      .def_static(
          "suffix",
          [](std::size_t shortest, float least) {
            return drafter_of(suffix_drafter({.shortest = shortest, .least = least}), "suffix");
          },
          nb::kw_only(), nb::arg("shortest") = 1, nb::arg("least") = 0.1f,
          R"(Takes the longest end of the text that occurred before, and guesses the tokens that followed most often. shortest: tokens that must be the same.
least: a chain of guesses ends where the product of their probabilities falls below this.)")
      .def_static(
          "lookahead", [](std::size_t ngram) { return drafter_of(lookahead_drafter({.ngram = ngram}), "lookahead"); },
          nb::kw_only(), nb::arg("ngram") = 4, "Guesses with the tokens that the model itself guessed in earlier steps. ngram: tokens of each stored n-gram of guesses.")
      .def_static(
          "forced",
          [](const std::optional<DrafterHandle>& otherwise) {
            return drafter_of(forced_drafter(otherwise ? (*otherwise)->drafter : nullptr), "forced");
          },
          nb::arg("otherwise") = nb::none(),
          "Guesses the text that a grammar forces. Where the grammar leaves a choice, the drafter `otherwise` guesses, if there is one.")
      .def_static(
          "model", [](const EngineHandle& engine) { return drafter_of(model_drafter(engine->engine), "model"); },
          nb::arg("engine"), "Guesses with a smaller model, which must have the same tokenizer.")
      .def_static(
          "early_exit", [](std::uint32_t layers) { return drafter_of(early_exit_drafter(layers), "early_exit"); },
          nb::arg("layers"), "Guesses with the first `layers` layers of the model itself.")
      .def_static(
          "heads", [] { return drafter_of(head_drafter(), "heads"); },
          "Guesses with the model's draft heads. The engine must have loaded them: Engine(mtp=True) or Engine(draft_heads=path).")
      .def(
          "limit",
          [](const DrafterHandle& self, std::uint32_t max_drafts, std::uint32_t branches) {
            return DrafterHandle(std::make_shared<DrafterBox>(self->drafter, self->words, max_drafts, branches));
          },
          nb::kw_only(), nb::arg("max_drafts") = 8, nb::arg("branches") = 1,
          "Returns a drafter with these limits: max_drafts is the most drafts in a step, and branches the most chains of drafts in a step.")
      .def("__repr__", [](const DrafterHandle& self) { return "<tessera.Drafter " + self->words + ">"; });
}

}  // namespace

SpeculateOptions speculation(const std::optional<DrafterHandle>& drafter) {
  if (!drafter) return {};
  return {.drafter = (*drafter)->drafter, .max_drafts = (*drafter)->max_drafts, .branches = (*drafter)->branches};
}

GenerateOptions generate_options(std::optional<std::size_t> max_tokens,
                                 const std::optional<std::variant<std::string, std::vector<std::string>>>& stop,
                                 const std::optional<Tokens>& stop_tokens, bool ignore_eos, std::uint32_t logprobs,
                                 bool show_control) {
  GenerateOptions options;
  if (max_tokens) {
    if (*max_tokens == 0)
      raise(ErrorCode::invalid_argument, "max_tokens=0: ask for at least one token, or leave it out for no limit");
    options.max_tokens = *max_tokens;
  }
  if (stop) {
    if (const std::string* one = std::get_if<std::string>(&*stop))
      options.stop_strings = {*one};
    else
      options.stop_strings = std::get<std::vector<std::string>>(*stop);
  }
  if (stop_tokens) options.stop_tokens = *stop_tokens;
  options.end_of_generation = ignore_eos ? EndOfGeneration::ignore : EndOfGeneration::stop;
  options.logprobs = logprobs;
  options.control_text = show_control ? ControlText::show : ControlText::omit;
  return options;
}

nb::object progress_of(const nb::object& fn, const std::string& title) {
  if (fn.is(nb::handle(Py_False))) return nb::none();
  if (!fn.is_none() && !fn.is(nb::handle(Py_True))) return fn;
  return nb::module_::import_("tessera._progress").attr("loading")(title, fn.is(nb::handle(Py_True)));
}

nb::object python_of(const Json& json) {
  const std::string text = json.dump();
  return nb::module_::import_("json").attr("loads")(text_object(text));
}

Json json_of(nb::handle object) {
  const nb::object dumped = nb::module_::import_("tessera._schema").attr("dump")(object);
  const std::string text = nb::cast<std::string>(dumped);
  return take(Json::parse(text));
}

void bind_values(nb::module_& m) {
  bind_plan(m);
  bind_piece(m);
  bind_verification(m);
  bind_drafter(m);
}

}  // namespace tessera::python
