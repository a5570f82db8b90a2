// The messages between rank 0 and ranks in other processes.
//
//   rank 0                          another rank
//   welcome  ------------------->   loads its part of the model; connects to the ranks before it (join), is joined by the ranks after it
//            <-------------------   accepted, or refusal
//            <-------------------   ready, or refusal
//   layout, step, move  -------->   executes them; a step exchanges parts (ProcessRanks)
//            <-------------------   reply after a step with votes: the votes of its heads; or refusal
//   read_pages, write_pages  --->   reads or writes its part of a layer in pages
//            <-------------------   reply: the bytes that were asked for, or refusal
//   adapter  ------------------->   loads its part of one change of an adapter
//            <-------------------   reply, or refusal
//   forget   ------------------->   drops an adapter
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/extend/core/hash.hpp>
#include <tessera/extend/kv/kv_layout.hpp>

#include "backend/explanation.hpp"
#include "ranks/step_bytes.hpp"

namespace tessera::detail {

inline constexpr std::uint32_t kRankProtocol = 3;  // raised when a message changes
inline constexpr std::size_t kMostRanks = 64;

enum class MessageKind : std::uint32_t { welcome = 1, join, accepted, ready, refusal, layout, step, move, read_pages, write_pages, adapter, forget, reply };

template <class Bytes>
void text(Bytes& bytes, std::string& of) {
  if constexpr (std::is_same_v<Bytes, ByteWriter>) {
    bytes.number(std::uint64_t{of.size()});
    bytes.add(std::as_bytes(std::span(of)));
  } else {
    std::uint64_t n = 0;
    bytes.number(n);
    const auto taken = bytes.take(n);
    of.assign(reinterpret_cast<const char*>(taken.data()), taken.size());
  }
}

// The facts by which a rank loads its part and finds the others.
struct Welcome {
  static constexpr MessageKind kKind = MessageKind::welcome;
  std::uint32_t protocol = kRankProtocol;
  std::string library;              // version
  std::string secret;
  Hash128 group;                    // a random number that names the ranks of this engine
  std::uint32_t rank = 0, ranks = 0;
  std::vector<std::string> addresses;  // [ranks]; rank 0's is empty
  std::uint32_t context = 0, step_rows = 0;
  std::int64_t sliding_window = -1;    // -1: the model's own
  std::int32_t numerics = 0, activations = 0;
  std::int32_t split = 0;              // RankSplit
  std::uint64_t timeout = 0;           // milliseconds
  std::uint32_t budget_tokens = 0;     // EngineOptions::kv.budget, which decides whether rows may vote
  std::int32_t budget_choice = 0;
  std::string spec;                    // spec_text() of the whole model

  template <class Bytes, class Self>
  static void each(Bytes& bytes, Self& of) {
    bytes.number(of.protocol);
    text(bytes, of.library);
    text(bytes, of.secret);
    bytes.number(of.group.low);
    bytes.number(of.group.high);
    bytes.number(of.rank);
    bytes.number(of.ranks);
    bytes.list(of.addresses, [&](auto& address) { text(bytes, const_cast<std::string&>(address)); });
    bytes.number(of.context);
    bytes.number(of.step_rows);
    bytes.number(of.sliding_window);
    bytes.number(of.numerics);
    bytes.number(of.activations);
    bytes.number(of.split);
    bytes.number(of.timeout);
    bytes.number(of.budget_tokens);
    bytes.number(of.budget_choice);
    text(bytes, of.spec);
  }
};

struct Join {
  static constexpr MessageKind kKind = MessageKind::join;
  std::string secret;
  Hash128 group;  // Welcome::group
  std::uint32_t rank = 0;

  template <class Bytes, class Self>
  static void each(Bytes& bytes, Self& of) {
    text(bytes, of.secret);
    bytes.number(of.group.low);
    bytes.number(of.group.high);
    bytes.number(of.rank);
  }
};

// A rank's answer to the welcome: it serves this engine, and begins to load.
struct Accepted {
  static constexpr MessageKind kKind = MessageKind::accepted;

  template <class Bytes, class Self>
  static void each(Bytes&, Self&) {}
};

// An operation of a rank, and the family of the kernel that computes this operation there.
struct RankFamily {
  Operation operation{};
  DType dtype{};  // type of the weights or of the KV cache; automatic: all KV types, or no type
  std::string family;
};

struct Ready {
  static constexpr MessageKind kKind = MessageKind::ready;
  Hash128 weights;  // hash of the whole file
  std::vector<RankFamily> families;

  template <class Bytes, class Self>
  static void each(Bytes& bytes, Self& of) {
    bytes.number(of.weights.low);
    bytes.number(of.weights.high);
    bytes.list(of.families, [&](auto& one) {
      bytes.number(one.operation);
      bytes.number(one.dtype);
      text(bytes, const_cast<std::string&>(one.family));
    });
  }
};

struct Refusal {
  static constexpr MessageKind kKind = MessageKind::refusal;
  std::string why;
  std::int32_t code = static_cast<std::int32_t>(ErrorCode::device_error);

  template <class Bytes, class Self>
  static void each(Bytes& bytes, Self& of) {
    text(bytes, of.why);
    bytes.number(of.code);
  }
};

// Rank 0's next layout, which gets the next number.
struct LayoutMessage {
  static constexpr MessageKind kKind = MessageKind::layout;
  DType dtype = DType::f32;
  std::uint32_t page_tokens = 0;
  std::vector<KvLayerNeeds> layers;

  template <class Bytes, class Self>
  static void each(Bytes& bytes, Self& of) {
    bytes.number(of.dtype);
    bytes.number(of.page_tokens);
    bytes.list(of.layers, [&](auto& layer) {
      bytes.number(layer.shape.kv_heads);
      bytes.number(layer.shape.key_dim);
      bytes.number(layer.shape.value_dim);
      bytes.number(layer.shape.state_bytes);
      bytes.number(layer.shape.values);
      bytes.number(layer.window);
      bytes.number(layer.dtype);
      bytes.number(layer.shares);
    });
  }
};

struct Forget {
  static constexpr MessageKind kKind = MessageKind::forget;
  Hash128 adapter;

  template <class Bytes, class Self>
  static void each(Bytes& bytes, Self& of) {
    bytes.number(of.adapter.low);
    bytes.number(of.adapter.high);
  }
};

// Returns the message from which make_kv_layout() makes an equal layout on another rank.
[[nodiscard]] LayoutMessage message_of(const KvLayout& layout);

// Writes a message. `out` is replaced.
template <class Message>
void write_message(Message message, std::vector<std::byte>& out) {
  out.clear();
  ByteWriter writer(out);
  writer.number(Message::kKind);
  Message::each(writer, message);
}

// Reads the kind of a message; 0 if there is none.
[[nodiscard]] inline MessageKind kind_of(std::span<const std::byte> bytes) noexcept {
  MessageKind kind{};
  ByteReader(bytes).number(kind);
  return kind;
}

// Reads a message. Returns false if the bytes are not a message of this type.
template <class Message>
[[nodiscard]] bool read_message(std::span<const std::byte> bytes, Message& message) {
  ByteReader reader(bytes);
  MessageKind kind{};
  reader.number(kind);
  if (kind != Message::kKind) return false;
  Message::each(reader, message);
  return reader.is_at_end();
}

}  // namespace tessera::detail
