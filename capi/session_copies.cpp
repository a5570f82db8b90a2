// Copies of sessions (in memory, in files, in a host's storage), and the check that a session has the keys and values
// that the model would compute.
#include <string>

#include "host.hpp"
#include "options/engine_options.hpp"
#include "paths.hpp"
#include "session.hpp"
#include "values/describe.hpp"
#include "values/values.hpp"

namespace tessera::c {

namespace {

template <class Copy>
std::int32_t copy(const tessera_session* session, tessera_session** to, std::string_view name, tessera_error** error,
                  Copy&& make) noexcept {
  return call(error, [&] {
    tessera_session*& made = out(to, name);
    const SessionState& state = *need(session, "session").state;
    made = new_session(state.engine, must(make(state.read())));
  });
}

}  // namespace

}  // namespace tessera::c

using namespace tessera::c;
using tessera::Session;

int32_t tessera_session_fork(const tessera_session* session, tessera_session** fork, tessera_error** error) {
  return copy(session, fork, "fork", error, [](const Session& of) { return of.fork(); });
}

int32_t tessera_session_copy(const tessera_session* session, const char* json, size_t json_size, tessera_session** to,
                             tessera_error** error) {
  return copy(session, to, "copy", error, [&](const Session& of) {
    if (text(json, json_size, "json").empty()) return of.clone();
    return of.convert(read_kv_options(json, json_size));
  });
}

int32_t tessera_session_verify(const tessera_session* session, const tessera_stop* stop, tessera_text** json,
                               tessera_error** error) {
  return call(error, [&] {
    tessera_text*& made = out(json, "json");
    tessera::VerifyOptions options;
    options.stop = token_of(stop);
    made = new_text(describe(must(need(session, "session").state->read().verify(options))).dump());
  });
}

int32_t tessera_session_save(const tessera_session* session, const char* path, size_t path_size,
                             tessera_error** error) {
  return call(error, [&] { must(need(session, "session").state->read().save(path_of(path, path_size, "path"))); });
}

int32_t tessera_session_save_to(const tessera_session* session,
                                int32_t (*sink)(void* user, const void* bytes, size_t n), void* user,
                                tessera_error** error) {
  return call(error, [&] {
    if (sink == nullptr)
      fail(tessera::ErrorCode::invalid_argument, "a function that takes the bytes is needed, and NULL was passed",
           "sink");
    const tessera::ByteSink to = [&](std::span<const std::byte> bytes) -> tessera::Status {
      if (sink(user, bytes.data(), bytes.size()) == 0) return {};
      return tessera::Error(tessera::ErrorCode::io, "the host's sink failed; the saved bytes are not whole", "sink");
    };
    must(need(session, "session").state->read().save(to));
  });
}

int32_t tessera_session_restore(const tessera_engine* engine, const char* path, size_t path_size, const char* json,
                                size_t json_size, tessera_session** session, tessera_error** error) {
  return call(error, [&] {
    tessera_session*& made = out(session, "session");
    const EngineStatePtr& state = need(engine, "engine").state;
    made = new_session(
        state, must(state->engine.restore(path_of(path, path_size, "path"), read_session_options(json, json_size))));
  });
}

int32_t tessera_session_restore_from(const tessera_engine* engine, const tessera_source* source, const char* json,
                                     size_t json_size, tessera_session** session, tessera_error** error) {
  return call(error, [&] {
    clear(session);
    const auto from = read_struct(source, "source");
    const SharedDrop drop = share({from.user, from.drop});
    tessera_session*& made = out(session, "session");
    const EngineStatePtr& state = need(engine, "engine").state;
    made =
        new_session(state, must(state->engine.restore(host_source(from, drop), read_session_options(json, json_size))));
  });
}
