// What Session::verify() found.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include <tessera/kv/kv_layout.hpp>

namespace tessera {

enum class Verdict : std::int32_t {
  same = 0,          // every key, value and logit is what computing the sequence again gives, bit for bit
  differs = 1,
  unverifiable = 2,  // it cannot be computed again; `what` says why
};

struct Verification {
  Verdict verdict = Verdict::same;
  std::string what;  // in words; empty for `same`

  // The first difference: the lowest layer, in it the lowest KV head, in it the lowest position, the key before the
  // value. What is wrong in a layer spoils later positions of higher layers alone: so this is where the damage began.
  std::uint32_t layer = 0;
  std::uint32_t head = 0;
  std::uint64_t position = 0;
  kv::Part part = kv::Part::key;
  bool is_state = false;         // it is a recurrent layer's state, behind `position` tokens: it has no head and no part
  std::uint64_t records = 0;     // keys and values that differ, of one head each, and states
  std::uint64_t compared = 0;    // of these, how many were compared
  bool logits_differ = false;    // those after the last token, if the session knows them
};

struct VerifyOptions {
  std::stop_token stop = {};
  std::function<bool(std::size_t done, std::size_t total)> progress = {};  // tokens computed; false cancels
};

}  // namespace tessera
