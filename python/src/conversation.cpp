// tessera._core.Conversation: a program adds messages and reads answers. Python keeps the messages
// (tessera/conversation.py); the code here reads them before an answer.
#include <chrono>

#include <nanobind/stl/tuple.h>

#include "calls.hpp"
#include "adapters.hpp"
#include "types/names.hpp"

namespace tessera::python {

namespace {

struct ConversationBox {
  std::shared_ptr<EngineBox> engine;
  Use use;
  Conversation conversation;
};
using ConversationHandle = Handle<ConversationBox>;

struct AnswerBox {
  std::shared_ptr<ConversationBox> conversation;
  std::shared_ptr<SamplerBox> sampler;
  std::stop_source stop;
  Use use;
  Answer answer;
};
using AnswerHandle = Handle<AnswerBox>;

constexpr Named<OutputDelta::Kind> kKinds[] = {{"text", OutputDelta::Kind::text},
                                               {"reasoning", OutputDelta::Kind::reasoning},
                                               {"call_begin", OutputDelta::Kind::call_begin},
                                               {"call_arguments", OutputDelta::Kind::call_arguments},
                                               {"call_end", OutputDelta::Kind::call_end}};

ConversationHandle create(const EngineHandle& engine, const std::optional<std::string>& chat_template,
                          const std::optional<std::string>& output_format, std::uint32_t context, const std::string& kv,
                          const std::string& salt, const AdapterUses& adapters) {
  const auto now =
      nb::cast<std::tuple<int, int, int, int, int, int>>(nb::module_::import_("tessera._schema").attr("local_time")());
  ConversationOptions options;
  options.render.now = LocalTime{std::get<0>(now), std::get<1>(now), std::get<2>(now),
                                 std::get<3>(now), std::get<4>(now), std::get<5>(now)};
  options.session.context = context;
  options.session.kv.dtype = kv_type_named("kv", kv);
  options.session.kv.salt = salt;
  options.session.adapters = adapters.list;
  auto box = std::make_shared<ConversationBox>();
  box->engine = engine.box();
  take(unlocked([&]() -> Status {
    if (chat_template) {
      auto form = chat_template_of(engine->engine, *chat_template);
      if (!form) return form.error();
      options.chat_template = *std::move(form);
    }
    if (output_format) {
      auto format = find_output_format(*output_format);
      if (!format) return format.error();
      options.output_format = *std::move(format);
    }
    auto made = Conversation::create(engine->engine, {}, std::move(options));
    if (!made) return made.error();
    box->conversation = *std::move(made);
    return {};
  }));
  return ConversationHandle(std::move(box));
}

void set_request(const ConversationHandle& self, const nb::object& request) {
  const Json json = json_of(request);
  auto claim = self->use.change("conversation");
  self->conversation.request() = take(ChatRequest::from_json(json));
}

AnswerHandle answer(const ConversationHandle& self, const SamplerHandle& sampler, std::optional<std::size_t> max_tokens,
                    const std::vector<std::string>& stop, const std::optional<DrafterHandle>& drafter) {
  refuse_in_callback("Conversation.answer()");
  if (max_tokens && *max_tokens == 0)
    raise(ErrorCode::invalid_argument, "max_tokens=0: ask for at least one token, or leave it out for no limit");
  auto box = std::make_shared<AnswerBox>();
  box->conversation = self.box();
  box->sampler = sampler.box();
  auto claim = self->use.change("conversation");
  auto sampler_claim = sampler->use.change("sampler");
  auto made = interruptible([&](const std::stop_token& interrupted) -> Result<Answer> {
    if (auto ready = sampler->prepare(self->engine.get()); !ready) return ready.error();
    const std::stop_callback passed_on(interrupted, [&] { box->stop.request_stop(); });
    AnswerOptions options{.max_tokens = max_tokens.value_or(0),
                          .stop_strings = stop,
                          .stop = box->stop.get_token(),
                          .speculate = speculation(drafter)};
    return self->conversation.answer(sampler->sampler, options);
  });
  box->answer = take(std::move(made), *sampler->failure);
  return AnswerHandle(std::move(box));
}

std::optional<OutputDelta> next(const AnswerHandle& self) {
  refuse_in_callback("the next piece of an answer");
  auto claim = self->use.change("answer");
  auto conversation_claim = self->conversation->use.change("conversation");
  auto sampler_claim = self->sampler->use.change("sampler");
  auto delta = unlocked([&] { return self->answer.next(); });
  if (!delta) take(self->answer.status(), *self->sampler->failure);
  return delta;
}

template <class Get>
auto reading(Get&& get) {
  return [get](const AnswerHandle& self) {
    auto claim = self->use.read("answer");
    return get(self->answer);
  };
}

void bind_answer(nb::module_& m) {
  nb::class_<OutputDelta>(m, "Delta", no_constructor(), "A piece of an answer. str(delta) is `text` if `kind` is \"text\", and empty for other kinds.")
      .def_prop_ro(
          "kind", [](const OutputDelta& self) { return std::string(name_of(self.kind, kKinds)); },
          "\"text\", \"reasoning\", \"call_begin\", \"call_arguments\" or \"call_end\".")
      .def_prop_ro(
          "text", [](const OutputDelta& self) { return nb::str(self.text.data(), self.text.size()); },
          "The next part of the text, of the reasoning, or of the arguments (JSON).")
      .def_ro("call", &OutputDelta::call, "Number of the call, from 0.")
      .def_ro("name", &OutputDelta::name, "In a \"call_begin\": name of the tool that is called.")
      .def_ro("id", &OutputDelta::id)
      .def_ro("broken", &OutputDelta::broken, "In a \"call_end\": True if the arguments are no JSON object, if a part of the call could not be read, or if the call was cut (by max_tokens, for example). Do not run such a call.")
      .def("__str__",
           [](const OutputDelta& self) { return self.kind == OutputDelta::Kind::text ? self.text : std::string(); })
      .def("__repr__", [](const OutputDelta& self) {
        return "<tessera.Delta " + std::string(name_of(self.kind, kKinds)) + " " +
               nb::repr(nb::str(self.text.data(), self.text.size())).c_str() + ">";
      });
  nb::class_<AnswerHandle>(m, "Answer", no_constructor(), "The answer to the last message, piece by piece.")
      .def("next", &next, "Returns the next piece; None at the end.")
      .def(
          "stop", [](const AnswerHandle& self) { self->stop.request_stop(); },
          "Ends the answer with the text that there is. Any thread.")
      .def("message", reading([](const Answer& a) { return python_of(take(a.message()).to_json()); }),
           nb::sig("def message(self) -> dict[str, typing.Any]"))
      .def("close",
           [](const AnswerHandle& self) {
             auto claim = self->use.change("answer");
             auto conversation_claim = self->conversation->use.change("conversation");
             unlocked([&] { self->answer = Answer(); });
           })
      .def_prop_ro("finish_reason", reading([](const Answer& a) { return finish_name(a.finish_reason()); }),
                   nb::sig("def finish_reason(self) -> str | None"))
      .def_prop_ro("figures", reading([](const Answer& a) { return figures_dict(a.figures()); }),
                   nb::sig("def figures(self) -> dict[str, float]"))
      .def_prop_ro("prompt_tokens", reading([](const Answer& a) { return a.prompt().tokens; }))
      .def_prop_ro("kept_tokens", reading([](const Answer& a) { return a.prompt().kept; }));
}

}  // namespace

void bind_conversation(nb::module_& m) {
  bind_answer(m);
  nb::class_<ConversationHandle>(m, "Conversation", "The compiled part of tessera.Conversation.")
      .def(
          "__init__",
          [](ConversationHandle* self, const EngineHandle& engine, const std::optional<std::string>& chat_template,
             const std::optional<std::string>& output_format, std::uint32_t context, const std::string& kv,
             const std::string& salt, const AdapterUses& adapters) {
            new (self) ConversationHandle(create(engine, chat_template, output_format, context, kv, salt, adapters));
          },
          nb::arg("engine"), nb::kw_only(), nb::arg("chat_template") = nb::none(),
          nb::arg("output_format") = nb::none(), nb::arg("context") = 0, nb::arg("kv") = "auto", nb::arg("salt") = "",
          nb::arg("adapters") = AdapterUses())
      .def(
          "use_adapters",
          [](const ConversationHandle& self, const AdapterUses& adapters) {
            refuse_in_callback("Conversation.use_adapters()");
            auto claim = self->use.change("conversation");
            take(unlocked([&] { return self->conversation.use_adapters(adapters.list); }));
          },
          nb::arg("adapters"))
      .def_prop_ro(
          "adapters",
          [](const ConversationHandle& self) {
            auto claim = self->use.read("conversation");
            return adapters_list(self->engine, take(self->conversation.session().adapters()));
          },
          nb::sig("def adapters(self) -> list[tuple[Adapter, float, int | None]]"))
      .def("set_request", &set_request, nb::arg("request"),
           nb::sig("def set_request(self, request: dict[str, typing.Any]) -> None"))
      .def("prompt",
           [](const ConversationHandle& self) {
             auto claim = self->use.change("conversation");
             return take(unlocked([&] { return self->conversation.prompt(); }));
           })
      .def("answer", &answer, nb::arg("sampler"), nb::kw_only(), nb::arg("max_tokens") = nb::none(),
           nb::arg("stop") = std::vector<std::string>(), nb::arg("drafter") = nb::none())
      .def_prop_ro("has_template", [](const ConversationHandle& self) { return self->conversation.has_template(); })
      .def_prop_ro("output_format",
                   [](const ConversationHandle& self) { return self->conversation.output_format().name; })
      .def_prop_ro("tokens",
                   [](const ConversationHandle& self) {
                     auto claim = self->use.read("conversation");
                     const auto tokens = self->conversation.session().tokens();
                     return Tokens(tokens.begin(), tokens.end());
                   })
      .def(
          "tool_stage",
          [](const ConversationHandle& self, const SamplerHandle& sampler, const std::string& use,
             const std::string& name, std::size_t max_calls) {
            static constexpr Named<ToolUse> kUses[] = {{"required", ToolUse::required},
                                                       {"at_once", ToolUse::at_once},
                                                       {"after_text", ToolUse::after_text},
                                                       {"auto", ToolUse::automatic}};
            const ToolGrammarOptions options{
                .use = value_named("tool_use", use, kUses), .name = name, .max_calls = max_calls};
            auto claim = self->use.change("conversation");
            auto matcher = take(unlocked([&] { return self->conversation.tool_matcher(options); }));
            auto box = std::make_shared<SamplerBox>();
            box->spec = sampler->spec;
            box->spec.words = "tools" + (box->spec.words.empty() ? "" : ", " + box->spec.words);
            box->spec.stages.insert(box->spec.stages.begin(),
                                    [matcher = std::move(matcher)](sampling::Chain& chain, const Making&) {
                                      return chain.stage(sampling::GrammarStage{matcher}), Status();
                                    });
            return SamplerHandle(std::move(box));
          },
          nb::arg("sampler"), nb::kw_only(), nb::arg("tool_use") = "required", nb::arg("name") = "",
          nb::arg("max_calls") = 0,
          "Returns a fresh sampler with the same stages that holds the next answer to calls of the tools.")
      .def_prop_ro("tool_warnings", [](const ConversationHandle& self) {
        auto claim = self->use.read("conversation");
        const auto all = self->conversation.tool_warnings();
        return std::vector<std::string>(all.begin(), all.end());
      });
}

}  // namespace tessera::python
