// The JSON text of a header or index, which a JsonPullReader reads from a stretch of a byte source through a small window.
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include <tessera/extend/files/byte_source.hpp>

#include "json/pull_reader.hpp"

namespace tessera::detail {

class JsonWindow final : public JsonInput {
 public:
  // Reads the bytes [begin, end) of the source through `window`, of at least one byte. `stop`: makes more() return cancelled.
  JsonWindow(ByteSource& source, std::span<char> window, std::uint64_t begin, std::uint64_t end, const std::stop_token& stop) noexcept
      : source_(source), window_(window), begin_(begin), next_(begin), end_(end), stop_(stop) {}

  // Sets what errors say behind the offset: "tensor 'a'". Empty: nothing.
  void set_subject(std::string_view subject) { subject_ = subject; }

  [[nodiscard]] Result<std::string_view> more() override;
  [[nodiscard]] Error error(ErrorCode code, std::uint64_t offset, std::string_view what) const override;

 private:
  ByteSource& source_;
  std::span<char> window_;
  std::uint64_t begin_;  // offset in the source of the text
  std::uint64_t next_;   // offset in the source of the bytes that more() returns next
  std::uint64_t end_;
  const std::stop_token& stop_;
  std::string subject_;
};

}  // namespace tessera::detail
