// tessera.Request, which reads an answer; and tessera.Sample, one of the answer's texts.
#include <algorithm>
#include <chrono>
#include <thread>

#include "calls.hpp"
#include "scheduler.hpp"
#include "types/names.hpp"

namespace tessera::python {

namespace {

using std::chrono::nanoseconds;
constexpr nanoseconds kSlice = std::chrono::milliseconds(20);  // how long a waiting call locks a request, at most

// One of the texts of a request, complete.
struct Sample {
  std::string text;
  Tokens tokens;
  FinishReason finish = FinishReason::none;
  std::int32_t stop_string = -1;
  std::vector<float> logprobs;
  std::vector<std::vector<std::pair<Token, float>>> top;
};

enum class Reading : std::int32_t { piece, waiting, paused, failed, ended };

// Waits for a piece, at most for `slice`. Sets `piece` if the result is Reading::piece. Called without the GIL.
Reading read_slice(RequestBox& box, nanoseconds slice, std::optional<RequestPiece>& piece) {
  const std::scoped_lock lock(box.mutex);
  const RequestState before = box.handle.state();  // read first: a request may end between the two calls
  piece = slice.count() == 0 ? box.handle.try_next() : box.handle.next(slice);
  if (piece) return Reading::piece;
  if (before == RequestState::ended) return Reading::ended;
  if (!box.handle.drive_status()) return Reading::failed;
  return before == RequestState::paused ? Reading::paused : Reading::waiting;
}

// Throws the error of a failed request, or the error with which next() stopped driving the scheduler.
void check(const RequestPtr& self) {
  Status status = unlocked([&] {
    const std::scoped_lock lock(self->mutex);
    Status drive = self->handle.drive_status();
    return drive ? self->handle.status() : drive;
  });
  take(std::move(status), *self->failure);
}

// Returns the next piece; nullopt at the end, or when the timeout has passed (then sets `late`).
std::optional<PyPiece> next(const RequestPtr& self, std::optional<double> timeout, bool& late) {
  refuse_in_callback("Request.next()");
  late = false;
  const auto end =
      std::chrono::steady_clock::now() +
      std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(std::min(timeout.value_or(1e9), 1e9)));
  for (;;) {
    std::optional<RequestPiece> piece;
    const auto left =
        timeout ? std::max(nanoseconds(0), nanoseconds(end - std::chrono::steady_clock::now())) : nanoseconds::max();
    Reading reading = Reading::waiting;
    {
      const Unlocked released;
      do {  // takes the GIL only for a piece and for signals
        reading = read_slice(*self, std::min(kSlice, left), piece);
      } while (reading == Reading::waiting && !on_main_thread() &&
               (!timeout || std::chrono::steady_clock::now() < end));
      if (reading == Reading::paused) std::this_thread::sleep_for(std::min<nanoseconds>(kSlice, left));
    }
    if (reading == Reading::piece) return PyPiece{piece->sample, std::move(piece->piece)};
    if (reading == Reading::ended || reading == Reading::failed) check(self);
    if (reading == Reading::ended) return std::nullopt;
    check_signals();
    if (timeout && std::chrono::steady_clock::now() >= end) {
      late = true;
      return std::nullopt;
    }
  }
}

std::optional<PyPiece> try_next(const RequestPtr& self) {
  refuse_in_callback("Request.try_next()");
  std::optional<RequestPiece> piece;
  unlocked([&] { return read_slice(*self, nanoseconds(0), piece); });
  if (!piece) return std::nullopt;
  return PyPiece{piece->sample, std::move(piece->piece)};
}

std::vector<Sample> result(const RequestPtr& self) {
  std::vector<Sample> all(self->samples);
  bool late = false;
  while (auto next_one = next(self, std::nullopt, late)) {
    Sample& sample = all[std::min<std::size_t>(next_one->sample, all.size() - 1)];
    Piece& piece = next_one->piece;
    sample.text += piece.text;
    sample.tokens.push_back(piece.token);
    sample.logprobs.push_back(piece.logprob);
    if (!piece.top.empty()) {
      auto& top = sample.top.emplace_back();
      for (const TokenLogprob& one : piece.top) top.emplace_back(one.token, one.logprob);
    }
    if (piece.finish != FinishReason::none) {
      sample.finish = piece.finish;
      sample.stop_string = piece.stop_string;
    }
  }
  return all;
}

template <class Get>
auto locked(const RequestPtr& self, Get&& get) {
  return unlocked([&] {
    const std::scoped_lock lock(self->mutex);
    return get(self->handle);
  });
}

std::string state_name(RequestState state) {
  static constexpr Named<RequestState> kStates[] = {{"waiting", RequestState::waiting},
                                                    {"running", RequestState::running},
                                                    {"paused", RequestState::paused},
                                                    {"ended", RequestState::ended}};
  return std::string(name_of(state, kStates));
}

}  // namespace

void bind_request(nb::module_& m) {
  nb::class_<Sample>(m, "Sample", "One whole text of a request. Request.result() returns them.")
      .def(
          "__init__",
          [](Sample* self, std::string text, Tokens tokens, const std::optional<std::string>& finish,
             std::optional<int> stop_string) {
            new (self) Sample();
            self->text = std::move(text);
            self->tokens = std::move(tokens);
            self->stop_string = stop_string.value_or(-1);
            for (const FinishReason reason : {FinishReason::max_tokens, FinishReason::end_of_generation,
                                              FinishReason::stop_token, FinishReason::stop_string}) {
              if (finish && *finish == to_string(reason)) self->finish = reason;
            }
          },
          nb::arg("text"), nb::arg("tokens"), nb::arg("finish_reason") = nb::none(),
          nb::arg("stop_string") = nb::none())
      .def_ro("text", &Sample::text)
      .def_ro("tokens", &Sample::tokens)
      .def_ro("logprobs", &Sample::logprobs, "ln p of each token, if `logprobs` was above 0.")
      .def_ro("top", &Sample::top, "For each token the likeliest tokens at its place, as pairs (token, ln p), if `logprobs` was above 0.")
      .def_prop_ro(
          "finish_reason", [](const Sample& self) { return finish_name(self.finish); },
          nb::sig("def finish_reason(self) -> str | None"))
      .def_prop_ro(
          "stop_string",
          [](const Sample& self) -> std::optional<int> {
            return self.stop_string < 0 ? std::nullopt : std::optional(self.stop_string);
          },
          "Index in `stop` of the text that ended the answer, or None.")
      .def("__repr__", [](const Sample& self) {
        return "<tessera.Sample of " + std::to_string(self.tokens.size()) +
               " tokens: " + nb::repr(nb::str(self.text.data(), self.text.size())).c_str() + ">";
      });

  nb::class_<RequestPtr>(
      m, "Request", no_constructor(), nb::is_weak_referenceable(),
      R"(An iterator over the pieces of the answer to a request. It ends with the answer. If the request failed, it raises the error.

    for piece in scheduler.submit("Once upon a time", max_tokens=50):
        print(piece, end="")

A request that is closed or destroyed before its end is cancelled. Any thread may use a request. If two threads read it, each piece goes to one of
them.)")
      .def(
          "__iter__", [](nb::handle self) { return self; }, nb::sig("def __iter__(self) -> Request"))
      .def("__next__",
           [](const RequestPtr& self) {
             bool late = false;
             auto piece = next(self, std::nullopt, late);
             if (!piece) throw nb::stop_iteration();
             return *std::move(piece);
           })
      .def(
          "next",
          [](const RequestPtr& self, std::optional<double> timeout) {
            bool late = false;
            return next(self, timeout, late);
          },
          nb::arg("timeout") = nb::none(),
          R"(Waits for the next piece, at most `timeout` seconds, and returns it. Returns None if the answer has ended (`state` is "ended"), or if the time is
over. Raises the error of a request that failed.)")
      .def("try_next", &try_next, "Returns the next piece if it is ready, else None. Does not wait.")
      .def(
          "read",
          [](const RequestPtr& self) {
            std::string text;
            bool late = false;
            while (auto piece = next(self, std::nullopt, late)) {
              if (piece->sample == 0) text += piece->piece.text;
            }
            return text;
          },
          "Waits for the end and returns the rest of the first sample's text. Ctrl-C stops the waiting; the request goes on, and cancel() ends it.")
      .def("result", &result, "Waits for the end and returns all samples.")
      .def(
          "check", [](const RequestPtr& self) { check(self); }, "Raises the error of the request, if it has failed.")
      .def(
          "cancel", [](const RequestPtr& self) { unlocked([&] { self->handle.cancel(); }); },
          "Ends the request at the next step. Reading then raises Cancelled.")
      .def(
          "pause", [](const RequestPtr& self) { locked(self, [](RequestHandle& h) { h.pause(); }); },
          "Computes nothing more of the request until resume().")
      .def("resume", [](const RequestPtr& self) { locked(self, [](RequestHandle& h) { h.resume(); }); })
      .def(
          "close", [](const RequestPtr& self) { unlocked([&] { self->handle.cancel(); }); },
          "Cancels the request if it has not ended.")
      .def(
          "__enter__", [](nb::handle self) { return self; }, nb::sig("def __enter__(self) -> Request"))
      .def(
          "__exit__", [](const RequestPtr& self, nb::args) { unlocked([&] { self->handle.cancel(); }); },
          nb::sig("def __exit__(self, *args: object) -> None"))
      .def_prop_ro("id", [](const RequestPtr& self) { return self->handle.id(); })
      .def_prop_ro(
          "state",
          [](const RequestPtr& self) { return state_name(locked(self, [](RequestHandle& h) { return h.state(); })); },
          "\"waiting\", \"running\", \"paused\" or \"ended\".")
      .def_prop_ro(
          "finish_reason",
          [](const RequestPtr& self) {
            return finish_name(locked(self, [](RequestHandle& h) { return h.finish_reason(); }));
          },
          nb::sig("def finish_reason(self) -> str | None"), "Why the first sample has ended (see Piece); None while it goes on. \"error\": the request failed. \"cancelled\": it was cancelled.")
      .def_prop_ro(
          "figures",
          [](const RequestPtr& self) {
            return figures_dict(locked(self, [](RequestHandle& h) { return h.figures(); }));
          },
          nb::sig("def figures(self) -> dict[str, float | int | bool | None]"),
          R"(A dict. submitted, scheduled, first_token, ended: times in seconds on the scheduler's clock; None: not yet. progressed: the time at which a step last
computed tokens of the prompt. prompt_tokens: tokens of the prompt. reused_tokens: those that the prefix index had. computed_tokens: those that are
computed or reused so far. tokens: drawn tokens of all samples. drafted, accepted: drafts that were computed, and drafts that became tokens.
recomputed_tokens: tokens that were computed again after a preemption. preemptions: their number. late: True if the request ended after its deadline.)")
      .def(
          "take_session",
          [](const RequestPtr& self, std::uint32_t sample) {
            auto session = locked(self, [&](RequestHandle& h) { return h.take_session(sample); });
            if (!session) {
              raise(ErrorCode::invalid_state,
                    "there is no session to take: the request has not ended, was submitted without keep_session=True, "
                    "or its session was taken already");
            }
            return SessionHandle(std::make_shared<SessionBox>(self->scheduler->engine, *std::move(session)));
          },
          nb::arg("sample") = 0, "Returns the session of a request that has ended, so that you can go on from it. The request must have been submitted with keep_session=True.")
      .def("__repr__", [](const RequestPtr& self) {
        return "<tessera.Request " + std::to_string(self->handle.id()) + ", " +
               state_name(locked(self, [](RequestHandle& h) { return h.state(); })) + ">";
      });
}

}  // namespace tessera::python
