// Descriptions of steps as bytes, for ranks in other processes. A description has only numbers and lists of numbers.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "model/step/step_description.hpp"

namespace tessera::detail {

class ByteWriter {
 public:
  explicit ByteWriter(std::vector<std::byte>& out) noexcept : out_(out) {}

  template <class T>
  void number(const T& value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    add(std::as_bytes(std::span(&value, 1)));
  }
  template <class T, class Each>
  void list(const std::vector<T>& values, Each each) {
    number(std::uint64_t{values.size()});
    for (const T& value : values) each(value);
  }
  void add(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    const std::size_t at = out_.size();  // insert() is not used, because g++ 12 warns wrongly of it
    out_.resize(at + bytes.size());
    std::memcpy(out_.data() + at, bytes.data(), bytes.size());
  }

 private:
  std::vector<std::byte>& out_;
};

// Reads numbers and lists from the bytes that a ByteWriter has written. If there are too few or too many bytes, is_sound() is false.
// Numbers that are missing are read as 0, and missing lists as empty.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> in) noexcept : in_(in) {}

  template <class T>
  void number(T& value) noexcept {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    const std::span<const std::byte> bytes = take(sizeof value);
    value = {};
    if constexpr (std::is_same_v<T, bool>) {
      value = !bytes.empty() && bytes[0] != std::byte{0};
    } else {
      if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
    }
  }
  template <class T, class Each>
  void list(std::vector<T>& values, Each each) {
    std::uint64_t n = 0;
    number(n);
    if (n > in_.size()) failed_ = true;  // an element takes at least a byte
    values.assign(failed_ ? 0 : n, T{});
    for (T& value : values) each(value);
  }
  // Returns the next n bytes; none if there are fewer.
  [[nodiscard]] std::span<const std::byte> take(std::uint64_t n) noexcept {
    if (n > in_.size()) failed_ = true;
    if (failed_) return {};
    const auto bytes = in_.first(n);
    in_ = in_.subspan(n);
    return bytes;
  }
  [[nodiscard]] bool is_sound() const noexcept { return !failed_; }
  [[nodiscard]] bool is_at_end() const noexcept { return !failed_ && in_.empty(); }

 private:
  std::span<const std::byte> in_;
  bool failed_ = false;
};

template <class Bytes, class Description>
void copies_and_pages(Bytes& bytes, Description& of) {
  const auto number = [&](auto&... values) { (bytes.number(values), ...); };
  bytes.list(of.copies, [&](auto& copy) { number(copy.page_bytes, copy.from, copy.to); });
  bytes.list(of.pages.sequences, [&](auto& one) {
    auto& slots = one.slots;
    number(one.layout, one.cache, one.groups, one.pages, one.writes_states, one.first, one.size);
    number(slots.length, slots.first_page, slots.exact_from, slots.pages, slots.drafts);
  });
  bytes.list(of.pages.ids, number);
}

// Writes or reads every number of a description.
template <class Bytes, class Step>
  requires requires(Step& step) { step.rows; }
void each_number(Bytes& bytes, Step& step) {
  const auto number = [&](auto&... values) { (bytes.number(values), ...); };
  copies_and_pages(bytes, step);
  bytes.list(step.rows, [&](auto& row) {
    number(row.token, row.embedding, row.sequence, row.branches, row.position, row.segment, row.first_adapter, row.n_adapters, row.output, row.votes);
  });
  bytes.list(step.adapters, [&](auto& adapter) { number(adapter.content.low, adapter.content.high, adapter.scale); });
  bytes.list(step.draws, [&](auto& draw) {
    number(draw.row, draw.uniform, draw.steps.size);
    for (auto& one : draw.steps.list) number(one.kind, one.value, one.count);
  });
  number(step.first_layer, step.last_layer, step.guess);
}

template <class Bytes, class Part>
  requires requires(Part& part) { part.end_page; }
void each_number(Bytes& bytes, Part& part) {
  copies_and_pages(bytes, part);
  bytes.number(part.layer);
  bytes.number(part.first_page);
  bytes.number(part.end_page);
  bytes.number(part.at);
  bytes.number(part.bytes);
}

template <class Bytes, class Move>
  requires requires(Move& move) { move.from; }
void each_number(Bytes& bytes, Move& move) {
  const auto number = [&](auto&... values) { (bytes.number(values), ...); };
  copies_and_pages(bytes, move);
  number(move.from, move.to, move.count);
  bytes.list(move.first, number);
}

}  // namespace tessera::detail
