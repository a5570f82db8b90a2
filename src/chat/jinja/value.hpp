// The values of the evaluator: the types of Python values that templates use. A value never changes. Exceptions: namespaces, and the
// position of an iterator.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/jinja/budget.hpp"
#include "chat/jinja/text.hpp"

namespace tessera::jinja {

enum class Kind : std::uint8_t {
  undefined, none, boolean, integer, floating, big_integer,
  string, list, tuple, dict, range,
  iterator,    // result of the filters map, select, items and the like; it can be read only once
  dict_view,   // result of a dict's methods keys(), values() and items()
  name_space,  // result of namespace()
  loop,        // the variable `loop`
  callable,
};

// The base of all values on the heap. The constructor and the destructor count the object's size against the memory limit.
class Object {
 public:
  Object(Budget& budget, std::size_t bytes, std::uint32_t depth = 0) : budget_(budget), bytes_(bytes + kOverhead), depth_(depth) {
    budget.take(bytes_);
  }
  virtual ~Object() { budget_.give_back(bytes_); }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  [[nodiscard]] std::uint32_t depth() const noexcept { return depth_; }  // depth of nesting of the containers in this object

 private:
  static constexpr std::size_t kOverhead = 48;  // bytes that the heap needs for the allocations themselves
  Budget& budget_;
  std::size_t bytes_;
  std::uint32_t depth_;
};

class Value {
 public:
  Value() = default;  // makes an undefined value
  static Value none() { return Value(Kind::none); }
  static Value boolean(bool value) {
    Value made(Kind::boolean);
    made.integer_ = value ? 1 : 0;
    return made;
  }
  static Value integer(std::int64_t value, TextOrigin origin = TextOrigin::from_template) {
    Value made(Kind::integer);
    made.integer_ = value;
    made.origin_ = origin;
    return made;
  }
  static Value floating(double value, TextOrigin origin = TextOrigin::from_template) {
    Value made(Kind::floating);
    made.floating_ = value;
    made.origin_ = origin;
    return made;
  }
  static Value object(Kind kind, std::shared_ptr<const Object> object) {
    Value made(kind);
    made.object_ = std::move(object);
    return made;
  }
  static Value pointer(Kind kind, void* to) {
    Value made(kind);
    made.pointer_ = to;
    return made;
  }

  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  [[nodiscard]] bool is(Kind kind) const noexcept { return kind_ == kind; }
  [[nodiscard]] bool is_whole() const noexcept { return kind_ == Kind::integer || kind_ == Kind::boolean; }
  [[nodiscard]] bool is_number() const noexcept { return is_whole() || kind_ == Kind::floating; }
  [[nodiscard]] bool is_list() const noexcept { return kind_ == Kind::list || kind_ == Kind::tuple; }

  [[nodiscard]] std::int64_t whole() const noexcept { return integer_; }  // value of an integer or boolean
  [[nodiscard]] double number() const noexcept {
    return kind_ == Kind::floating ? floating_ : static_cast<double>(integer_);
  }
  [[nodiscard]] const Text& text() const noexcept;  // the text of a string, or the digits of a big_integer
  [[nodiscard]] std::string_view bytes() const noexcept { return text().bytes(); }
  [[nodiscard]] const std::vector<Value>& items() const noexcept;                     // items of a list, tuple or dict_view
  [[nodiscard]] const std::vector<std::pair<Value, Value>>& members() const noexcept;  // members of a dict
  template <class T>
  [[nodiscard]] const T& as() const noexcept {
    return static_cast<const T&>(*object_);
  }
  template <class T>
  [[nodiscard]] T& pointed() const noexcept {
    return *static_cast<T*>(pointer_);
  }
  [[nodiscard]] const Object* identity() const noexcept { return object_.get(); }

  // Returns where a number's digits come from: the template or a message.
  [[nodiscard]] TextOrigin origin() const noexcept { return origin_; }
  void set_origin(TextOrigin origin) noexcept { origin_ = origin; }
  // Returns whether the string was made by the filter `safe`. Then text that is added to it is escaped for HTML (markupsafe).
  [[nodiscard]] bool is_safe() const noexcept { return safe_; }
  [[nodiscard]] Value as_safe(bool safe) const {
    Value made = *this;
    made.safe_ = safe;
    return made;
  }

 private:
  explicit Value(Kind kind) noexcept : kind_(kind) {}
  Kind kind_ = Kind::undefined;
  TextOrigin origin_ = TextOrigin::from_template;
  bool safe_ = false;
  union {
    std::int64_t integer_ = 0;
    double floating_;
    void* pointer_;
  };
  std::shared_ptr<const Object> object_;
};

using Values = std::vector<Value>;
using Members = std::vector<std::pair<Value, Value>>;

struct String : Object {
  String(Budget& budget, Text of) : Object(budget, sizeof(String) + of.memory_bytes()), text(std::move(of)) {}
  Text text;
};
struct List : Object {
  List(Budget& budget, Values of);
  Values items;
};
struct Dict : Object {
  Dict(Budget& budget, Members of);
  Members members;                   // members in the order in which they were added
  std::vector<std::uint32_t> order;  // indices of members sorted by key; only for large dicts (find_member())
};
struct Range : Object {
  Range(Budget& budget, std::int64_t start_, std::int64_t step_, std::int64_t size_)
      : Object(budget, sizeof(Range)), start(start_), step(step_), size(size_) {}
  std::int64_t start, step, size;
};
struct Iterator : Object {
  Iterator(Budget& budget, Values of);
  Values items;
  mutable std::size_t at = 0;  // number of items that have been read
};
// The result of keys(), values() or items(). The method's name is kept because Python prints it.
struct DictView : List {
  DictView(Budget& budget, Values of, std::string_view called) : List(budget, std::move(of)), name(called) {}
  std::string_view name;
};
// An undefined value with the reason why it is undefined. The error at the value's first use states the reason.
struct Missing : Object {
  Missing(Budget& budget, std::string why_) : Object(budget, sizeof(Missing) + why_.capacity()), why(std::move(why_)) {}
  std::string why;
};

[[nodiscard]] Value make_string(Budget& budget, Text text);
[[nodiscard]] Value make_string(Budget& budget, std::string_view bytes, TextOrigin origin = TextOrigin::from_template);
[[nodiscard]] Value make_list(Budget& budget, Values items);
[[nodiscard]] Value make_tuple(Budget& budget, Values items);
[[nodiscard]] Value make_dict(Budget& budget, Members members);  // if a key occurs twice, the last value counts
[[nodiscard]] Value make_iterator(Budget& budget, Values items);
[[nodiscard]] Value make_missing(Budget& budget, std::string why);

// Returns the value for a key; nullptr if the dict does not have the key.
[[nodiscard]] const Value* find_member(Budget& budget, const Dict& dict, const Value& key);
[[nodiscard]] const Value* find_member(Budget& budget, const Dict& dict, std::string_view key);

// Returns how Python calls the value's type, for messages.
[[nodiscard]] std::string_view type_name(const Value& value) noexcept;
[[nodiscard]] bool truth(const Value& value) noexcept;
[[nodiscard]] bool equal(Budget& budget, const Value& a, const Value& b);
// Compares two values as Python's < does. Returns a negative number, 0 or a positive number. Fails if values of these types cannot be
// compared.
[[nodiscard]] int compare(Budget& budget, const Value& a, const Value& b);
// Returns the elements over which Python would iterate: the characters of a string, the keys of a dict, ... Fails if the value cannot be
// iterated.
[[nodiscard]] Values iterate(Budget& budget, const Value& value);
[[nodiscard]] bool is_iterable(const Value& value) noexcept;
// Returns Python's len(value). Fails if the value has no length.
[[nodiscard]] std::int64_t length(Budget& budget, const Value& value);
// Fails with an error that says that an undefined value was used, and why it is undefined.
[[noreturn]] void fail_undefined(const Value& value);

}  // namespace tessera::jinja
