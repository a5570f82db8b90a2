// What a scheduler is asked for, and the handle by which its answer comes.
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

// A piece of one of a request's samples.
struct RequestPiece {
  std::uint32_t sample = 0;
  Piece piece;
};

enum class SessionAtEnd : std::int32_t {
  drop = 0,  // its pages are free at once
  keep = 1,  // the handle has it (take_session()), and its pages
};

enum class IfLate : std::int32_t {
  run = 0,     // it is served, and its figures say that it was late
  refuse = 1,  // a request that cannot end by its deadline, as far as one can tell, is refused when it is submitted
};

struct Request {
  std::vector<Token> prompt;              // follows what `session` has; may be empty if that has tokens
  // Goes on from this one (a fork of a system prompt's, a conversation's); else from a new session of these options.
  std::optional<Session> session = {};
  SessionOptions session_options = {};
  std::optional<Sampler> sampler = {};    // none: greedy
  GenerateOptions generate = {};          // `stop` ends the request
  // Answers to the same prompt, which is computed once. Sample i draws with the sampler's stream plus i.
  std::uint32_t samples = 1;
  // Searches instead of drawing: RequestHandle::take_beams() has what beam_search() finds behind the same tokens, and there
  // are no pieces. Tokens, ends and `stop` are these options'; a sampler, samples and generate options are refused.
  std::optional<BeamOptions> beams = {};
  std::string adapter = {};               // of the model's weights: none can be had yet, a name is refused (unsupported)
  std::int32_t priority = 0;              // lower comes first (by_priority)
  double deadline = std::numeric_limits<double>::infinity();  // seconds from now to the last token
  IfLate if_late = IfLate::run;
  std::string tenant = {};                // whose it is (fair_by_tenant, figures)
  SessionAtEnd session_at_end = SessionAtEnd::drop;
  // Gets the pieces instead of the handle, from whoever drives the scheduler, which it must not call. If it throws, the
  // request ends with callback_failed.
  std::function<void(const RequestPiece&)> on_piece = {};
  // For readers that have no thread to wait in next(): told when the handle has something to read (a piece, or
  // its end), and then not again until try_next() has found nothing. From whoever drives the scheduler, outside of locks; it
  // must not call the scheduler or the handle: it wakes who reads. If it throws, step() says so. It may come once more after the handle is gone.
  std::function<void()> on_ready = {};
};

enum class RequestState : std::int32_t { waiting = 0, running = 1, paused = 2, ended = 3 };

// Times in seconds of the scheduler's clock; negative: not yet.
struct RequestFigures {
  double submitted = 0.0;
  double scheduled = -1.0;             // its first row was computed
  double first_token = -1.0;
  double ended = -1.0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t reused_tokens = 0;     // of them: taken from the prefix index
  std::uint64_t tokens = 0;            // drawn, of all samples; of beams: of each
  std::uint64_t drafted = 0;           // drafts that were in a step
  std::uint64_t accepted = 0;          // of them: what the sampler drew
  std::uint64_t recomputed_tokens = 0; // computed again after it had been preempted
  std::uint32_t preemptions = 0;
  bool late = false;                   // it ended after its deadline
};

class Scheduler;

// Used by one thread at a time, but for cancel(), which any may call. Destroying it cancels the request.
//
//   while (auto piece = request->next()) std::fputs(piece->piece.text.c_str(), stdout);
//   if (auto status = request->status(); !status) std::fprintf(stderr, "%s\n", status.error().text().c_str());
class RequestHandle {
 public:
  RequestHandle() noexcept;  // an empty handle (docs/headers.md)
  RequestHandle(RequestHandle&&) noexcept;
  RequestHandle& operator=(RequestHandle&&) noexcept;
  ~RequestHandle();

  // Returns the next piece, and waits for it. Where nobody drives the scheduler (no Driver), this call does.
  // nullopt: no piece comes. state() says why:
  //   ended    all pieces have been given. status() says whether the request failed.
  //   paused   no piece comes before resume(): the call does not wait for that.
  //   else     `timeout` has passed; or nobody drives, and the scheduler waits for the reader of another request, or for its resume().
  // Waits without end, if no timeout is given, only where a Driver drives: while other requests, or sessions of the host, keep
  // the pages or the place that this request needs.
  [[nodiscard]] std::optional<RequestPiece> next(std::chrono::nanoseconds timeout = std::chrono::nanoseconds::max()) noexcept;
  // Returns a piece that is there already, or nullopt. Drives nothing and does not wait.
  [[nodiscard]] std::optional<RequestPiece> try_next() noexcept;
  // The error that the request has failed with; success while it goes on and after it has ended well. An error stays, however
  // often it is asked for. Pieces that were drawn before the error can still be read.
  [[nodiscard]] Status status() const noexcept;

  // Ends the request at the next step, with ErrorCode::cancelled.
  void cancel() noexcept;
  // The request gets no rows until resume(). Its pages may be taken meanwhile, and are computed again then.
  void pause() noexcept;
  void resume() noexcept;

  [[nodiscard]] std::uint64_t id() const noexcept;
  [[nodiscard]] RequestState state() const noexcept;
  // How a sample has finished. none: it has not. error or cancelled: the request failed before the sample had finished; status()
  // says why.
  [[nodiscard]] FinishReason finish_reason(std::uint32_t sample = 0) const noexcept;
  [[nodiscard]] RequestFigures figures() const noexcept;
  // What a search (Request::beams) has found, the best first, when the request has ended. Once.
  [[nodiscard]] std::vector<Beam> take_beams() noexcept;
  // A sample's session, when the request has ended (SessionAtEnd::keep): to go on from; of a
  // search the prompt's. Once.
  [[nodiscard]] std::optional<Session> take_session(std::uint32_t sample = 0) noexcept;

  struct State;

 private:
  friend class Scheduler;
  explicit RequestHandle(std::shared_ptr<State> state) noexcept;
  std::shared_ptr<State> state_;
};

}  // namespace tessera
