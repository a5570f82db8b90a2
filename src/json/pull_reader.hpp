// Reads a large JSON text (RFC 8259) value by value, without making a tree of it. Such texts are tokenizer.json, whose vocabulary has
// 250,000 entries, and the headers and indexes of safetensors files, which may have 100 MB. Memory does not grow with the text; only the
// text of one string is held at a time.
//
//   JsonPullReader json(text);
//   TESSERA_TRY_STATUS(json.begin_object());
//   for (std::string key;;) {
//     TESSERA_TRY(const bool more, json.next_key(key));
//     if (!more) break;
//     TESSERA_TRY(const std::int64_t id, json.integer());
//   }
//   TESSERA_TRY_STATUS(json.end());
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/core/result.hpp>

#include "core/error.hpp"

namespace tessera::detail {

// The source of a JSON text that is not in memory as a whole: the reader asks for the bytes piece by piece. It also makes the reader's
// errors, because it knows the name of the file.
class JsonInput {
 public:
  virtual ~JsonInput() = default;
  // Returns the bytes that follow the bytes of the last call. They are valid until the next call. Empty: the text has ended.
  [[nodiscard]] virtual Result<std::string_view> more() = 0;
  // Returns the error for a fault. `offset`: where in the text the reader saw the fault, as a number of bytes.
  [[nodiscard]] virtual Error error(ErrorCode code, std::uint64_t offset, std::string_view what) const = 0;
};

// The reader. If the text is not JSON, or if the value is of another type than the function reads, every function returns corrupt_file,
// with the place (for a text in memory: line and column). Functions also return the errors of JsonInput::more(). After an error the reader
// must not be used. Strings become UTF-8; half a surrogate pair is an error.
class JsonPullReader {
 public:
  explicit JsonPullReader(std::string_view text) noexcept : begin_(text.data()), at_(begin_), last_(begin_ + text.size()) {}
  explicit JsonPullReader(JsonInput& input) noexcept : input_(&input) {}

  enum class Type : std::uint8_t { null, boolean, number, string, array, object };
  // Returns the type of the next value without reading it. Only the value's first character is looked at.
  [[nodiscard]] Result<Type> type();

  // Read objects and arrays step by step. begin_object() or begin_array() enters the next value. Then next_key() reads the object's next
  // key, or next_element() goes to the array's next element. After each true, the caller reads or skips one value. False: the object or
  // array has ended, and the reader is behind it.
  [[nodiscard]] Status begin_object() { return enter('{'); }
  [[nodiscard]] Result<bool> next_key(std::string& key, std::size_t longest = std::string::npos);
  [[nodiscard]] Status begin_array() { return enter('['); }
  [[nodiscard]] Result<bool> next_element() { return next(']'); }

  // Reads a whole object. For each member, sets `key` and then calls member(), which must read or skip the value.
  template <class Member>
  [[nodiscard]] Status members(std::string& key, std::size_t longest_key, Member&& member) {
    TESSERA_TRY_STATUS(begin_object());
    for (;;) {
      TESSERA_TRY(const bool has_more, next_key(key, longest_key));
      if (!has_more) return {};
      TESSERA_TRY_STATUS(member());
    }
  }
  // Reads a whole array. For each element, calls element(), which must read or skip it.
  template <class Element>
  [[nodiscard]] Status elements(Element&& element) {
    TESSERA_TRY_STATUS(begin_array());
    for (;;) {
      TESSERA_TRY(const bool has_more, next_element());
      if (!has_more) return {};
      TESSERA_TRY_STATUS(element());
    }
  }

  // Replaces `out` by the next string. A string of more than `longest` bytes of UTF-8 is an error (unsupported).
  [[nodiscard]] Status string(std::string& out, std::size_t longest = std::string::npos);
  [[nodiscard]] Result<std::int64_t> integer();
  [[nodiscard]] Result<std::uint64_t> unsigned_integer();
  [[nodiscard]] Result<double> number();
  // Reads a number of any form and returns its characters, valid until the next call. A number of more than 1024 characters is an error.
  [[nodiscard]] Result<std::string_view> written_number();
  [[nodiscard]] Result<bool> boolean();
  [[nodiscard]] Status null();

  // Reads past the next value, and checks that it is JSON. If arrays and objects in it are nested more than 100 deep, returns an error.
  [[nodiscard]] Status skip();
  // Reads past the next value like skip(), and returns the value's text. Only for a text in memory.
  [[nodiscard]] Result<std::string_view> skipped();
  // Returns an error if anything but white space follows.
  [[nodiscard]] Status end();

  // Returns an error with the caller's sentence `what` and the reader's present place.
  [[nodiscard]] Error error(std::string_view what) const { return error_of(ErrorCode::corrupt_file, what); }
  template <class... Args>
  [[nodiscard]] Error fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) const {
    return error_of(code, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  [[nodiscard]] Error error_of(ErrorCode code, std::string_view what) const;
  [[nodiscard]] Result<bool> more();  // makes at_ != last_; returns false at the text's end
  [[nodiscard]] Status need();        // makes at_ != last_; an error at the text's end
  [[nodiscard]] Result<char> peek();  // skips white space; returns the next byte without taking it
  [[nodiscard]] Status expect(char c);
  [[nodiscard]] Status word(std::string_view text);
  [[nodiscard]] Status enter(char bracket);
  [[nodiscard]] Result<bool> next(char bracket);
  [[nodiscard]] Status number_text(std::string* out);
  // Reads a string in pieces: calls sink(std::string_view), which returns a Status, for each piece. So a long string need not be in memory.
  template <class Sink>
  [[nodiscard]] Status pieces(Sink&& sink);
  [[nodiscard]] Status skip_string();
  [[nodiscard]] Result<std::uint32_t> four_digits();                 // the four digits of an escape: \u12ab
  [[nodiscard]] Result<std::uint32_t> escape();                      // the character after a backslash
  [[nodiscard]] Result<std::string_view> character(char (&out)[4]);  // a character whose bytes lie in two pieces of JsonInput

  JsonInput* input_ = nullptr;
  const char* begin_ = nullptr;  // the bytes that are in memory
  const char* at_ = nullptr;     // the next byte
  const char* last_ = nullptr;   // the end of the bytes that are in memory
  std::uint64_t passed_ = 0;     // bytes of the text before begin_
  std::string number_;           // the number that was read last
  bool first_ = false;           // true: an object or array was entered, and none of its values were read
};

}  // namespace tessera::detail
