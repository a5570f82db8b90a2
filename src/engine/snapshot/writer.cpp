// Session::save(): writes the session's sections one after another, through one buffer.
#include <algorithm>
#include <cstring>

#include <tessera/extend/kv/layer_on_host.hpp>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "engine/load/kv_setup.hpp"
#include "engine/snapshot/format.hpp"
#include "engine/states.hpp"
#include "files/replacement_file.hpp"
#include "kv/codecs.hpp"
#include "kv/kept_states.hpp"
#include "model/draft_heads.hpp"

namespace tessera {

using detail::guard;
using detail::Hasher64;
using detail::make_error;

namespace {

using namespace detail::snapshot;

struct Section {
  SectionType type;
  std::uint64_t length;  // bytes of the payload
};

// Collects the file's bytes in a buffer, passes the buffer to the sink whenever it is full, and computes the checksums.
class Writer {
 public:
  Writer(const ByteSink& sink, std::span<std::byte> buffer) noexcept : sink_(sink), buffer_(buffer) {}

  Status header(std::span<const Section> parts) {
    Header header{.file_bytes = sizeof(Header), .sections = static_cast<std::uint32_t>(parts.size())};
    for (const Section& part : parts) header.file_bytes += kSectionOverhead + part.length;
    header.checksum = checksum_of(header);
    seal_.add(bytes_of(header));
    return raw(bytes_of(header));
  }

  Status begin(const Section& part) {
    SectionHeader header{.type = part.type, .length = part.length};
    header.checksum = checksum_of(header);
    payload_ = Hasher64();
    left_ = part.length;
    if (part.type != SectionType::seal) seal_.add(bytes_of(header));
    return raw(bytes_of(header));
  }

  Status put(std::span<const std::byte> bytes) {
    payload_.add(bytes);
    left_ -= bytes.size();
    return raw(bytes);
  }

  // Returns the free end of the buffer, at least `at_least` bytes. After writing payload there, call filled().
  Result<std::span<std::byte>> room(std::size_t at_least) {
    if (buffer_.size() - used_ < at_least) TESSERA_TRY_STATUS(flush());
    return buffer_.subspan(used_);
  }
  // Adds the first `bytes` bytes of room() to the payload.
  void filled(std::size_t bytes) {
    payload_.add(buffer_.subspan(used_, bytes));
    left_ -= bytes;
    used_ += bytes;
  }

  Status end() {
    if (left_ != 0) return make_error(ErrorCode::internal, "a section of a saved session has another length than it says");
    const std::uint64_t checksum = payload_.digest();
    seal_.add(bytes_of(checksum));
    return raw(bytes_of(checksum));
  }

  [[nodiscard]] std::uint64_t seal() const { return seal_.digest(); }

  Status flush() {
    if (used_ == 0) return {};
    return guard([&] { return sink_(buffer_.first(std::exchange(used_, 0))); }, ErrorCode::callback_failed);
  }

 private:
  Status raw(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      if (used_ == buffer_.size()) TESSERA_TRY_STATUS(flush());
      const std::size_t n = std::min(bytes.size(), buffer_.size() - used_);
      std::memcpy(buffer_.data() + used_, bytes.data(), n);
      used_ += n;
      bytes = bytes.subspan(n);
    }
    return {};
  }

  const ByteSink& sink_;
  std::span<std::byte> buffer_;
  std::size_t used_ = 0;
  std::uint64_t left_ = 0;  // bytes of the open section's payload that were not yet written
  Hasher64 payload_, seal_;
};

std::array<std::string, kFingerprintTexts> strings_of(const Session::State& s) {
  const detail::Identity& identity = s.shared->identity;
  return {identity.model, detail::numerics_of(identity, s.kv_options), identity.spec};
}

// Returns the bytes of one layer's section: all its records or, for a recurrent layer, its state.
std::uint64_t layer_bytes(const Session::State& s, std::size_t layer) {
  const KvLayerShape& shape = detail::whole_layout(s.kv).layer(layer).shape;
  if (shape.state_bytes != 0) return s.kv.length() > 0 ? shape.state_bytes : 0;
  const DType dtype = detail::whole_layout(s.kv).layer(layer).dtype;
  std::uint64_t bytes = 0;  // bytes of a key and a value, of one token and head
  for (const kv::KeyOrValue part : shape.parts()) bytes += kv::record_bytes(dtype, part, shape.dim(part));
  return (s.kv.length() - s.kv.first_of_layer(layer)) * shape.kv_heads * bytes;
}

// Returns the layers that have a section. A layer that the session has not computed has none, because its pages hold undefined bytes.
// Layers that share keys and values have one section together.
std::vector<std::size_t> saved_layers(const Session::State& s) {
  std::vector<std::size_t> layers;
  const std::size_t end = detail::end_of_kept(s.shared->model.spec, s.first_layer, s.last_layer);
  for (std::size_t layer = s.first_layer; layer < end; ++layer) {
    if (s.kv.layout().is_first_at_its_place(layer, s.first_layer)) layers.push_back(layer);
  }
  return layers;
}

bool has_votes(const Session::State& s) { return s.votes.voted != 0; }

std::uint64_t adapter_bytes(const Session::State& s) {
  std::uint64_t bytes = 0;
  for (const auto& one : s.adapters.list()) bytes += sizeof(SavedAdapter) + one.adapter.name().size();
  return bytes;
}

std::vector<Section> parts_of(const Session::State& s) {
  std::uint64_t model = 0;
  for (const std::string& text : strings_of(s)) model += sizeof(std::uint32_t) + text.size();
  std::vector<Section> parts = {{SectionType::model, model},
                             {SectionType::state, sizeof(SavedState) + s.kv.layout().layers.size() * sizeof(SavedLayer)},
                             {SectionType::tokens, s.tokens.size() * sizeof(Token)}};
  if (!s.contents.empty()) parts.push_back({SectionType::contents, s.contents.size() * sizeof(Hash128)});
  if (!s.adapters.empty()) parts.push_back({SectionType::adapters, adapter_bytes(s)});
  if (s.knows_logits()) parts.push_back({SectionType::logits, s.vocab() * sizeof(float)});
  if (s.kv.edited()) {
    parts.push_back({SectionType::history, sizeof(SavedHistory) + s.history.tokens.size() * sizeof(Token) +
                                               s.history.removals.size() * sizeof(SavedRemoval) +
                                               s.history.contents.size() * sizeof(Hash128)});
  }
  if (has_votes(s)) parts.push_back({SectionType::votes, (1 + s.votes.of_tokens.size()) * sizeof(std::uint64_t)});
  for (const std::size_t layer : saved_layers(s)) parts.push_back({SectionType::layer, layer_bytes(s, layer)});
  parts.push_back({SectionType::seal, sizeof(std::uint64_t)});
  return parts;
}

Status put_model(Writer& out, const Session::State& s) {
  for (const std::string& text : strings_of(s)) {
    const auto size = static_cast<std::uint32_t>(text.size());
    TESSERA_TRY_STATUS(out.put(bytes_of(size)));
    TESSERA_TRY_STATUS(out.put(std::as_bytes(std::span(text))));
  }
  return {};
}

Status put_state(Writer& out, const Session::State& s) {
  const bool began = s.last_layer != 0;
  const KvLayout& layout = detail::whole_layout(s.kv);
  TESSERA_TRY_STATUS(out.put(bytes_of(SavedState{
      .tokens = s.tokens.size(),
      .length = s.kv.length(),
      .removed = s.removed,
      .kv_type = static_cast<std::uint32_t>(s.kv.dtype()),
      .vocab = static_cast<std::uint32_t>(s.vocab()),
      .layers = static_cast<std::uint32_t>(layout.layers.size()),
      .first_layer = began ? s.first_layer : 0,
      .last_layer = s.last_layer,
      .flags = (s.kv.edited() ? kEdited : 0) | (s.knows_logits() ? kHasLogits : 0) | (has_votes(s) ? kHasVotes : 0) |
               (s.adapters.empty() ? 0 : kHasAdapters),
      .wide_type = static_cast<std::uint32_t>(s.kv_options.wide.dtype),
      .wide_first = s.kv_options.wide.first,
      .wide_last = s.kv_options.wide.last,
  })));
  for (std::size_t layer = 0; layer < layout.layers.size(); ++layer) {
    const KvLayerShape& shape = layout.layer(layer).shape;
    TESSERA_TRY_STATUS(out.put(bytes_of(SavedLayer{.kv_heads = shape.kv_heads,
                                                   .key_dim = shape.key_dim,
                                                   .value_dim = shape.own_value_dim(),
                                                   .shares = static_cast<std::uint32_t>(layout.first_layer_at(layout.layers[layer])),
                                                   .first = s.kv.first_of_layer(layer)})));
  }
  return {};
}

Status put_adapters(Writer& out, const detail::SequenceAdapters& adapters) {
  for (const auto& one : adapters.list()) {
    TESSERA_TRY_STATUS(out.put(bytes_of(SavedAdapter{.content = one.adapter.content(),
                                                     .from = one.from,
                                                     .scale = std::bit_cast<std::uint32_t>(one.scale),
                                                     .waits = one.waits ? 1u : 0u,
                                                     .name_bytes = one.adapter.name().size()})));
  }
  for (const auto& one : adapters.list()) TESSERA_TRY_STATUS(out.put(std::as_bytes(std::span(one.adapter.name()))));
  return {};
}

Status put_history(Writer& out, const detail::History& history) {
  TESSERA_TRY_STATUS(out.put(bytes_of(SavedHistory{.tokens = history.tokens.size(),
                                              .removals = history.removals.size(),
                                              .replayable = history.replayable ? 1u : 0u})));
  TESSERA_TRY_STATUS(out.put(std::as_bytes(std::span(history.tokens))));
  for (const detail::History::Removal& removal : history.removals) {
    TESSERA_TRY_STATUS(
        out.put(bytes_of(SavedRemoval{.computed = removal.computed,
                                      .first = removal.first,
                                      .last = removal.last,
                                      .joins = removal.joins ? std::uint64_t{1} : std::uint64_t{0}})));
  }
  return out.put(std::as_bytes(std::span(history.contents)));
}

Status put_votes(Writer& out, const detail::Votes& votes) {
  TESSERA_TRY_STATUS(out.put(bytes_of(votes.voted)));
  return out.put(std::as_bytes(std::span(votes.of_tokens)));
}

Status put_layer(Writer& out, const KvCache& kv, std::size_t layer, Memory& host) {
  if (const std::uint64_t bytes = detail::whole_layout(kv).layer(layer).shape.state_bytes; bytes != 0) {
    if (kv.length() == 0) return {};
    TESSERA_TRY(Buffer state, Buffer::allocate(host, bytes, "a recurrent layer's state"));
    TESSERA_TRY_STATUS(detail::read_state(kv, layer, kv.length(), state.bytes().first(bytes)));
    return out.put(state.bytes().first(bytes));
  }
  const std::uint64_t first = kv.first_of_layer(layer);
  TESSERA_TRY(const auto from, kv::LayerOnHost::read(kv, layer, first, kv.length(), host));
  const KvLayerShape& shape = detail::whole_layout(kv).layer(layer).shape;
  for (const kv::KeyOrValue part : shape.parts()) {
    for (std::size_t head = 0; head < shape.kv_heads; ++head) {
      const kv::HeadPart of = from.head(part, head);
      const std::uint64_t bytes = kv::record_bytes(*from.view().layout, of);
      for (std::uint64_t position = first; position < kv.length();) {
        TESSERA_TRY(const auto room, out.room(bytes));
        const std::uint64_t n = std::min(room.size() / bytes, kv.length() - position);
        kv::read_records(from.view(), of, position, position + n, room.data());
        out.filled(n * bytes);
        position += n;
      }
    }
  }
  return {};
}

Status write_session(const Session::State& s, const ByteSink& sink) {
  if (s.kv.suspended()) return detail::suspended_error();
  Memory& host = *s.shared->options.memory;
  TESSERA_TRY(Buffer buffer, Buffer::allocate(host, kChunkBytes, "saving a session"));
  Writer out(sink, {buffer.data(), buffer.size()});
  const std::vector<Section> parts = parts_of(s);
  TESSERA_TRY_STATUS(out.header(parts));
  const std::vector<std::size_t> layers = saved_layers(s);
  auto layer = layers.begin();
  for (const Section& part : parts) {
    TESSERA_TRY_STATUS(out.begin(part));
    switch (part.type) {
      case SectionType::model: TESSERA_TRY_STATUS(put_model(out, s)); break;
      case SectionType::state: TESSERA_TRY_STATUS(put_state(out, s)); break;
      case SectionType::tokens: TESSERA_TRY_STATUS(out.put(std::as_bytes(std::span(s.tokens)))); break;
      case SectionType::contents: TESSERA_TRY_STATUS(out.put(std::as_bytes(std::span(s.contents)))); break;
      case SectionType::adapters: TESSERA_TRY_STATUS(put_adapters(out, s.adapters)); break;
      case SectionType::logits: TESSERA_TRY_STATUS(out.put(std::as_bytes(s.last_logits()))); break;
      case SectionType::history: TESSERA_TRY_STATUS(put_history(out, s.history)); break;
      case SectionType::votes: TESSERA_TRY_STATUS(put_votes(out, s.votes)); break;
      case SectionType::layer: TESSERA_TRY_STATUS(put_layer(out, s.kv, *layer++, host)); break;
      case SectionType::seal: TESSERA_TRY_STATUS(out.put(bytes_of(out.seal()))); break;
    }
    TESSERA_TRY_STATUS(out.end());
  }
  return out.flush();
}

}  // namespace

Status Session::save(const std::filesystem::path& path) const noexcept {
  return guard([&]() -> Status {
    if (state_ == nullptr) return detail::empty_handle("Session");
    const detail::Reading use(*state_->use);
    TESSERA_TRY_STATUS(use.status());
    TESSERA_TRY(auto file, detail::ReplacementFile::create(path));
    TESSERA_TRY_STATUS(write_session(*state_, [&](std::span<const std::byte> bytes) { return file.write(bytes); }));
    return file.commit();
  });
}

Status Session::save(const ByteSink& sink) const noexcept {
  return guard([&]() -> Status {
    if (state_ == nullptr) return detail::empty_handle("Session");
    const detail::Reading use(*state_->use);
    TESSERA_TRY_STATUS(use.status());
    if (!sink) return make_error(ErrorCode::invalid_argument, "there is no sink to save the session to");
    return write_session(*state_, sink);
  });
}

}  // namespace tessera
