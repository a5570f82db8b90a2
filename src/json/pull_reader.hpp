// Reads a large JSON text value by value, without making a tree of it: the vocabulary of a tokenizer.json has 250,000 entries. Memory does
// not grow with the text, except for the text of one string.
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

namespace tessera::detail {

// Every function returns corrupt_file, with line and column in the message, if the text is not JSON (RFC 8259) or if the value is of
// another type. After an error the reader must not be used. Strings become UTF-8; half a surrogate pair is an error.
class JsonPullReader {
 public:
  explicit JsonPullReader(std::string_view text) noexcept : text_(text) {}

  enum class Type : std::uint8_t { null, boolean, number, string, array, object };
  // Returns the type of the next value, by its first character, and does not read it.
  [[nodiscard]] Result<Type> type();

  // begin_object() and begin_array() enter the next value. next_key() then reads the object's next key; next_element() goes to the array's
  // next element. Both return false at the end, and leave the value. The caller reads or skips one value after each true.
  [[nodiscard]] Status begin_object();
  [[nodiscard]] Result<bool> next_key(std::string& key);
  [[nodiscard]] Status begin_array();
  [[nodiscard]] Result<bool> next_element();

  [[nodiscard]] Status string(std::string& out);  // replaces `out`
  [[nodiscard]] Result<std::int64_t> integer();
  [[nodiscard]] Result<double> number();
  [[nodiscard]] Result<bool> boolean();
  [[nodiscard]] Status null();

  // Reads past the next value and returns its text, which is checked to be JSON but for the contents of strings.
  [[nodiscard]] Result<std::string_view> skip();
  // Returns an error if anything but white space follows.
  [[nodiscard]] Status end();

  // Returns an error for the value that was read last, in the words of the caller: its place is the line and column.
  [[nodiscard]] Error error(std::string_view what) const;

 private:
  void skip_space() noexcept;
  [[nodiscard]] bool skip_char(char c) noexcept;
  [[nodiscard]] Status enter(char bracket, const char* name);
  [[nodiscard]] Result<bool> next(char bracket);
  [[nodiscard]] Status escape(std::string& out);
  [[nodiscard]] Result<std::uint32_t> four_digits();
  [[nodiscard]] Result<std::string_view> number_text();
  [[nodiscard]] Status skip_string();

  std::string_view text_;
  std::size_t at_ = 0;
  bool first_ = false;  // true: an object or array was entered, and none of its values were read
};

}  // namespace tessera::detail
