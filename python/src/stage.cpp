#include "stage.hpp"

#include "calls.hpp"

#include <algorithm>
#include <string>

namespace tessera::python {

namespace {

// A copy of sampling::Context: everything that a stage may know besides the candidates. Python may keep the copy.
struct StageContext {
  std::shared_ptr<Tokens> history;
  sampling::Context context;  // all members except the history are used
};

// Memory that the stage's arrays view. Allocated once, and again whenever Python has kept an array.
template <class T>
struct Column {
  std::shared_ptr<std::vector<T>> values;
  std::span<T> fill(std::span<const T> from) {
    if (values == nullptr || values.use_count() > 1) values = std::make_shared<std::vector<T>>();
    values->assign(from.begin(), from.end());
    return *values;
  }
  [[nodiscard]] nb::object array() const { return array_of<T>(std::span<const T>(*values), {values->size()}, values); }
};

// How a stage gets the context: not at all, as its third argument, or by name.
enum class ContextUse : std::int32_t { none, third, named };

class PythonStage final : public sampling::Stage {
 public:
  PythonStage(PyRef callable, ContextUse context, bool remembers, FailurePtr failure)
      : callable_(std::move(callable)),
        context_(context),
        remembers_(remembers),
        failure_(std::move(failure)) {}

  Status apply(sampling::Candidates& candidates, const sampling::Context& context) override {
    const Entered entered;
    if (!entered) return Error(ErrorCode::cancelled, "the Python interpreter is ending");
    try {
      tokens_.fill(candidates.tokens());
      logits_.fill(candidates.logits());
      nb::object answer;
      if (context_ != ContextUse::none) {
        auto history = std::make_shared<Tokens>(context.history.begin(), context.history.end());
        StageContext given{std::move(history), context};
        if (context_ == ContextUse::third) answer = callable_.get()(tokens_.array(), logits_.array(), std::move(given));
        else answer = callable_.get()(tokens_.array(), logits_.array(), nb::arg("context") = std::move(given));
      } else {
        answer = callable_.get()(tokens_.array(), logits_.array());
      }
      take_logits(candidates, answer);
      return {};
    } catch (...) {
      failure_->keep();
      return Error(ErrorCode::callback_failed, "a sampling stage written in Python raised an exception");
    }
  }

  Status accept(Token token, float probability) override {
    if (!remembers_) return {};
    const Entered entered;
    if (!entered) return {};
    try {
      callable_.get().attr("accept")(token, probability);
      return {};
    } catch (...) {
      failure_->keep();
      return Error(ErrorCode::callback_failed, "accept() of a sampling stage written in Python raised an exception");
    }
  }

  void rollback(std::size_t n) noexcept override {
    if (!remembers_ || n == 0) return;
    const Entered entered;
    if (!entered) return;
    try {
      callable_.get().attr("rollback")(n);
    } catch (...) {
      failure_->keep();
    }
  }

  [[nodiscard]] bool remembers() const noexcept override { return remembers_; }
  [[nodiscard]] std::string_view name() const noexcept override { return "Python stage"; }

  [[nodiscard]] std::unique_ptr<Stage> clone() const override {
    const Entered entered;
    if (!entered) return nullptr;
    try {
      PyRef copy = callable_;
      if (remembers_) copy = PyRef(nb::module_::import_("copy").attr("deepcopy")(callable_.get()));
      return std::make_unique<PythonStage>(std::move(copy), context_, remembers_, failure_);
    } catch (...) {
      failure_->keep();
      return nullptr;
    }
  }

 private:
  // Reads the logits that Python returned, or the array that Python has changed in place.
  void take_logits(sampling::Candidates& candidates, const nb::object& answer) const {
    std::span<float> to = candidates.change_logits();
    if (answer.is_none()) {
      std::ranges::copy(*logits_.values, to.begin());
      return;
    }
    nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu> array;
    if (!nb::try_cast(as_floats(answer), array)) {
      raise(ErrorCode::invalid_argument, "a stage returned an array with several dimensions: return one logit for each "
                                         "candidate, or None after changing the array in place");
    }
    if (array.size() != to.size()) {
      raise(ErrorCode::invalid_argument,
            "a stage returned " + std::to_string(array.size()) + " logits for " + std::to_string(to.size()) +
                " candidates: return an array of the same length, or None after changing it in place");
    }
    std::copy_n(array.data(), to.size(), to.begin());
  }
  static nb::object as_floats(const nb::object& answer) {
    const nb::module_ numpy = nb::module_::import_("numpy");
    return numpy.attr("ascontiguousarray")(answer, numpy.attr("float32"));
  }

  PyRef callable_;
  ContextUse context_;
  bool remembers_;
  FailurePtr failure_;
  Column<Token> tokens_;
  Column<float> logits_;
};

bool has_method(const nb::object& object, const char* name) { return nb::hasattr(object, name); }

}  // namespace

StageMaker python_stage(const nb::object& callable) {
  if (PyCallable_Check(callable.ptr()) == 0) {
    raise(ErrorCode::invalid_argument,
          std::string("a stage is a callable stage(tokens, logits) or stage(tokens, logits, context), not ") +
              nb::repr(callable).c_str());
  }
  const auto context = static_cast<ContextUse>(nb::cast<int>(nb::module_::import_("tessera._schema").attr("context_use")(callable)));
  const bool remembers = has_method(callable, "accept");
  if (remembers && !has_method(callable, "rollback")) {
    raise(ErrorCode::invalid_argument, "a stage with accept(token, probability) needs rollback(n) too");
  }
  return [callable = PyRef(callable), context, remembers](sampling::Chain& chain,
                                                                const Making& making) -> Status {
    PyRef own = callable;
    if (remembers) {  // each sampler has its own state
      const Entered entered;
      if (!entered) return Error(ErrorCode::cancelled, "the Python interpreter is ending");
      try {
        own = PyRef(nb::module_::import_("copy").attr("deepcopy")(callable.get()));
      } catch (...) {
        making.failure->keep();
        return Error(ErrorCode::callback_failed, "copying a sampling stage raised an exception");
      }
    }
    chain.stage(
        std::unique_ptr<sampling::Stage>(new PythonStage(std::move(own), context, remembers, making.failure)));
    return {};
  };
}

void bind_stage(nb::module_& m) {
  nb::class_<StageContext>(m, "StageContext", no_constructor(), "The tokens and random numbers that a stage may use beside the candidates.")
      .def_prop_ro(
          "history",
          [](const StageContext& self) {
            return array_of<Token>(std::span<const Token>(*self.history), {self.history->size()}, self.history);
          },
          nb::sig("def history(self) -> numpy.typing.NDArray[numpy.int32]"),
          "The tokens before the one being drawn, prompt included.")
      .def_prop_ro(
          "answer",
          [](const StageContext& self) {
            const std::span<const Token> all(*self.history);
            const auto answer = all.subspan(std::min(self.context.before_answer, all.size()));
            return array_of<Token>(answer, {answer.size()}, self.history);
          },
          nb::sig("def answer(self) -> numpy.typing.NDArray[numpy.int32]"), "The tokens of the answer so far.")
      .def_prop_ro("position", [](const StageContext& self) { return self.context.position; })
      .def_prop_ro("seed", [](const StageContext& self) { return self.context.seed; })
      .def_prop_ro("stream", [](const StageContext& self) { return self.context.stream; })
      .def(
          "uniform", [](const StageContext& self, std::uint32_t n) { return self.context.uniform(n); },
          nb::arg("n") = 0,
          "Returns the n-th random number of the stage at this position, in [0, 1). The number depends only on the seed, the stage and the position.");
}

}  // namespace tessera::python
