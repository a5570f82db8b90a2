// tessera_session: making a session, appending to it, reading it, and changing its tokens.
#include "session.hpp"

#include <algorithm>
#include <string>

#include "options/engine_options.hpp"
#include "values/describe.hpp"
#include "values/structs.hpp"
#include "values/values.hpp"

namespace tessera::c {

namespace {

AppendOptions options_of(const tessera_append_options& given) {
  if (given.logits < TESSERA_LOGITS_LAST || given.logits > TESSERA_LOGITS_NONE) {
    fail(ErrorCode::invalid_argument, "must be a constant TESSERA_LOGITS_..., and is " + std::to_string(given.logits),
         "options.logits");
  }
  if (given.reserved != 0) fail(ErrorCode::unsupported, "must be 0", "options.reserved");
  AppendOptions options;
  options.logits = static_cast<LogitsOf>(given.logits);
  options.rows = list(given.rows, given.row_count, "options.rows");
  options.stop = token_of(given.stop);
  if (given.progress != nullptr) {
    options.progress = [progress = given.progress, user = given.user](std::size_t done, std::size_t total) {
      return progress(user, done, total) == 0;
    };
  }
  return options;
}

// Refuses a count that no context of the session can hold, before any token is read. Such a count is often a mistake,
// and the memory behind the pointer may be shorter.
void check_room(const Session& session, std::size_t count) {
  if (count <= session.context()) return;
  fail(ErrorCode::cache_full,
       std::to_string(count) + " tokens are more than the session's context of " + std::to_string(session.context()) +
           "; make the session with a larger context, or pass fewer",
       "count");
}

// Runs a function of the session that returns a Status.
template <class Change>
std::int32_t change(tessera_session* session, tessera_error** error, Change&& make) noexcept {
  return call(error, [&] { must(make(need(session, "session").state->change())); });
}

}  // namespace

}  // namespace tessera::c

using namespace tessera::c;
using tessera::Session;

int32_t tessera_session_create(const tessera_engine* engine, const char* json, size_t json_size,
                               tessera_session** session, tessera_error** error) {
  return call(error, [&] {
    tessera_session*& made = out(session, "session");
    const EngineStatePtr& state = need(engine, "engine").state;
    made = new_session(state, must(state->engine.session(read_session_options(json, json_size))));
  });
}

int32_t tessera_session_append(tessera_session* session, const int32_t* tokens, size_t count,
                               const tessera_append_options* options, tessera_error** error) {
  return call(error, [&] {
    const auto appended = list(tokens, count, "tokens");
    const tessera::AppendOptions given = options_of(read_struct(options, "options"));
    SessionState& state = *need(session, "session").state;
    Session& of = state.change();
    check_room(of, count);
    state.rows = must(of.append(appended, given));
    state.has_rows = true;
  });
}

int32_t tessera_session_logits(const tessera_session* session, const float** values, size_t* rows, size_t* vocabulary,
                               tessera_error** error) {
  return call(error, [&] {
    clear(values), clear(rows), clear(vocabulary);
    const float*& at = out(values, "values");
    size_t& n = out(rows, "rows");
    const SessionState& state = *need(session, "session").state;
    const Session& of = state.read();
    const std::size_t vocab = of.engine().spec().vocab_size;
    const std::span<const float> logits = state.has_rows ? state.rows.values : of.logits();
    if (vocabulary != nullptr) *vocabulary = vocab;
    if (logits.empty()) return;
    at = logits.data();
    n = logits.size() / vocab;
  });
}

int32_t tessera_session_tokens(const tessera_session* session, const int32_t** tokens, size_t* count,
                               tessera_error** error) {
  return call(error, [&] {
    clear(count);
    const int32_t*& at = out(tokens, "tokens");
    size_t& n = out(count, "count");
    const std::span<const tessera::Token> all = need(session, "session").state->read().tokens();
    at = all.data();
    n = all.size();
  });
}

size_t tessera_session_position(const tessera_session* session) {
  return is_a(session) != nullptr ? session->state->session.position() : 0;
}
uint64_t tessera_session_next_position(const tessera_session* session) {
  return is_a(session) != nullptr ? session->state->session.next_position() : 0;
}

int32_t tessera_session_info(const tessera_session* session, tessera_text** json, tessera_error** error) {
  return call(error, [&] {
    tessera_text*& made = out(json, "json");
    made = new_text(describe(need(session, "session").state->read()).dump());
  });
}

int32_t tessera_session_score(tessera_session* session, const int32_t* tokens, size_t count, float* scores,
                              const tessera_append_options* options, tessera_error** error) {
  return call(error, [&] {
    const auto scored = list(tokens, count, "tokens");
    if (scores == nullptr)
      fail(tessera::ErrorCode::invalid_argument, "a place for the scores is needed, and NULL was passed", "scores");
    const tessera::AppendOptions given = options_of(read_struct(options, "options"));
    Session& of = need(session, "session").state->change();
    check_room(of, count);
    const std::vector<float> values = must(of.score(scored, given));
    std::ranges::copy(values, scores);
  });
}

int32_t tessera_session_add_pending(tessera_session* session, int32_t token, tessera_error** error) {
  return change(session, error, [&](Session& of) { return of.add_pending(token); });
}
int32_t tessera_session_truncate(tessera_session* session, size_t position, tessera_error** error) {
  return change(session, error, [&](Session& of) { return of.truncate(position); });
}
int32_t tessera_session_remove(tessera_session* session, size_t first, size_t last, tessera_error** error) {
  return change(session, error, [&](Session& of) { return of.remove(first, last); });
}
int32_t tessera_session_keep_window(tessera_session* session, size_t sinks, size_t window, tessera_error** error) {
  return change(session, error, [&](Session& of) { return of.keep_window(sinks, window); });
}
int32_t tessera_session_suspend(tessera_session* session, tessera_error** error) {
  return change(session, error, [](Session& of) { return of.suspend(); });
}
int32_t tessera_session_resume(tessera_session* session, tessera_error** error) {
  return change(session, error, [](Session& of) { return of.resume(); });
}

void tessera_session_free(tessera_session* session) { free_handle(session); }
