// The JSON text of a header or index: a range of a byte source, which a JsonPullReader reads through a small window.
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
  // Reads the bytes [begin, end) of the source through `window`, which has at least one byte. A request to `stop` makes more() return
  // cancelled.
  JsonWindow(ByteSource& source, std::span<char> window, std::uint64_t begin, std::uint64_t end, const std::stop_token& stop) noexcept
      : source_(source), window_(window), begin_(begin), next_(begin), end_(end), stop_(stop) {}

  // Sets the text that errors have after the offset, such as "tensor 'a'". An empty text adds nothing.
  void set_subject(std::string_view subject) { subject_ = subject; }

  [[nodiscard]] Result<std::string_view> more() override;
  [[nodiscard]] Error error(ErrorCode code, std::uint64_t offset, std::string_view what) const override;

 private:
  ByteSource& source_;
  std::span<char> window_;
  std::uint64_t begin_;  // offset of the text in the source
  std::uint64_t next_;   // offset in the source of the next bytes for more()
  std::uint64_t end_;
  const std::stop_token& stop_;
  std::string subject_;
};

}  // namespace tessera::detail
