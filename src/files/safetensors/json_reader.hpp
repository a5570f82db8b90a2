// Reads a JSON text (RFC 8259) from a stretch of a byte source, value by value and in memory of a fixed size: the
// headers and indexes of safetensors files may have 100 MB. The caller says which value it expects next, and skips what
// it does not want.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include <tessera/extend/files/byte_source.hpp>

#include "core/error.hpp"

namespace tessera::detail {

// Every function returns an error (corrupt_file, with the offset in the file) for a text that is not what the caller
// expects or not JSON, and cancelled if `stop` is requested. Strings must be valid UTF-8, escaped halves of surrogate
// pairs included. After an error the reader must not be used.
class JsonReader {
 public:
  // Reads the bytes [begin, end) of the source through `window`, of at least one byte.
  JsonReader(ByteSource& source, std::span<char> window, std::uint64_t begin, std::uint64_t end,
             const std::stop_token& stop) noexcept
      : source_(source), window_(window), next_(begin), end_(end), stop_(stop) {}

  // Reads an object. Calls `member()` for each member, when its key is in `key`; member() reads or skips the value.
  template <class Member>
  Status members(std::string& key, std::size_t longest_key, Member&& member) {
    TESSERA_TRY_STATUS(expect('{'));
    TESSERA_TRY(const bool empty, take('}'));
    if (empty) return {};
    for (;;) {
      TESSERA_TRY_STATUS(string(key, longest_key));
      TESSERA_TRY_STATUS(expect(':'));
      TESSERA_TRY_STATUS(member());
      TESSERA_TRY(const bool more, take(','));
      if (!more) return expect('}');
    }
  }

  // Reads an array. Calls `element()` for each element, which reads or skips the element.
  template <class Element>
  Status elements(Element&& element) {
    TESSERA_TRY_STATUS(expect('['));
    TESSERA_TRY(const bool empty, take(']'));
    if (empty) return {};
    for (;;) {
      TESSERA_TRY_STATUS(element());
      TESSERA_TRY(const bool more, take(','));
      if (!more) return expect(']');
    }
  }

  // Reads a string of at most `longest` bytes of UTF-8 into `out`. A longer one is an error (unsupported).
  Status string(std::string& out, std::size_t longest);
  // Reads an integer from 0 to 2^64 - 1, written without sign, fraction and exponent.
  Result<std::uint64_t> unsigned_integer();
  // Reads `null` if it is the next value; otherwise returns false and reads nothing.
  Result<bool> null();
  // Reads any value and forgets it. A value that is nested deeper than 100 is an error.
  Status skip() { return skip(0); }
  // Checks that nothing but white space follows.
  Status finish();

  // Offset in the source of the next byte.
  [[nodiscard]] std::uint64_t offset() const noexcept { return next_ - static_cast<std::uint64_t>(last_ - at_); }
  // Sets what errors say behind the offset: "tensor 'a'". Empty: nothing.
  void set_subject(std::string_view subject) { subject_ = subject; }
  [[nodiscard]] std::string place() const;

  template <class... Args>
  [[nodiscard]] Error fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) const {
    return error_at(code, place(), format, std::forward<Args>(args)...);
  }

 private:
  Status need();        // makes at_ != last_; an error at the end
  Result<char> peek();  // skips white space; returns the next byte without taking it
  Status expect(char c);
  Result<bool> take(char c);
  Status word(std::string_view text);
  Status number();
  Status skip(int depth);
  // Reads a string whose pieces go to `sink(std::string_view)`, which returns a Status.
  template <class Sink>
  Status pieces(Sink&& sink);
  Result<std::uint32_t> four_digits();                 // of an escape: \u12ab
  Result<std::uint32_t> escape();                      // the character behind a backslash
  Result<std::string_view> character(char (&out)[4]);  // a character of several bytes

  ByteSource& source_;
  std::span<char> window_;
  const char* at_ = nullptr;    // the next byte, in the window
  const char* last_ = nullptr;  // the end of the window's bytes
  std::uint64_t next_;          // offset in the source of the byte at last_
  std::uint64_t end_;
  const std::stop_token& stop_;
  std::string subject_;
};

}  // namespace tessera::detail
