// tessera.Batch: the rows of one forward pass, of one or of many sessions; and tessera.Outputs, their results.
#include "calls.hpp"
#include "types/boxes.hpp"
#include "types/names.hpp"

namespace tessera::python {

namespace {

// Rows that Python has asked for. The library's Batch is made only when the rows are computed, so no pointer to a
// session is kept until then.
struct BatchRows {
  struct Add {
    std::shared_ptr<SessionBox> session;
    Tokens tokens;
    Want want = Want::logits;
    bool all = false;
    std::shared_ptr<SamplerBox> sampler;
  };
  std::vector<Add> adds;
  std::size_t rows = 0;
};
struct BatchHandle {
  std::shared_ptr<BatchRows> rows = std::make_shared<BatchRows>();
};
struct OutputsHandle {
  std::shared_ptr<Outputs> outputs;
  std::size_t rows = 0;
};

std::pair<std::size_t, std::size_t> add(BatchHandle& self, const SessionHandle& session, const Tokens& tokens,
                                        const std::string& want, const std::string& rows,
                                        const std::optional<SamplerHandle>& sampler) {
  static constexpr Named<Want> kWants[] = {{"nothing", Want::nothing},
                                           {"logits", Want::logits},
                                           {"hidden", Want::hidden},
                                           {"token", Want::token},
                                           {"embedding", Want::embedding}};
  static constexpr Named<bool> kRows[] = {{"last", false}, {"all", true}};
  const Want wanted = value_named("want", want, kWants);
  const bool all = value_named("rows", rows, kRows);
  if ((wanted == Want::token) != sampler.has_value()) {
    raise(ErrorCode::invalid_argument, "want=\"token\" and a sampler go together: give both or neither");
  }
  if (all && wanted == Want::token)
    raise(ErrorCode::invalid_argument, "want=\"token\" is for the last row alone: leave rows=\"all\" out");
  BatchRows& batch = *self.rows;
  batch.adds.push_back({session.box(), tokens, wanted, all, sampler ? sampler->box() : nullptr});
  const std::size_t first = batch.rows;
  batch.rows += tokens.empty() ? 1 : tokens.size();
  return {first, batch.rows};
}

OutputsHandle forward(const EngineHandle& engine, const BatchHandle& self) {
  refuse_in_callback("Engine.forward()");
  const BatchRows& rows = *self.rows;
  std::vector<Use::Claim> claims;
  std::vector<const void*> claimed;
  const auto claim_once = [&](Use& use, const char* what) {
    if (std::ranges::find(claimed, &use) != claimed.end()) return;
    claims.push_back(use.change(what));
    claimed.push_back(&use);
  };
  for (const BatchRows::Add& one : rows.adds) {
    claim_once(one.session->use, "session");
    if (one.sampler != nullptr) claim_once(one.sampler->use, "sampler");
  }
  Failure* failure = nullptr;
  for (const BatchRows::Add& one : rows.adds) {
    if (one.sampler != nullptr) failure = one.sampler->failure.get();
  }
  auto made = interruptible([&](std::stop_token stop) -> Result<Outputs> {
    Batch batch;
    for (const BatchRows::Add& one : rows.adds) {
      Session& session = one.session->session;
      Status added;
      if (one.sampler != nullptr) {
        added = one.sampler->prepare(one.session->engine.get());
        if (added) added = batch.add(session, one.tokens, one.sampler->sampler);
      } else if (one.all && !one.tokens.empty()) {
        for (std::size_t i = 0; added && i < one.tokens.size(); ++i)
          added = batch.add(session, Row{.token = one.tokens[i], .want = one.want});
      } else {
        added = batch.add(session, one.tokens, one.want);
      }
      if (!added) return added.error();
    }
    return engine->engine.forward(batch, {.stop = std::move(stop)});
  });
  for (const BatchRows::Add& one : rows.adds) one.session->latest = nullptr;
  if (failure != nullptr) failure->rethrow();
  auto outputs = std::make_shared<Outputs>(take(std::move(made)));
  return {std::move(outputs), rows.rows};
}

void check_row(const OutputsHandle& self, std::size_t row) {
  if (row >= self.rows)
    throw nb::index_error(("row " + std::to_string(row) + ": the batch had " + std::to_string(self.rows)).c_str());
  take(self.outputs->outcome(row));
}

}  // namespace

void bind_batch(nb::module_& m) {
  nb::class_<OutputsHandle>(m, "Outputs", no_constructor(),
                            "The results of a batch, one for each row. An array shares the outputs' memory, and keeps it alive.")
      .def("__len__", [](const OutputsHandle& self) { return self.rows; })
      .def(
          "row",
          [](const OutputsHandle& self, std::size_t row) {
            check_row(self, row);
            const auto values = self.outputs->row(row);
            return array_of<float>(values, {values.size()}, self.outputs);
          },
          nb::arg("row"), nb::sig("def row(self, row: int) -> numpy.typing.NDArray[numpy.float32]"),
          R"(Returns the logits [vocab] or the vector [d_model] of the row; an empty array if nothing was wanted of the row. If the row's session failed, raises its
error.)")
      .def(
          "__getitem__",
          [](const OutputsHandle& self, std::size_t row) {
            check_row(self, row);
            const auto values = self.outputs->row(row);
            return array_of<float>(values, {values.size()}, self.outputs);
          },
          nb::arg("row"), nb::sig("def __getitem__(self, row: int) -> numpy.typing.NDArray[numpy.float32]"))
      .def(
          "token",
          [](const OutputsHandle& self, std::size_t row) {
            check_row(self, row);
            return self.outputs->token(row);
          },
          nb::arg("row"), "Returns the token that was drawn after the row; -1 if the row did not want a token.")
      .def(
          "check", [](const OutputsHandle& self) { take(self.outputs->status()); },
          "Raises the error of the first session that failed, if one did.")
      .def("__repr__",
           [](const OutputsHandle& self) { return "<tessera.Outputs of " + std::to_string(self.rows) + " rows>"; });

  nb::class_<BatchHandle>(m, "Batch", R"(The rows of one forward pass. They belong to one session or to several.

    batch = tessera.Batch()
    batch.add(first, prompt)                          # logits after the prompt's last token
    batch.add(second, [token], want="hidden")
    outputs = engine.forward(batch))")
      .def("__init__", [](BatchHandle* self) { new (self) BatchHandle(); })
      .def("add", &add, nb::arg("session"), nb::arg("tokens"), nb::kw_only(), nb::arg("want") = "logits",
           nb::arg("rows") = "last", nb::arg("sampler") = nb::none(),
           R"(Adds a row for each token, and returns the rows' numbers [first, last) in the outputs. Without tokens it adds a row for the session's pending token. want:
the output of a row: "nothing", "logits", "hidden", "embedding" (see Session.append()), or "token", which `sampler` draws. rows: which rows have this
output: "last" or "all".)")
      .def("clear", [](BatchHandle& self) { self.rows = std::make_shared<BatchRows>(); })
      .def("__len__", [](const BatchHandle& self) { return self.rows->rows; })
      .def("__repr__",
           [](const BatchHandle& self) { return "<tessera.Batch of " + std::to_string(self.rows->rows) + " rows>"; });
  m.attr("Engine").attr("forward") = nb::cpp_function(
      &forward, nb::name("forward"), nb::is_method(), nb::scope(m.attr("Engine")), nb::arg("batch"),
      R"(Computes the batch's rows and appends them to their sessions. If a session fails, it stays as it was, Outputs.row() raises its error, and the other
sessions are computed.)");
}

}  // namespace tessera::python
