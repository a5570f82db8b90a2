// The result of Session::verify().
//
//   auto found = session.verify();
//   if (found && found->verdict != tessera::Verdict::same) std::puts(found->what.c_str());
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <string>

#include <tessera/extend/kv/kv_layout.hpp>

namespace tessera {

// The answer of Session::verify().
enum class Verdict : std::int32_t {
  same = 0,          // every key, value and logit is the same, bit for bit, when the sequence is computed again
  differs = 1,       // a key, value, state or logit differs
  unverifiable = 2,  // the sequence cannot be computed again; `what` says why
};

// The result of Session::verify(), with the place of the first difference if there is one.
//
//   auto found = session.verify();
//   if (found && found->verdict != Verdict::same) std::fputs(found->what.c_str(), stderr);
struct Verification {
  Verdict verdict = Verdict::same;
  std::string what;  // the result in words; empty for `same`

  // Place of the first difference. Of all differences it has the lowest layer; in this layer the lowest KV head; in this head the lowest
  // position; at this position the key comes before the value. A wrong key or value can only change later positions of higher layers, so
  // the damage began at this place.
  std::uint32_t layer = 0;
  std::uint32_t head = 0;
  std::uint64_t position = 0;
  kv::KeyOrValue part = kv::KeyOrValue::key;
  bool is_state = false;         // true: the difference is in a recurrent layer's state after `position` tokens; head and part are unused
  std::uint64_t records = 0;     // number of keys, values (of one head each) and states that differ
  std::uint64_t compared = 0;    // number of keys, values and states that were compared
  bool logits_differ = false;    // true: the session has logits after the last token, and they differ
};

struct VerifyOptions {
  std::stop_token stop = {};
  // Called while tokens are computed. done: tokens computed so far; total: tokens to compute. Return false to cancel.
  std::function<bool(std::size_t done, std::size_t total)> progress = {};
  // Embeddings [n, d_model] of the session, in any order. Needed because a session keeps only content_hash() of its embeddings: verify()
  // looks for the embeddings here, then asks SessionOptions::embedding_of. If an embedding is missing, the session is unverifiable. Pass
  // each content once; for an edited session, pass also the contents that edits removed.
  std::span<const float> embeddings = {};
};

}  // namespace tessera
