// Engine::restore(): makes a session from the bytes that Session::save() wrote. Checks each section while reading it: first the checksum,
// then the contents. The caller gets a session only if all sections are correct.
#include <algorithm>
#include <cstring>

#include <tessera/extend/kv/layer_on_host.hpp>

#include "core/checked.hpp"
#include "core/empty.hpp"
#include "core/error.hpp"
#include "engine/load/kv_setup.hpp"
#include "engine/session/token_budget.hpp"
#include "engine/snapshot/saved_adapters.hpp"
#include "engine/snapshot/sections.hpp"
#include "engine/states.hpp"
#include "files/source_name.hpp"
#include "kv/codecs.hpp"
#include "kv/kept_states.hpp"
#include "model/draft_heads.hpp"

namespace tessera {

using detail::checked_add;
using detail::checked_multiply;
using detail::guard;

namespace {

using namespace detail::snapshot;

// Returns the error with the source's name in its place (Error::place()), unless the place already begins with that name.
Error in_source(Error error, const std::string& name) {
  if (error.place().starts_with(name)) return error;
  return {error.code(), error.message(), error.place().empty() ? name : name + ": " + error.place()};
}

template <class T>
T value_at(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <class T>
std::vector<T> values_of(std::span<const std::byte> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

// Shortens a long `text` for an error message that says how it differs from `other`: returns the part around the first difference.
std::string around_difference(std::string_view text, std::string_view other) {
  constexpr std::size_t kBefore = 24, kAll = 72;
  const auto same = static_cast<std::size_t>(std::ranges::mismatch(text, other).in1 - text.begin());
  const std::size_t from = text.size() <= kAll || same <= kBefore ? 0 : same - kBefore;
  return fmt::format("{}{}", from > 0 ? "..." : "", detail::printable(text.substr(from), kAll));
}

// Says whether the saved session was computed by this engine's backend or by another. A session of another backend can be restored,
// although this backend would have computed other bits: it is marked as edited.
enum class SavedBy : std::uint8_t { this_backend, another };

Error differs(const std::string& place, const char* what, std::string_view saved, std::string_view here,
              const char* hint = "") {
  return detail::error_at(ErrorCode::invalid_argument, place,
                          "the session was saved with {}: \"{}\", and the engine has \"{}\"{}", what,
                          around_difference(saved, here), around_difference(here, saved), hint);
}

// Compares two texts line by line, and returns the first two lines that differ.
std::pair<std::string_view, std::string_view> first_other_line(std::string_view a, std::string_view b) {
  const auto line = [](std::string_view text) { return text.substr(0, text.find('\n')); };
  while (line(a) == line(b) && line(a).size() < a.size() && line(b).size() < b.size()) {
    a.remove_prefix(line(a).size() + 1);
    b.remove_prefix(line(b).size() + 1);
  }
  return {line(a), line(b)};
}

// The numerics (a text of numerics_of()) that the model section of a saved session states, and the section's place in the file, for error
// messages. check_numerics() compares them with the engine's numerics later, when the KV types of the session are known.
struct SavedNumerics {
  std::string text, place;
};

// Reads the model section, and checks that it describes this engine's model.
Result<SavedNumerics> check_model(SectionReader& in, const detail::Identity& engine) {
  TESSERA_TRY(const std::vector<std::byte> payload, in.whole_up_to(SectionType::model, kMaxModelBytes));
  std::span<const std::byte> rest = payload;
  std::array<std::string_view, kFingerprintTexts> saved;
  for (std::string_view& text : saved) {
    if (rest.size() < sizeof(std::uint32_t)) return in.corrupt("the section ends before its strings do");
    const auto size = value_at<std::uint32_t>(rest, 0);
    rest = rest.subspan(sizeof size);
    if (size > rest.size()) return in.corrupt("a string of {} bytes, and {} are left", size, rest.size());
    text = {reinterpret_cast<const char*>(rest.data()), size};
    rest = rest.subspan(size);
  }
  if (!rest.empty()) return in.corrupt("{} bytes follow the section's strings", rest.size());
  const auto& [model, numerics, spec] = saved;
  if (model != engine.model) return differs(in.place(), "another model", model, engine.model);
  if (spec != engine.spec) {
    const auto [there, here] = first_other_line(spec, engine.spec);
    return differs(in.place(), "other settings of the model", there, here);
  }
  return SavedNumerics{std::string(numerics), in.place()};
}

Result<SavedBy> check_numerics(const SavedNumerics& saved, const detail::Identity& engine, const KvOptions& kv) {
  const std::string here = detail::numerics_of(engine, kv);
  if (saved.text == here) return SavedBy::this_backend;
  if (detail::backend_of(saved.text) != detail::backend_of(here)) return SavedBy::another;
  return differs(saved.place, "other numerics", saved.text, here,
                 ". It goes on in an engine with the numerics that it was saved with");
}

std::string text_of(const WideLayers& wide) {
  if (wide.dtype == DType::automatic) return "one type";
  return fmt::format("type {} in the first {} and last {} layers", to_string(wide.dtype), wide.first, wide.last);
}

// The contents of the state section.
struct SavedSession : SavedState {
  std::vector<SavedLayer> of_layers;  // all layers of the cache
  std::uint32_t end = 0;              // the session fills the cache's layers [first_layer, end); see end_of_kept()

  // Returns the KV types as options.
  [[nodiscard]] KvOptions kv() const {
    return {.dtype = static_cast<DType>(kv_type), .page_tokens = kDefaultPageTokens,
            .wide = {.dtype = static_cast<DType>(wide_type), .first = wide_first, .last = wide_last}};
  }
  [[nodiscard]] bool passed_tokens() const { return first_held() > 0; }
  // Returns the first position whose keys and values were saved for all layers.
  [[nodiscard]] std::uint64_t first_held() const {
    return of_layers.empty() ? 0 : std::ranges::max_element(of_layers, {}, &SavedLayer::first)->first;
  }
  // Returns whether the layer has a section of its own. A layer that shares an earlier layer's keys and values has none.
  [[nodiscard]] bool has_section(std::size_t layer) const {
    for (std::size_t i = first_layer; i < layer; ++i) {
      if (of_layers[i].shares == of_layers[layer].shares) return false;
    }
    return true;
  }
};

Status check_layers(const SectionReader& in, const SavedSession& saved, const KvLayout& layout) {
  for (std::size_t i = 0; i < saved.of_layers.size(); ++i) {
    const SavedLayer& layer = saved.of_layers[i];
    const KvLayerShape& of_model = layout.layer(i).shape;
    if (layer.kv_heads != of_model.kv_heads || layer.key_dim != of_model.key_dim || layer.value_dim != of_model.own_value_dim()) {
      return in.corrupt("layer {} has {} KV heads of {} and {}; the model's has {} of {} and {}", i, layer.kv_heads,
                        layer.key_dim, layer.value_dim, of_model.kv_heads, of_model.key_dim, of_model.own_value_dim());
    }
    if (layer.first > saved.length) {
      return in.corrupt("layer {} has keys and values of tokens {} to {}", i, layer.first, saved.length);
    }
  }
  return {};
}

// Checks that the rest of the file is long enough for the stated numbers of tokens, keys and values. This check comes first, so that no
// memory is allocated for lengths that the file only claims.
Status check_lengths(const SectionReader& in, const SavedSession& saved, const KvLayout& layout) {
  std::optional<std::uint64_t> bytes = checked_multiply(saved.tokens, sizeof(Token));
  for (std::size_t i = saved.first_layer; i < saved.end; ++i) {
    if (!saved.has_section(i)) continue;
    const SavedLayer& layer = saved.of_layers[i];
    const DType type = layout.layer(i).dtype;
    const std::uint64_t value = layer.value_dim != 0 ? kv::record_bytes(type, kv::KeyOrValue::value, layer.value_dim) : 0;
    const std::uint64_t record = layer.kv_heads * (kv::record_bytes(type, kv::KeyOrValue::key, layer.key_dim) + value);
    const std::uint64_t state = saved.length > 0 ? layout.layer(i).shape.state_bytes : 0;
    const auto records = state != 0 ? state : checked_multiply(saved.length - layer.first, record);
    bytes = bytes && records ? checked_add(*bytes, *records) : std::nullopt;
  }
  if (bytes && *bytes <= in.remaining()) return {};
  return in.corrupt("{} tokens, and keys and values of {}, do not fit into the {} bytes that follow", saved.tokens,
                    saved.length, in.remaining());
}

// Reads the state section. Checks that its fields agree with each other and with the model.
Result<SavedSession> read_state(SectionReader& in, const ModelSpec& spec) {
  const std::uint32_t layers = spec.n_layers();
  const std::size_t n = detail::end_of_kept(spec, 0, layers);
  TESSERA_TRY(const std::vector<std::byte> payload,
              in.whole(SectionType::state, sizeof(SavedState) + n * sizeof(SavedLayer)));
  SavedSession state{value_at<SavedState>(payload, 0), values_of<SavedLayer>(std::span(payload).subspan(sizeof(SavedState)))};
  state.end = detail::end_of_kept(spec, state.first_layer, state.last_layer);
  if (state.layers != n || state.vocab != spec.vocab_size) {
    return in.corrupt("{} layers and a vocabulary of {}; the model has {} and {}", state.layers, state.vocab, n,
                      spec.vocab_size);
  }
  if ((state.flags & ~(kEdited | kHasLogits | kHasVotes | kHasAdapters)) != 0) {
    return in.error(ErrorCode::unsupported, "the session has flags that this library does not know");
  }
  const bool is_wide = static_cast<DType>(state.wide_type) != DType::automatic;
  for (const std::uint32_t type : {state.kv_type, is_wide ? state.wide_type : state.kv_type}) {
    if (kv::is_kv_type(static_cast<DType>(type))) continue;
    return in.error(ErrorCode::unsupported, "keys and values of type {}, which this version of the library does not know", type);
  }
  if (detail::wide_layers(state.kv()) != state.kv().wide || state.reserved != 0) {
    return in.corrupt("{} as a KV type of some layers", text_of(state.kv().wide));
  }
  if (state.length > state.tokens) return in.corrupt("keys and values of {} tokens, of {}", state.length, state.tokens);
  const auto layout = detail::kv_layout(spec, state.kv());
  if (!layout && is_wide && layout.error().code() == ErrorCode::invalid_argument) return in.corrupt("{}", layout.error().message());
  if (!layout) return layout.error();
  TESSERA_TRY_STATUS(check_layers(in, state, *layout));
  const bool began = state.last_layer != 0;
  const bool layers_fit = began ? state.first_layer < state.last_layer && state.last_layer <= layers : state.first_layer == 0;
  if (began != (state.tokens > 0) || !layers_fit) {
    return in.corrupt("{} tokens in layers {} to {} of {}", state.tokens, state.first_layer, state.last_layer, layers);
  }
  if ((state.flags & kHasLogits) != 0 && (state.length == 0 || state.length != state.tokens || state.last_layer != layers)) {
    return in.corrupt("logits of a last token that has not been computed");
  }
  if ((state.flags & kEdited) != 0 && state.length == 0) return in.corrupt("an edited session without keys and values");
  TESSERA_TRY_STATUS(check_lengths(in, state, *layout));
  return state;
}

// Returns options for a session that can hold the saved session: the caller's options, completed by the saved options.
Result<SessionOptions> options_for(const SectionReader& in, const SavedSession& saved, const SessionOptions& given,
                                   std::uint32_t engine_context) {
  SessionOptions options = given;
  const KvOptions types = saved.kv();
  if (options.kv.dtype != DType::automatic && options.kv.dtype != types.dtype) {
    return in.error(ErrorCode::invalid_argument,
                    "the session was saved with keys and values of type {}, not {}: restore it in that type, and convert() it",
                    to_string(types.dtype), to_string(options.kv.dtype));
  }
  if (options.kv.wide.dtype != DType::automatic &&
      detail::wide_layers({.dtype = types.dtype, .wide = options.kv.wide}) != types.wide) {
    return in.error(ErrorCode::invalid_argument,
                    "the session was saved with keys and values of {}, not {}: restore it so, and convert() it", text_of(types.wide),
                    text_of(options.kv.wide));
  }
  options.kv.dtype = types.dtype;
  options.kv.wide = types.wide;
  const std::uint64_t context = options.context == 0 ? engine_context : options.context;
  // A full session may have one pending token more than the context.
  const std::uint64_t least = std::max(saved.length, saved.tokens - std::min<std::uint64_t>(saved.tokens, 1));
  if (least > context) {
    return in.error(ErrorCode::invalid_argument,
                    "the saved session has {} tokens, and the context to restore it into has room for {}: give a context of "
                    "{} or more",
                    saved.tokens, context, least);
  }
  if (saved.passed_tokens() && options.stream.window != 0) {
    return in.error(ErrorCode::invalid_argument,
                    "a sliding window of the model has passed the first tokens of the saved session, and a stream keeps what "
                    "its cuts may need: restore it without a stream");
  }
  return options;
}

Status check_tokens(const SectionReader& in, std::span<const Token> tokens, std::uint32_t vocab) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= -1 && (tokens[i] < 0 || static_cast<std::uint32_t>(tokens[i]) < vocab)) continue;
    return in.corrupt("token {} is {}; the vocabulary has {}", i, tokens[i], vocab);
  }
  return {};
}

// Reads the tokens.
Result<std::vector<Token>> read_tokens(SectionReader& in, const SavedState& saved) {
  TESSERA_TRY(const std::vector<std::byte> payload, in.whole(SectionType::tokens, saved.tokens * sizeof(Token)));
  std::vector<Token> tokens = values_of<Token>(payload);
  TESSERA_TRY_STATUS(check_tokens(in, tokens, saved.vocab));
  return tokens;
}

// Returns the bytes in the file of the contents (hashes) of all embeddings among `tokens`.
std::uint64_t content_bytes(std::span<const Token> tokens) {
  return static_cast<std::uint64_t>(std::ranges::count_if(tokens, [](Token token) { return token < 0; })) * sizeof(Hash128);
}

// Reads the contents (content_hash()) of the embeddings among `tokens`.
Result<std::vector<Hash128>> read_contents(SectionReader& in, std::span<const Token> tokens) {
  if (content_bytes(tokens) == 0) return std::vector<Hash128>();
  TESSERA_TRY(const std::vector<std::byte> payload, in.whole(SectionType::contents, content_bytes(tokens)));
  return values_of<Hash128>(payload);
}

// Reads the history. Checks that its removals are possible one after another, and that saved.length tokens remain.
Result<detail::History> read_history(SectionReader& in, const SavedState& saved) {
  TESSERA_TRY(const std::vector<std::byte> payload, in.whole_up_to(SectionType::history, in.remaining()));
  if (payload.size() < sizeof(SavedHistory)) return in.corrupt("the section has {} bytes", payload.size());
  const auto head = value_at<SavedHistory>(payload, 0);
  const std::span<const std::byte> rest = std::span(payload).subspan(sizeof(SavedHistory));
  const auto token_bytes = checked_multiply(head.tokens, sizeof(Token));
  const auto removal_bytes = checked_multiply(head.removals, sizeof(SavedRemoval));
  const auto bytes = token_bytes && removal_bytes ? checked_add(*token_bytes, *removal_bytes) : std::nullopt;
  const auto wrong = [&] { return in.corrupt("{} tokens and {} removals in {} bytes", head.tokens, head.removals, rest.size()); };
  if (!bytes || *bytes > rest.size() || head.replayable > 1 || head.reserved != 0) return wrong();
  const std::span<const std::byte> contents = rest.subspan(*bytes);
  detail::History history{.tokens = values_of<Token>(rest.first(*token_bytes)),
                          .contents = values_of<Hash128>(contents),
                          .removals = {},
                          .replayable = head.replayable == 1};
  TESSERA_TRY_STATUS(check_tokens(in, history.tokens, saved.vocab));
  // A history that cannot be replayed has no contents of embeddings. It may have tokens, but they are not used.
  if (contents.size() != (history.replayable ? content_bytes(history.tokens) : 0)) return wrong();
  history.removals.reserve(head.removals);
  std::uint64_t before = 0, removed = 0;
  std::uint64_t removed_before = 0, end = 0;  // tokens removed by earlier edits, and the end of the current edit's last run
  for (const SavedRemoval& removal : values_of<SavedRemoval>(rest.subspan(*token_bytes, *removal_bytes))) {
    const auto [computed, first, last, joins] = removal;
    if (joins == 0) removed_before = removed, end = 0;
    const bool can_join = joins == 0 || (joins == 1 && !history.removals.empty() && computed == before && first > end);
    if (!can_join || computed < before || computed > head.tokens || first >= last || last > computed - removed_before ||
        (joins == 1 && last == computed - removed_before)) {
      return in.corrupt("tokens {} to {} were removed after {} of {}, which cannot be", first, last, computed, head.tokens);
    }
    before = computed;
    end = last;
    removed += last - first;
    history.removals.push_back({.computed = computed, .first = first, .last = last, .joins = joins == 1});
  }
  if (!history.replayable) return detail::History{.tokens = {}, .contents = {}, .removals = {}, .replayable = false};
  if (head.tokens - removed != saved.length) {
    return in.corrupt("{} tokens less {} removed ones are not {}", head.tokens, removed, saved.length);
  }
  return history;
}

Result<detail::Votes> read_votes(SectionReader& in, const SavedState& saved) {
  TESSERA_TRY(const std::vector<std::byte> payload, in.whole_up_to(SectionType::votes, in.remaining()));
  constexpr std::uint64_t kEach = sizeof(std::uint64_t);
  if (payload.size() % kEach != 0 || payload.empty() || payload.size() / kEach - 1 > saved.length) {
    return in.corrupt("votes of {} bytes for {} tokens", payload.size(), saved.length);
  }
  detail::Votes votes{.of_tokens = values_of<std::uint64_t>(std::span(payload).subspan(kEach)),
                      .open = {},
                      .voted = value_at<std::uint64_t>(payload, 0)};
  const bool any_large = std::ranges::any_of(votes.of_tokens, [](std::uint64_t n) { return n >> 62 != 0; });
  if (votes.voted == 0 || votes.voted > saved.removed + saved.length || any_large) return in.corrupt("these votes cannot be");
  return votes;
}

bool is_first_of_group(const KvLayout& layout, std::size_t layer) {
  const auto group = layout.layers[layer].group;
  return std::ranges::find(layout.layers, group, &KvPlace::group) - layout.layers.begin() == static_cast<std::ptrdiff_t>(layer);
}

// Reserves the cache's pages and states for the saved keys and values.
Status make_room(const SectionReader& in, const SavedSession& saved, SavedBy by, KvCache& kv) {
  const KvLayout& layout = kv.layout();
  // If another backend has saved the session, this backend would compute other bits. Such a session is marked as edited, and its pages do
  // not enter the prefix index.
  const bool edited = (saved.flags & kEdited) != 0 || (by == SavedBy::another && saved.length > 0);
  KvExtent extent{.length = saved.length, .first = std::vector<std::uint64_t>(layout.groups.size(), 0), .edited = edited};
  for (std::size_t i = 0; i < layout.layers.size(); ++i) {
    const SavedLayer& layer = saved.of_layers[i];
    if (layer.shares != layout.first_layer_at(layout.layers[i])) {
      return in.corrupt("layer {} shares the keys and values of layer {}; the model's those of {}", i, layer.shares,
                        layout.first_layer_at(layout.layers[i]));
    }
    std::uint64_t& first = extent.first[layout.layers[i].group];
    if (i > 0 && first != layer.first && !is_first_of_group(layout, i)) {
      return in.corrupt("layer {} has keys and values from token {} on, and another layer with its window from {} on", i,
                        layer.first, first);
    }
    first = layer.first;
  }
  if (layout.has_state() && saved.length > 0) extent.states.push_back(saved.length);
  Status done = kv.install(extent);
  // If install() returns invalid_argument, no cache of this model can have these sizes, so the file is corrupt. Any other error (no
  // memory) is not the file's fault, and is returned as it is.
  if (!done && done.error().code() == ErrorCode::invalid_argument) return in.corrupt("{}", done.error().message());
  return done;
}

Status read_layer(SectionReader& in, const KvCache& kv, std::size_t layer, Memory& host) {
  TESSERA_TRY_STATUS(in.open(SectionType::layer));
  if (const std::uint64_t bytes = detail::whole_layout(kv).layer(layer).shape.state_bytes; bytes != 0) {
    for (std::uint64_t at = 0; at < bytes && kv.length() > 0;) {
      TESSERA_TRY(const auto piece, in.records(1, bytes - at));
      TESSERA_TRY_STATUS(detail::write_state(kv, layer, kv.length(), piece, at));
      at += piece.size();
    }
    return in.close();
  }
  const std::uint64_t first = kv.first_of_layer(layer);
  TESSERA_TRY(const auto to, kv::LayerOnHost::blank(kv, layer, first, kv.length(), host));
  const KvLayerShape& shape = detail::whole_layout(kv).layer(layer).shape;
  for (const kv::KeyOrValue part : shape.parts()) {
    for (std::size_t head = 0; head < shape.kv_heads; ++head) {
      const kv::HeadPart of = to.head(part, head);
      const std::uint64_t bytes = kv::record_bytes(*to.view().layout, of);
      for (std::uint64_t position = first; position < kv.length();) {
        TESSERA_TRY(const auto records, in.records(bytes, kv.length() - position));
        const std::uint64_t n = records.size() / bytes;
        kv::write_records(to.view(), of, position, position + n, records.data());
        position += n;
      }
    }
  }
  TESSERA_TRY_STATUS(to.write_back());
  return in.close();
}

// Reads all sections after the state section into the session `to`.
Status read_session(SectionReader& in, const SavedSession& saved, SavedBy by, Session::State& to) {
  TESSERA_TRY_STATUS(make_room(in, saved, by, to.kv));
  TESSERA_TRY(to.tokens, read_tokens(in, saved));
  TESSERA_TRY(to.contents, read_contents(in, to.tokens));
  if ((saved.flags & kHasAdapters) != 0) {
    TESSERA_TRY(to.adapters, read_adapters(in, to.shared->adapters));
  }
  if ((saved.flags & kHasLogits) != 0) {
    TESSERA_TRY_STATUS(to.logits.ensure(*to.shared->options.memory, 1, to.vocab()));
    const std::span<float> row = to.logits.values().first(to.vocab());
    TESSERA_TRY(const std::vector<std::byte> payload, in.whole(SectionType::logits, row.size_bytes()));
    std::memcpy(row.data(), payload.data(), payload.size());
    to.logits_rows = 1;
    to.has_last = true;
  }
  if ((saved.flags & kEdited) != 0) {
    TESSERA_TRY(to.history, read_history(in, saved));
  }
  if ((saved.flags & kHasVotes) != 0) {
    TESSERA_TRY(detail::Votes votes, read_votes(in, saved));
    if (counts_attention(to.kv_options.budget)) to.votes = std::move(votes);
  }
  if (by == SavedBy::another && to.kv.edited()) to.history.give_up();
  to.removed = saved.removed;
  to.first_layer = saved.first_layer;
  to.last_layer = saved.last_layer;
  for (std::size_t layer = saved.first_layer; layer < saved.end; ++layer) {
    if (saved.has_section(layer)) TESSERA_TRY_STATUS(read_layer(in, to.kv, layer, *to.shared->options.memory));
  }
  TESSERA_TRY_STATUS(in.finish());
  const bool whole = saved.first_layer == 0 && saved.last_layer == to.shared->model.spec.n_layers();
  to.kv.commit(saved.length, whole ? to.inputs() : KvInputs());
  return {};
}

}  // namespace

Result<Session> Engine::restore(const std::shared_ptr<ByteSource>& source, const SessionOptions& given) const noexcept {
  return guard([&]() -> Result<Session> {
    if (state_ == nullptr) return detail::empty_handle("Engine");
    if (source == nullptr) return detail::make_error(ErrorCode::invalid_argument, "there is no source to restore from");
    const std::string name = detail::name_of(*source);
    auto restored = [&]() -> Result<Session> {
      TESSERA_TRY(Buffer buffer, Buffer::allocate(*state_->options.memory, kChunkBytes, "restoring a session"));
      SectionReader in(*source, name, buffer.bytes());
      TESSERA_TRY_STATUS(in.begin());
      TESSERA_TRY(const SavedNumerics numerics, check_model(in, state_->identity));
      TESSERA_TRY(const SavedSession saved, read_state(in, state_->model.spec));
      TESSERA_TRY(const SavedBy by, check_numerics(numerics, state_->identity, saved.kv()));
      TESSERA_TRY(SessionOptions options, options_for(in, saved, given, state_->plan.context));
      options.adapters.clear();
      TESSERA_TRY(Session to, session(options));
      TESSERA_TRY_STATUS(detail::check_held(to.budget(), to.kv().layout(), saved.first_held()));
      TESSERA_TRY_STATUS(read_session(in, saved, by, *to.state_));
      if (!given.adapters.empty()) TESSERA_TRY_STATUS(to.use_adapters(given.adapters));
      return to;
    }();
    if (!restored) return in_source(std::move(restored).error(), name);
    return restored;
  }, ErrorCode::callback_failed);
}

Result<Session> Engine::restore(const std::filesystem::path& path, const SessionOptions& options) const noexcept {
  if (state_ == nullptr) return detail::empty_handle("Engine");
  TESSERA_TRY(const auto source, open_file(path));
  return restore(source, options);
}

Result<Session> Engine::restore(std::span<const std::byte> bytes, const SessionOptions& options) const noexcept {
  if (state_ == nullptr) return detail::empty_handle("Engine");
  TESSERA_TRY(const auto source, memory_source(bytes));
  return restore(source, options);
}

}  // namespace tessera
