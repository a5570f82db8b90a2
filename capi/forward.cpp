// Rows of several sessions in one pass.
#include <limits>
#include <string>
#include <vector>

#include <tessera/batch.hpp>
#include <tessera/engine.hpp>

#include "outputs.hpp"
#include "session.hpp"
#include "values/structs.hpp"
#include "values/values.hpp"

namespace tessera::c {

namespace {

Want want_of(std::int32_t want) {
  switch (want) {
    case TESSERA_WANT_NOTHING:
      return Want::nothing;
    case TESSERA_WANT_LOGITS:
      return Want::logits;
    case TESSERA_WANT_HIDDEN:
      return Want::hidden;
    case TESSERA_WANT_EMBEDDING:
      return Want::embedding;
    default:
      fail(ErrorCode::invalid_argument, "must be a constant TESSERA_WANT_..., and is " + std::to_string(want), "want");
  }
}

// Adds the rows of one session.
void add_rows(Batch& batch, Session& session, std::span<const Token> tokens, const float* embeddings, std::size_t count,
              std::size_t width, Want want, bool every_row) {
  for (std::size_t i = 0; i < count; ++i) {
    Row row;
    if (embeddings != nullptr)
      row.embedding = {embeddings + i * width, width};
    else
      row.token = tokens[i];
    row.want = every_row || i + 1 == count ? want : Want::nothing;
    must(batch.add(session, row));
  }
}

}  // namespace

}  // namespace tessera::c

using namespace tessera::c;
using tessera::ErrorCode;

int32_t tessera_forward(const tessera_engine* engine, tessera_session* const* sessions, const size_t* counts,
                        size_t session_count, const int32_t* tokens, int32_t want,
                        const tessera_forward_options* options, tessera_outputs** outputs, tessera_error** error) {
  return call(error, [&] {
    tessera_outputs*& made = out(outputs, "outputs");
    const auto given = read_struct(options, "options");
    if (given.reserved != 0) fail(ErrorCode::unsupported, "must be 0", "options.reserved");
    if (given.every_row != 0 && given.every_row != 1)
      fail(ErrorCode::invalid_argument, "must be 0 or 1", "options.every_row");
    const tessera::Engine& of = need(engine, "engine").state->engine;
    const auto all = list(sessions, session_count, "sessions");
    const auto n = list(counts, session_count, "counts");
    const tessera::Want wanted = want_of(want);
    const std::size_t width = of.spec().d_model;
    std::size_t rows = 0;
    for (const std::size_t count : n) {
      if (count > PTRDIFF_MAX / sizeof(float) - rows)
        fail(ErrorCode::invalid_argument, "the counts are more than memory can hold", "counts");
      rows += count;
    }
    if (rows == 0) fail(ErrorCode::invalid_argument, "no session has a row to compute", "counts");
    const auto ids = given.embeddings == nullptr ? list(tokens, rows, "tokens") : std::span<const int32_t>();
    tessera::Batch batch;
    std::size_t at = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      SessionState& state = *need(all[i], "sessions[" + std::to_string(i) + "]").state;
      const float* embeddings = given.embeddings != nullptr ? given.embeddings + at * width : nullptr;
      static_cast<void>(state.read());
      state.forget_rows();
      add_rows(batch, state.session, ids.empty() ? ids : ids.subspan(at, n[i]), embeddings, n[i], width, wanted,
               given.every_row == 1);
      at += n[i];
    }
    tessera::ForwardOptions how;
    how.first_layer = given.first_layer;
    if (given.last_layer != 0) how.last_layer = given.last_layer;
    how.stop = token_of(given.stop);
    made = new tessera_outputs(must(of.forward(batch, how)), rows);
  });
}
