// Finds the end of a JSON value that arrives in pieces. If the value is an object, also finds its members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::output {

class JsonExtent {
 public:
  enum class Place : std::uint8_t {
    inside,   // the byte is somewhere inside the value
    key,      // the byte ends a key of the outermost object, which key() returns
    value,    // the byte begins the value of a member
    member,   // the byte follows the value of a member: a comma or the closing bracket
    end,      // the byte is the last one of the whole value
  };

  // `other_quote`: a second character that may enclose strings, because Python also writes '.
  JsonExtent() = default;
  explicit JsonExtent(char other_quote) : other_quote_(other_quote) {}

  // Takes the next byte. The first byte must be '{' or '['. After it has returned `end`, do not call it again.
  Place take(char c) {
    if (in_string_) {
      if (escaped_) escaped_ = false;
      else if (c == '\\') escaped_ = true;
      else if (c == quote_) in_string_ = false;
      if (reading_key_) {
        if (!in_string_) {
          reading_key_ = false;
          return Place::key;
        }
        key_ += c;
      }
      return Place::inside;
    }
    const bool begins = expects_value_ && c != ' ' && c != '\n' && c != '\t' && c != '\r';
    if (begins) expects_value_ = false;
    if (c == other_quote_ && c != 0) {
      in_string_ = true;
      quote_ = c;
      return begins ? Place::value : Place::inside;
    }
    switch (c) {
      case '"':
        in_string_ = true;
        quote_ = c;
        if (depth_ == 1 && object_ && expects_key_) {
          reading_key_ = true;
          expects_key_ = false;
          key_.clear();
        }
        break;
      case '{':
      case '[':
        if (depth_ == 0) object_ = expects_key_ = c == '{';
        ++depth_;
        break;
      case '}':
      case ']':
        if (depth_ > 0) --depth_;
        if (depth_ == 0) return Place::end;
        break;
      case ':':
        if (depth_ == 1 && object_ && !begins) {
          expects_value_ = true;
          return Place::inside;
        }
        break;
      case ',':
        if (depth_ == 1 && object_) {
          expects_key_ = true;
          return Place::member;
        }
        break;
      default: break;
    }
    return begins ? Place::value : Place::inside;
  }

  [[nodiscard]] bool in_string() const noexcept { return in_string_; }
  [[nodiscard]] const std::string& key() const noexcept { return key_; }  // as written, with its escapes

 private:
  std::size_t depth_ = 0;
  bool object_ = false, in_string_ = false, escaped_ = false;
  bool expects_key_ = false, reading_key_ = false, expects_value_ = false;
  char other_quote_ = 0, quote_ = '"';
  std::string key_;
};

// Finds the end of the value with which a text begins, while the text grows. The value is a list or an object, as JSON or as Python prints
// it, or a string in double quotes. If the text begins with anything else (a number, for example), no end is searched for: find() returns
// the offset of the first byte that is not white space.
class JsonValueEnd {
 public:
  // Returns the offset after the value; nullopt if the value is not complete. Each call must get the text of the previous call of find(),
  // with or without more text after it.
  std::optional<std::size_t> find(std::string_view text) {
    for (; at_ < text.size() && !end_; ++at_) take(text[at_]);
    return end_;
  }

 private:
  void take(char c) {
    if (kind_ == 0) {
      if (c == ' ' || c == '\n' || c == '\t' || c == '\r') return;
      kind_ = c;
      if (c == '{' || c == '[') extent_.take(c);
      else if (c != '"') end_ = at_;
    } else if (kind_ == '"') {
      if (escaped_) escaped_ = false;
      else if (c == '\\') escaped_ = true;
      else if (c == '"') end_ = at_ + 1;
    } else if (extent_.take(c) == JsonExtent::Place::end) {
      end_ = at_ + 1;
    }
  }

  JsonExtent extent_{'\''};
  std::size_t at_ = 0;
  std::optional<std::size_t> end_;
  char kind_ = 0;  // the value's first byte
  bool escaped_ = false;
};

}  // namespace tessera::output
