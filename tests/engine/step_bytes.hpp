// Writes a description into bytes and reads it back, number by number: a description has nothing else.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "catch.hpp"
#include "model/step/step_description.hpp"

namespace tessera::test {

class ByteWriter {
 public:
  template <class T>
  void number(const T& value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    const auto bytes = std::as_bytes(std::span(&value, 1));
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }
  template <class T, class Each>
  void list(const std::vector<T>& values, Each each) {
    number(values.size());
    for (const T& value : values) each(value);
  }
  [[nodiscard]] std::vector<std::byte> take() { return std::move(out_); }

 private:
  std::vector<std::byte> out_;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> in) : in_(in) {}
  template <class T>
  void number(T& value) {
    REQUIRE(in_.size() >= sizeof value);
    std::memcpy(&value, in_.data(), sizeof value);
    in_ = in_.subspan(sizeof value);
  }
  template <class T, class Each>
  void list(std::vector<T>& values, Each each) {
    std::size_t n = 0;
    number(n);
    REQUIRE(n <= in_.size());
    values.resize(n);
    for (T& value : values) each(value);
  }
  [[nodiscard]] bool is_at_end() const { return in_.empty(); }

 private:
  std::span<const std::byte> in_;
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

template <class Bytes, class Step>
  requires requires(Step& step) { step.rows; }
void each_number(Bytes& bytes, Step& step) {
  const auto number = [&](auto&... values) { (bytes.number(values), ...); };
  copies_and_pages(bytes, step);
  bytes.list(step.rows, [&](auto& row) {
    number(row.token, row.embedding, row.sequence, row.branches, row.position, row.output, row.votes);
  });
  bytes.list(step.draws, [&](auto& draw) {
    number(draw.row, draw.uniform, draw.steps.size);
    for (auto& one : draw.steps.list) number(one.kind, one.value, one.count);
  });
  number(step.first_layer, step.last_layer, step.guess);
}

template <class Bytes, class Move>
  requires requires(Move& move) { move.from; }
void each_number(Bytes& bytes, Move& move) {
  const auto number = [&](auto&... values) { (bytes.number(values), ...); };
  copies_and_pages(bytes, move);
  number(move.from, move.to, move.count);
  bytes.list(move.first, number);
}

// Returns the description that is read from the bytes of `description`.
template <class Description>
Description through_bytes(const Description& description) {
  ByteWriter writer;
  each_number(writer, description);
  const std::vector<std::byte> bytes = writer.take();
  ByteReader reader(bytes);
  Description read;
  each_number(reader, read);
  CHECK(reader.is_at_end());
  CHECK(read == description);
  return read;
}

}  // namespace tessera::test
