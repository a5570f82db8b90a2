// Session::verify(): computes the sequence again in a fresh contiguous cache that shares nothing, and compares keys, values and states.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <utility>

#include <tessera/extend/kv/layer_on_host.hpp>
#include <tessera/verification.hpp>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "engine/load/kv_setup.hpp"
#include "engine/run/append.hpp"
#include "engine/session/edit.hpp"
#include "engine/states.hpp"
#include "kv/kept_states.hpp"

namespace tessera {

using detail::guard;

namespace {

std::string why_unverifiable(const Session::State& s) {
  if (!s.shared->backend->invariant()) {
    return fmt::format("numerics \"{}\" of the {} backend: a token's bits depend on how many tokens were computed with it",
                       to_string(s.shared->options.numerics), s.shared->backend->name());
  }
  if (s.shared->model.spec.sight == Sight::both_sides) {
    return fmt::format("the model ({}) reads a text as a whole, and its sessions do not keep what that needs", s.shared->model.spec.architecture);
  }
  if (s.last_layer != 0 && (s.first_layer != 0 || s.last_layer != s.shared->model.spec.n_layers())) {
    return fmt::format("the session holds layers {} to {} alone", s.first_layer, s.last_layer);
  }
  if (s.kv.edited() && std::ranges::any_of(s.adapters.keys(), [](const KvAdapter& adapter) { return adapter.from != 0; })) {
    return "the session was edited, and its adapters begin within its tokens";
  }
  if (s.kv.edited() && !s.history.replayable) {
    return "the session was edited, and how is not known (converted from another type, restored from another backend, too long, or "
           "of a range of layers)";
  }
  return {};
}

// Returns the inputs that verify() computes again in a fresh session, to compare the bits: the computed tokens of session `s`. Exception:
// if the session was edited, returns all tokens of its history, because verify() also repeats the edits.
KvInputs computed_inputs(const Session::State& s) {
  if (s.kv.edited()) return {s.history.tokens, s.history.contents};
  return s.inputs().first(s.kv.length());
}

// Finds the embeddings with these contents (hashes) among `rows` [n, d_model], the embeddings that the caller of verify() gives. Returns
// a pointer for each content: to the embedding's values, or nullptr if `rows` does not have the embedding.
std::vector<const float*> find_embeddings(std::span<const Hash128> contents, std::span<const float> rows, std::size_t d_model) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, const float*> given;
  if (!contents.empty()) {
    for (; !rows.empty(); rows = rows.subspan(d_model)) {
      const Hash128 content = content_hash(rows.first(d_model));
      given[{content.high, content.low}] = rows.data();
    }
  }
  std::vector<const float*> found;
  found.reserve(contents.size());
  for (const Hash128& content : contents) {
    const auto at = given.find({content.high, content.low});
    found.push_back(at != given.end() ? at->second : nullptr);
  }
  return found;
}

// Computes the session's inputs in the session `fresh`. If the session was edited, repeats its edits at the same points.
Status replay(const Session::State& s, Session::State& fresh, const VerifyOptions& options, std::span<const float* const> embeddings) {
  const std::span<const Token> tokens = computed_inputs(s).tokens;
  std::size_t done = 0;
  AppendOptions append{.stop = options.stop};
  if (options.progress) {
    append.progress = [&](std::size_t part, std::size_t) { return options.progress(done + part, tokens.size()); };
  }
  const auto advance = [&](std::size_t to) -> Status {
    if (to == done) return {};
    const auto part = tokens.subspan(done, to - done);
    TESSERA_TRY_STATUS(detail::append(fresh, part, append, embeddings));
    embeddings = embeddings.subspan(static_cast<std::size_t>(std::ranges::count_if(part, [](Token token) { return token < 0; })));
    done = to;
    return {};
  };
  if (s.kv.edited()) {
    const std::span<const detail::History::Removal> removals = s.history.removals;
    for (std::size_t i = 0, end = 0; i < removals.size(); i = end) {
      TESSERA_TRY_STATUS(advance(removals[i].computed));
      for (end = i + 1; end < removals.size() && removals[end].joins;) ++end;
      if (end == i + 1) {
        TESSERA_TRY_STATUS(detail::remove(fresh, removals[i].first, removals[i].last));
        continue;
      }
      std::vector<kv::TokenRun> runs;
      for (const detail::History::Removal& run : removals.subspan(i, end - i)) runs.push_back({run.first, run.last});
      TESSERA_TRY_STATUS(detail::remove(fresh, runs));
    }
  }
  return advance(tokens.size());
}

// The keys and values of one layer in the session and in its replay, and the positions [first, length) that are compared.
struct Compared {
  kv::LayerOnHost session, replay;
  std::uint64_t first, length;
};

// Compares the keys (or the values, as `part` says) of one head in the session and in its replay, byte by byte, for the positions from
// `first` up to, but not including, `length`. A record is the bytes of one position. Returns the first position whose records differ;
// `length` if none differ. Adds the number of compared records to `found.compared`, and the number of different records to
// `found.records`.
std::uint64_t compare(const Compared& in, kv::KeyOrValue part, std::size_t head, Verification& found) {
  std::array<std::byte, kMaxHeadDim * sizeof(float)> left, right;
  const kv::HeadPart mine = in.session.head(part, head), other = in.replay.head(part, head);
  const KvView view = in.session.view(), other_view = in.replay.view();
  const std::uint64_t bytes = kv::record_bytes(*view.layout, mine);
  std::uint64_t at = in.length;
  for (std::uint64_t position = in.first; position < in.length; ++position) {
    kv::read_records(view, mine, position, position + 1, left.data());
    kv::read_records(other_view, other, position, position + 1, right.data());
    ++found.compared;
    if (std::memcmp(left.data(), right.data(), bytes) == 0) continue;
    ++found.records;
    at = std::min(at, position);
  }
  return at;
}

Status compare_layers(const KvCache& a, const KvCache& b, Memory& host, Verification& found) {
  const std::uint64_t length = a.length();
  for (std::uint32_t layer = 0; layer < a.layout().layers.size(); ++layer) {
    if (!a.layout().is_first_at_its_place(layer)) continue;
    if (a.layout().group_of(layer).is_recurrent()) {
      if (length == 0) continue;
      ++found.compared;
      const std::uint64_t bytes = detail::whole_layout(a).layer(layer).shape.state_bytes;
      TESSERA_TRY(Buffer states, Buffer::allocate(host, 2 * bytes, "two states of a recurrent layer"));
      const std::span<std::byte> mine = states.bytes().first(bytes), other = states.bytes().subspan(bytes, bytes);
      TESSERA_TRY_STATUS(detail::read_state(a, layer, length, mine));
      TESSERA_TRY_STATUS(detail::read_state(b, layer, length, other));
      if (std::memcmp(mine.data(), other.data(), bytes) == 0) continue;
      if (found.records++ > 0) continue;
      found.layer = layer;
      found.position = length;
      found.is_state = true;
      continue;
    }
    const std::uint64_t first = std::max(a.first_of_layer(layer), b.first_of_layer(layer));
    TESSERA_TRY(auto mine, kv::LayerOnHost::read(a, layer, first, length, host));
    TESSERA_TRY(auto other, kv::LayerOnHost::read(b, layer, first, length, host));
    const Compared in{std::move(mine), std::move(other), first, length};
    const KvLayerShape& shape = detail::whole_layout(a).layer(layer).shape;
    for (std::uint32_t head = 0; head < shape.kv_heads; ++head) {
      const bool before = found.records > 0;
      const auto key = compare(in, kv::KeyOrValue::key, head, found);
      const auto value = shape.parts().size() == 1 ? length : compare(in, kv::KeyOrValue::value, head, found);
      if (before || std::min(key, value) == length) continue;
      found.layer = layer;
      found.head = head;
      found.position = std::min(key, value);
      found.part = key <= value ? kv::KeyOrValue::key : kv::KeyOrValue::value;
    }
  }
  return {};
}

}  // namespace

Result<Verification> Session::verify(const VerifyOptions& options) const noexcept {
  return guard([&]() -> Result<Verification> {
    if (state_ == nullptr) return detail::empty_handle("Session");
    const detail::Reading use(*state_->use);
    TESSERA_TRY_STATUS(use.status());
    const State& s = *state_;
    if (s.kv.suspended()) return detail::suspended_error();
    Verification found;
    if (found.what = why_unverifiable(s); !found.what.empty()) {
      found.verdict = Verdict::unverifiable;
      return found;
    }
    const std::size_t d_model = s.shared->model.spec.d_model;
    if (options.embeddings.size() % d_model != 0) {
      return detail::make_error(ErrorCode::invalid_argument, "{} values are not rows of {}, the width of the model's embeddings",
                                options.embeddings.size(), d_model);
    }
    const std::span<const Hash128> contents = computed_inputs(s).contents;
    std::vector<const float*> embeddings = find_embeddings(contents, options.embeddings, d_model);
    for (std::size_t i = 0; i < contents.size(); ++i) {
      if (embeddings[i] == nullptr) embeddings[i] = detail::find_embedding(s, contents[i]);
    }
    if (const auto missing = std::ranges::count(embeddings, nullptr); missing > 0) {
      found.verdict = Verdict::unverifiable;
      found.what = fmt::format("the session has {} embeddings, and {} of them are not among those that were given; it keeps their hashes "
                               "alone", embeddings.size(), missing);
      return found;
    }
    KvOptions kv_options = s.kv_options;
    kv_options.kind = KvKind::contiguous;
    kv_options.prefix = PrefixReuse::off;
    kv_options.budget = {.tokens = kNoTokenBudget};
    // If the session was edited, the fresh session repeats the edits, and needs all pages that the edits move, also pages that a window
    // has passed. Only the cache of a stream keeps such pages, so the fresh session is made as a stream. A stream removes tokens by itself,
    // which the fresh session must not do, so its stream options are cleared below.
    const StreamOptions keeps_all{.sinks = 0, .window = s.kv.edited() ? 1u : 0u};
    TESSERA_TRY(Session fresh,
                s.engine.session({.kv = kv_options, .context = static_cast<std::uint32_t>(s.kv.capacity()), .stream = keeps_all}));
    fresh.state_->stream = {};
    fresh.state_->adapters = s.adapters;
    TESSERA_TRY_STATUS(replay(s, *fresh.state_, options, embeddings));
    if (fresh.position() != s.kv.length()) {
      return detail::make_error(ErrorCode::internal, "a replay of {} tokens gave {}", s.kv.length(), fresh.position());
    }
    TESSERA_TRY_STATUS(compare_layers(s.kv, fresh.kv(), *s.shared->options.memory, found));
    if (s.knows_logits()) {
      const auto mine = s.last_logits(), other = fresh.logits();
      found.logits_differ = mine.size() != other.size() || std::memcmp(mine.data(), other.data(), mine.size_bytes()) != 0;
    }
    if (found.records == 0 && !found.logits_differ) return found;
    found.verdict = Verdict::differs;
    found.what = found.is_state
                     ? fmt::format("{} of {} keys, values and states differ, first the state of layer {} behind token {}", found.records,
                                   found.compared, found.layer, found.position)
                 : found.records == 0
                     ? "the logits after the last token differ; all keys and values are the same"
                     : fmt::format("{} of {} keys and values differ, first layer {}, head {}, position {}: the {}", found.records,
                                   found.compared, found.layer, found.head, found.position,
                                   found.part == kv::KeyOrValue::key ? "key" : "value");
    return found;
  }, ErrorCode::callback_failed);
}

}  // namespace tessera
