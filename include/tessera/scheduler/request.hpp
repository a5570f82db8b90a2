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
  // For readers that have no thread to wait in next(): told when the handle has something to read (a piece, the error, or
  // its end), and then not again until try_next() has found nothing. From whoever drives the scheduler, outside of locks; it
  // must not throw, nor call the scheduler or the handle: it wakes who reads. It may come once more after the handle is gone.
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
class RequestHandle {
 public:
  RequestHandle() noexcept;  // an empty handle (docs/headers.md)
  RequestHandle(RequestHandle&&) noexcept;
  RequestHandle& operator=(RequestHandle&&) noexcept;
  ~RequestHandle();

  // The next piece; nullopt after the last, or if none came in time. An error is the last element. Where nobody drives the
  // scheduler (no Driver), this call does.
  [[nodiscard]] std::optional<Result<RequestPiece>> next(
      std::chrono::nanoseconds timeout = std::chrono::nanoseconds::max()) noexcept;
  // A piece that is there already.
  [[nodiscard]] std::optional<Result<RequestPiece>> try_next() noexcept;

  // Ends it at the next step; an element that says so (ErrorCode::cancelled) is its last.
  void cancel() noexcept;
  // It gets no rows until resume(). Its pages may be taken meanwhile, and are computed again then.
  void pause() noexcept;
  void resume() noexcept;

  [[nodiscard]] std::uint64_t id() const noexcept;
  [[nodiscard]] RequestState state() const noexcept;
  [[nodiscard]] FinishReason finish_reason(std::uint32_t sample = 0) const noexcept;  // none: it has not finished
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
