#include "values/piece.hpp"

#include <string>

using namespace tessera::c;

int32_t tessera_piece_kind(const tessera_piece* piece) {
  return is_a(piece) != nullptr ? static_cast<int32_t>(piece->delta.kind) : 0;
}

const char* tessera_piece_text(const tessera_piece* piece, size_t* size) {
  clear(size);
  if (is_a(piece) == nullptr) return nullptr;
  if (size != nullptr) *size = piece->piece.text.size();
  return piece->piece.text.c_str();
}

int32_t tessera_piece_token(const tessera_piece* piece) { return is_a(piece) != nullptr ? piece->piece.token : -1; }
int32_t tessera_piece_finish_reason(const tessera_piece* piece) {
  return is_a(piece) != nullptr ? static_cast<int32_t>(piece->piece.finish) : 0;
}
int32_t tessera_piece_stop_string(const tessera_piece* piece) {
  return is_a(piece) != nullptr ? piece->piece.stop_string : -1;
}
size_t tessera_piece_sample(const tessera_piece* piece) { return is_a(piece) != nullptr ? piece->sample : 0; }
float tessera_piece_logprob(const tessera_piece* piece) { return is_a(piece) != nullptr ? piece->piece.logprob : 0.0f; }
size_t tessera_piece_top_count(const tessera_piece* piece) {
  return is_a(piece) != nullptr ? piece->piece.top.size() : 0;
}

int32_t tessera_piece_top(const tessera_piece* piece, size_t index, int32_t* token, float* logprob,
                          tessera_error** error) {
  return call(error, [&] {
    clear(token), clear(logprob);
    const auto& top = need(piece, "piece").piece.top;
    if (index >= top.size()) {
      fail(
          tessera::ErrorCode::invalid_argument,
          std::to_string(index) + " of " + std::to_string(top.size()) + " tokens; \"logprobs\" says how many there are",
          "index");
    }
    if (token != nullptr) *token = top[index].token;
    if (logprob != nullptr) *logprob = top[index].logprob;
  });
}

size_t tessera_piece_call(const tessera_piece* piece) { return is_a(piece) != nullptr ? piece->delta.call : 0; }
const char* tessera_piece_call_name(const tessera_piece* piece) {
  return is_a(piece) != nullptr ? piece->delta.name.c_str() : nullptr;
}
const char* tessera_piece_call_id(const tessera_piece* piece) {
  return is_a(piece) != nullptr ? piece->delta.id.c_str() : nullptr;
}
int32_t tessera_piece_call_is_broken(const tessera_piece* piece) {
  return is_a(piece) != nullptr && piece->delta.broken ? 1 : 0;
}
