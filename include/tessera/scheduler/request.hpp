// A request to a scheduler, and the handle that reads its answer.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/decoding/beam_search.hpp>
#include <tessera/generation.hpp>
#include <tessera/sampling/sampler.hpp>
#include <tessera/session.hpp>

namespace tessera {

// A piece of one sample of a request.
struct RequestPiece {
  std::uint32_t sample = 0;
  Piece piece;
};

enum class SessionAtEnd : std::int32_t {
  drop = 0,  // the session is destroyed, and its pages are free at once
  keep = 1,  // the handle keeps the session (take_session()), and its pages stay in use
};

enum class IfLate : std::int32_t {
  run = 0,     // the request is served, and its figures say that it was late
  refuse = 1,  // submit() refuses a request that is not expected to end by its deadline
};

struct Request {
  std::vector<Token> prompt;              // tokens that follow the tokens of `session`; may be empty if `session` has tokens
  // The session that the prompt continues (a fork with a system prompt, for example). None: a new session, made with `session_options`.
  std::optional<Session> session = {};
  SessionOptions session_options = {};
  std::optional<Sampler> sampler = {};    // none: takes the likeliest token (greedy)
  GenerateOptions generate = {};          // its `stop` ends the request
  // Number of answers (samples) to the prompt; the prompt itself is computed once. Sample i draws with the given sampler, with i added to
  // its stream number (Sampler::stream()), so that each sample has other random numbers.
  std::uint32_t samples = 1;
  // If set, the request is a beam search with these options, as beam_search() runs it. It draws nothing and has no pieces;
  // RequestHandle::take_beams() returns the result. Limits, end tokens and `stop` come from these options. submit() refuses the request if
  // it also sets a sampler, several samples or `generate`.
  std::optional<BeamOptions> beams = {};
  // The adapters with which the request is computed. nullopt: the adapters of `session`, or of `session_options`. If an adapter has an
  // invocation and the prompt does not contain it, the adapter changes nothing.
  std::optional<std::vector<AdapterUse>> adapters = {};
  std::int32_t priority = 0;              // lower is served first (by_priority)
  double deadline = std::numeric_limits<double>::infinity();  // latest time of the last token, in seconds after submit()
  IfLate if_late = IfLate::run;
  std::string tenant = {};                // the user to whom the request belongs (fair_by_tenant, figures)
  SessionAtEnd session_at_end = SessionAtEnd::drop;
  // Receives the pieces, instead of the handle. Called on the thread that drives the scheduler; it must not call the scheduler. If it
  // throws, the request ends with callback_failed.
  std::function<void(const RequestPiece&)> on_piece = {};
  // Tells a reader that cannot wait in next(), such as an event loop, that try_next() has something to return: a piece, or the end of the
  // answer. After a call, on_ready is not called again until try_next() has returned nothing. It is called on the thread that drives the
  // scheduler, outside of locks. It must not call the scheduler or the handle, only wake the reader. If it throws, step() returns the
  // error. It may be called once more after the handle is destroyed.
  std::function<void()> on_ready = {};
  // True: on_ready is also called after each step that has computed a part of the prompt (RequestFigures::computed_tokens). As for pieces,
  // on_ready is not called again until try_next() has returned nothing.
  bool tells_progress = false;
};

enum class RequestState : std::int32_t { waiting = 0, running = 1, paused = 2, ended = 3 };

// Figures of one request. Times are seconds on the scheduler's clock; negative: it has not happened yet.
struct RequestFigures {
  double submitted = 0.0;
  double scheduled = -1.0;             // the time at which a step first had rows of the request
  double first_token = -1.0;
  double ended = -1.0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t reused_tokens = 0;     // tokens of the prompt taken from the prefix index
  // Tokens of the prompt that were computed or reused so far, for a progress bar. The number never falls, even if the request is preempted
  // and computes its prompt again.
  std::uint64_t computed_tokens = 0;
  double progressed = -1.0;            // the time at which a step last added to computed_tokens
  std::uint64_t tokens = 0;            // tokens drawn, of all samples together; in a beam search: tokens of one beam
  std::uint64_t drafted = 0;           // drafts that were in a step
  std::uint64_t accepted = 0;          // drafts that the sampler drew
  std::uint64_t recomputed_tokens = 0; // tokens computed again after a preemption
  std::uint32_t preemptions = 0;
  bool late = false;                   // the request ended after its deadline
};

class Scheduler;

// Reads the answer to a request. One thread at a time may use a handle. Exception: any thread may call cancel(). If the handle is destroyed
// before the answer has ended, the request is cancelled.
//
//   auto request = scheduler.submit({.prompt = tokens});
//   while (auto piece = request->next()) std::fputs(piece->piece.text.c_str(), stdout);
//   if (auto status = request->status(); !status) std::fprintf(stderr, "%s\n", status.error().text().c_str());
class RequestHandle {
 public:
  RequestHandle() noexcept;  // an empty handle (docs/headers.md)
  RequestHandle(RequestHandle&&) noexcept;
  RequestHandle& operator=(RequestHandle&&) noexcept;
  ~RequestHandle();

  // Waits for the next piece and returns it. If no Driver drives the scheduler, this call drives it.
  // nullopt: there is no piece, and state() says why:
  //   ended    all pieces have been returned. status() says whether the request failed.
  //   paused   no piece comes before resume(), and the call does not wait for resume().
  //   else     there are three reasons. `timeout` has passed. Or there is no Driver, and the scheduler cannot go on until another request
  //            is read or resumed. Or there is no Driver, and the scheduler's steps fail again and again: then drive_status() has the
  //            error. In all three nothing is lost: call next() again when the cause is gone (memory is free again, for example).
  // Without a timeout, and with a Driver, the call may wait without end: as long as other requests or sessions of the host keep the pages
  // that this request needs, or as long as max_running other requests run (StepLimits).
  [[nodiscard]] std::optional<RequestPiece> next(
      std::chrono::nanoseconds timeout = std::chrono::nanoseconds::max()) noexcept;
  // Returns a piece that is ready, or nullopt. Does not drive the scheduler and does not wait.
  [[nodiscard]] std::optional<RequestPiece> try_next() noexcept;
  // Returns the error with which the request has failed; success while it goes on, and after it has ended without an error. Later calls
  // return the same error. Pieces that were drawn before the error can still be read. Exception: while drive_status() has an error and the
  // request has none, status() returns the error of drive_status(), although the request has not failed (state() is not `ended`).
  [[nodiscard]] Status status() const noexcept;
  // Returns the error of the scheduler's steps, if several steps failed one after another and the last next() therefore gave up driving the
  // scheduler; otherwise success. The request itself has not failed: it goes on when steps succeed again.
  [[nodiscard]] Status drive_status() const noexcept;

  // Ends the request at the next step. Its status() is then an error of code cancelled.
  void cancel() noexcept;
  // pause() makes the request wait: it gets no rows until resume(). Other requests may take its pages meanwhile; after resume() the tokens
  // of these pages are computed again.
  void pause() noexcept;
  void resume() noexcept;

  [[nodiscard]] std::uint64_t id() const noexcept;
  [[nodiscard]] RequestState state() const noexcept;
  // Returns how a sample has finished. FinishReason::none: it goes on. error or cancelled: the request failed before the sample had
  // finished, and status() says why.
  [[nodiscard]] FinishReason finish_reason(std::uint32_t sample = 0) const noexcept;
  [[nodiscard]] RequestFigures figures() const noexcept;
  // Returns the finished sequences of a beam search (Request::beams), the best first, after the request has ended. A second call returns an
  // empty list.
  [[nodiscard]] std::vector<Beam> take_beams() noexcept;
  // Returns a sample's session after the request has ended, so that the caller can go on with it. Needs SessionAtEnd::keep. After a beam
  // search: the prompt's session. A second call returns nullopt.
  [[nodiscard]] std::optional<Session> take_session(std::uint32_t sample = 0) noexcept;

  struct State;

 private:
  friend class Scheduler;
  explicit RequestHandle(std::shared_ptr<State> state) noexcept;
  std::shared_ptr<State> state_;
};

}  // namespace tessera
