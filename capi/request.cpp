// tessera_request: submitting a request and reading its answer.
#include <chrono>
#include <cstddef>
#include <string>

#include "adapter.hpp"
#include "sampler.hpp"
#include "scheduler.hpp"
#include "session.hpp"
#include "values/describe.hpp"
#include "values/piece.hpp"
#include "values/values.hpp"

struct tessera_request : tessera::c::Tagged<tessera::c::Kind::request> {
  tessera_request(tessera::c::EngineStatePtr of, std::size_t n) noexcept : engine(std::move(of)), samples(n) {}
  tessera::c::EngineStatePtr engine;
  std::size_t samples;
  tessera::RequestHandle handle;
  tessera_piece piece;
};

namespace tessera::c {

namespace {

// Passes a piece to the reader. Without a piece, throws the error of a failed request, or returns NULL.
const tessera_piece* read(tessera_request& request, std::optional<RequestPiece> piece) {
  if (piece) return request.piece.set(std::move(piece->piece), piece->sample);
  if (request.handle.state() == RequestState::ended) must(request.handle.status());
  must(request.handle.drive_status());
  return nullptr;
}

}  // namespace

}  // namespace tessera::c

using namespace tessera::c;
using tessera::ErrorCode;

int32_t tessera_scheduler_submit(tessera_scheduler* scheduler, const int32_t* tokens, size_t count,
                                 tessera_session* session, const tessera_submit_options* options,
                                 tessera_request** request, tessera_error** error) {
  return call(error, [&] {
    clear(request);
    const auto given = read_struct(options, "options", offsetof(tessera_submit_options, adapters));
    const SharedDrop drop = share({given.user, given.drop});
    tessera_request*& made = out(request, "request");
    tessera_scheduler& of = need(scheduler, "scheduler");
    const auto prompt = list(tokens, count, "tokens");
    tessera_session* from = need_or_null(session, "session");
    const tessera_sampler* sampler = need_or_null(given.sampler, "options.sampler");
    const tessera::Json json = parse_json(given.json, given.json_size, "options.json");
    tessera::Request asked = read_request(*of.engine, Value(json, {}));
    if (sampler != nullptr) {
      if (asked.sampler)
        fail(ErrorCode::invalid_argument, "has a sampler or a grammar, and options.sampler is set: use one of the two",
             "options.json");
      asked.sampler = must(sampler->state->sampler.clone());
    }
    if (given.adapters != nullptr) asked.adapters = read_adapters(given.adapters, "options.adapters");
    asked.prompt.assign(prompt.begin(), prompt.end());
    asked.generate.stop = token_of(given.stop);
    if (asked.beams) asked.beams->stop = std::exchange(asked.generate.stop, {});
    if (given.on_ready != nullptr)
      asked.on_ready = [on_ready = given.on_ready, user = given.user, drop] {
        const InCallback scope;
        on_ready(user);
      };
    // If the scheduler refuses the request, the caller keeps the session. So the scheduler gets a fork, and the
    // caller's session is emptied only after the request was accepted.
    if (from != nullptr) {
      if (json.find("session") != nullptr)
        fail(ErrorCode::invalid_argument, "is for a new session, and a session was passed", "session");
      const tessera::Session& taken = from->state->read();
      if (from->state->generations != 0)
        fail(ErrorCode::invalid_state, "a generation of it is not freed: tessera_generation_free()", "session");
      asked.session = must(taken.fork());
    }
    auto handle = std::make_unique<tessera_request>(of.engine, asked.samples);
    handle->handle = must(of.scheduler.submit(std::move(asked)));
    if (from != nullptr) {
      from->state->change() = tessera::Session();
      from->state->is_given = true;
    }
    made = handle.release();
  });
}

int32_t tessera_request_next(tessera_request* request, int64_t timeout_ns, const tessera_piece** piece,
                             tessera_error** error) {
  return call(error, [&] {
    const tessera_piece*& next = out(piece, "piece");
    tessera_request& of = need(request, "request");
    if (timeout_ns < 0) fail(ErrorCode::invalid_argument, "must be 0 or more, or TESSERA_WAIT_FOREVER", "timeout_ns");
    next = read(of, of.handle.next(std::chrono::nanoseconds(timeout_ns)));
  });
}

int32_t tessera_request_try_next(tessera_request* request, const tessera_piece** piece, tessera_error** error) {
  return call(error, [&] {
    const tessera_piece*& next = out(piece, "piece");
    tessera_request& of = need(request, "request");
    next = read(of, of.handle.try_next());
  });
}

void tessera_request_cancel(tessera_request* request) {
  if (is_a(request) != nullptr) request->handle.cancel();
}
void tessera_request_pause(tessera_request* request) {
  if (is_a(request) != nullptr) request->handle.pause();
}
void tessera_request_resume(tessera_request* request) {
  if (is_a(request) != nullptr) request->handle.resume();
}
uint64_t tessera_request_id(const tessera_request* request) {
  return is_a(request) != nullptr ? request->handle.id() : 0;
}
int32_t tessera_request_state(const tessera_request* request) {
  return is_a(request) != nullptr ? static_cast<int32_t>(request->handle.state()) : 0;
}
int32_t tessera_request_finish_reason(const tessera_request* request, size_t sample) {
  if (is_a(request) == nullptr || sample >= request->samples) return 0;
  return static_cast<int32_t>(request->handle.finish_reason(static_cast<std::uint32_t>(sample)));
}

int32_t tessera_request_figures(const tessera_request* request, tessera_text** json, tessera_error** error) {
  return call(error, [&] {
    tessera_text*& made = out(json, "json");
    made = new_text(describe(need(request, "request").handle.figures()).dump());
  });
}

int32_t tessera_request_take_session(tessera_request* request, size_t sample, tessera_session** session,
                                     tessera_error** error) {
  return call(error, [&] {
    tessera_session*& made = out(session, "session");
    tessera_request& of = need(request, "request");
    if (of.handle.state() != tessera::RequestState::ended)
      fail(ErrorCode::invalid_state, "the request has not ended: read it to its end", "request");
    if (sample >= of.samples) {
      fail(ErrorCode::not_found,
           "there is no sample " + std::to_string(sample) + "; the request has " + std::to_string(of.samples) +
               ", counted from 0",
           "sample");
    }
    auto state = std::make_shared<SessionState>(of.engine, tessera::Session());  // made before taking: it may fail
    auto handle = std::make_unique<tessera_session>(state);
    auto taken = of.handle.take_session(static_cast<std::uint32_t>(sample));
    if (!taken) {
      fail(
          ErrorCode::not_found,
          "there is none: it was taken already, or the request was submitted without \"keep_session\": true, or failed",
          "session of sample " + std::to_string(sample));
    }
    state->session = *std::move(taken);
    made = handle.release();
  });
}

int32_t tessera_request_take_beams(tessera_request* request, tessera_text** json, tessera_error** error) {
  return call(error, [&] {
    tessera_text*& made = out(json, "json");
    tessera_request& of = need(request, "request");
    if (of.handle.state() != tessera::RequestState::ended)
      fail(ErrorCode::invalid_state, "the request has not ended", "request");
    must(of.handle.status());
    made = new_text(describe(of.handle.take_beams()).dump());
  });
}

void tessera_request_free(tessera_request* request) { free_handle(request); }
