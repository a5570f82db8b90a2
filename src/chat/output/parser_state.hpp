// The state of the parser that divides a model's output into text, reasoning and tool calls. Arriving bytes are put into buffer_, and
// consumed from its front. Bytes that may become a marker stay in buffer_ until it is certain whether they do. Every decision depends
// only on the bytes of the output, not on how the bytes were cut into pieces.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/extend/chat/output_parser.hpp>

#include "chat/output/json_extent.hpp"
#include "chat/output/loose_values.hpp"

namespace tessera {

struct [[gnu::visibility("hidden")]] OutputParser::State {
  State(const OutputFormat& format_, OutputParserOptions options_);

  void push(std::string_view text);
  void finish(OutputEnd end);
  [[nodiscard]] Message message() const;
  std::vector<OutputDelta> deltas;
  std::vector<OutputSpan> text_spans;  // places of the pieces of text in the output

 private:
  enum class Progress : std::uint8_t { made, waits };  // waits: nothing can be decided before more bytes come
  enum class Phase : std::uint8_t { between, id, name, arguments, close };
  struct Found {
    // Offset and size of the marker that was found. Size 0: none was found. Then `at` is the first offset at which a marker may still
    // begin when more bytes come; no byte before it belongs to a marker.
    std::size_t at = 0, size = 0;
    std::size_t index = 0;         // index of the marker among the given markers
  };
  struct Marker {
    std::string_view text;
    const OutputRegion* opens = nullptr;  // the region that the marker opens; nullptr: the marker is dropped, or belongs to a header
  };
  using Texts = std::vector<std::string_view>;

  // --- Defined in text.cpp: everything outside of calls.
  Progress step();
  Progress step_text();
  Progress step_region();
  [[nodiscard]] Found find(const Texts& markers, std::size_t from = 0) const;
  [[nodiscard]] std::optional<bool> may_open(const Marker& marker, std::size_t at) const;
  void put(OutputDelta::Kind kind, std::string_view text);
  void enter(const OutputRegion* region);
  void leave();
  void consume(std::size_t bytes);
  void give_back(std::string bytes);  // puts consumed bytes back, so that they are read again
  void add_span(OutputSpan span);
  [[nodiscard]] bool nothing_written() const { return text_.all.empty() && reasoning_.all.empty() && calls_.empty(); }

  // --- Defined in headers.cpp: messages that begin with a header.
  Progress step_begun_header();
  Progress step_header();
  void begin_header(std::string_view marker);
  void read_header();
  void give_up_header();
  void enter_kind(RegionKind kind);

  // --- Defined in recipients.cpp: parts of the output that begin with a recipient.
  Progress step_begun_recipient();
  // Returns whether a call's name and arguments are at offset `at`; nullopt: not clear before more bytes come.
  [[nodiscard]] std::optional<bool> names_call(std::size_t at) const;

  // --- Defined in calls.cpp: steps that all forms of calls share.
  Progress step_calls();
  Progress step_between();
  Progress step_id();
  Progress step_name();
  Progress step_arguments();
  Progress step_close();
  [[nodiscard]] std::optional<bool> starts_with(std::string_view marker) const;  // nullopt: not clear before more bytes come
  // nullptr: no call begins here; nullopt: not clear before more bytes come.
  [[nodiscard]] std::optional<const CallForm*> form_here() const;
  void skip_space();
  void collect_marks();
  void begin_call(std::string name, std::string id);
  void begin_arguments();
  void add_arguments(std::string_view text);
  void end_call();
  void malformed();
  [[nodiscard]] bool is_name(std::string_view name) const;
  [[nodiscard]] bool may_become_name(std::string_view text) const;
  [[nodiscard]] bool is_tool(std::string_view name) const;
  [[nodiscard]] bool begins_tool(std::string_view word) const;  // returns whether some tool's name begins with this word
  [[nodiscard]] std::string tool_of_id(std::string_view name) const;
  [[nodiscard]] const Json* call_schema() const;  // schema of the present call's arguments; nullptr: none is known

  // --- Defined in calls_json.cpp.
  Progress step_json();
  Progress step_raw_arguments();
  [[nodiscard]] std::optional<bool> ends_here(std::size_t at) const;
  void stream_arguments(std::string_view text);

  // --- Defined in calls_parameters.cpp.
  Progress step_parameters();
  Progress step_value();
  Progress step_elements();
  enum class KeyState : std::uint8_t { waits, malformed, read };
  struct Key {
    KeyState state = KeyState::malformed;
    std::string name;
    std::string_view attributes{};
    std::size_t end = 0;  // offset at which the value begins
  };
  [[nodiscard]] Key read_key(std::size_t at) const;
  [[nodiscard]] std::optional<bool> goes_on_behind(std::size_t at, const Texts& next) const;
  void take_value(std::size_t end, std::size_t behind, bool closed);
  void add_argument(std::string_view key, const Json& value);

  // --- Defined in calls_loose.cpp.
  Progress step_pythonic();
  Progress step_braces();

  OutputFormat format_;
  OutputParserOptions options_;
  std::vector<Marker> markers_;  // markers that are searched for in text
  std::string buffer_;
  std::size_t consumed_ = 0;  // number of bytes of the output before buffer_
  bool last_ = false;

  const OutputRegion* region_ = nullptr;  // the region that is being read; nullptr: none, this is text
  const CallForm* form_ = nullptr;        // the form of the present call, one of the region's forms
  bool broken_ = false;                   // true: the region's calls are malformed, so its bytes are treated as text
  bool has_call_ = false;                 // true: a call was read in this region
  Phase phase_ = Phase::between;
  Texts marks_;  // markers of the region, which cannot occur in a name, a key or a text

  // Ordinary text, or reasoning. `all`: what was passed on so far. `held`: the white space after `all`, which is passed on only if more text
  // follows; white space before a region is dropped.
  struct Sink {
    std::string all, held;
    bool after_region = false;
    OutputSpan held_span{};  // place of `held` in the output; has no meaning if `held` is empty
  };
  Sink text_, reasoning_;

  // The header that is being read: the texts after its markers `start` and `channel`.
  struct Header {
    bool in_hand = false, has_start = false, has_channel = false;
    std::string role, channel;
  };
  Header header_;
  bool may_begin_with_header_ = false;  // true: the prompt may have ended with the beginning of a header, or with a recipient's mark

  struct Call {
    std::string name, id, arguments;
    bool ended = false, broken = false;
  };
  std::vector<Call> calls_;
  output::JsonExtent extent_;
  output::JsonValueEnd value_end_;  // finds the end of a parameter that is JSON
  output::LooseExtent loose_;       // finds the end of a call in Python's or Gemma's syntax
  // Only if the present call is written as a JSON object. object_: the bytes of this object that were read so far. value_begin_: the
  // offset in object_ at which the value of the present member begins.
  std::string object_;
  std::size_t value_begin_ = 0;
  // name_, id_, early_arguments_: the present call's name, id and arguments, as far as they were read before the call was begun
  // (begin_call()). held_: white space after the last byte of the arguments, which is passed on only if more of the arguments follow.
  std::string name_, id_, early_arguments_, held_;
  // For calls that are written as JSON. in_value_: the value of a member is being read. streams_: this value is the call's arguments, and
  // its bytes are passed on as they are read. For calls with parameters: first_parameter_: no parameter of the call was passed on yet.
  bool in_value_ = false, streams_ = false, first_parameter_ = true;

  // The parameter whose value is being read. key, attributes: the name, and the attributes of the tag that opens the value. begin: offset
  // in buffer_ at which the value begins. scanned: offset in buffer_ up to which the value's end was searched for.
  struct Value {
    std::string key, attributes;
    std::size_t begin = 0, scanned = 0;
    // Possible ends of the value, which count if no certain end comes. close: offset of the last closing marker of the value. weak_end:
    // the first offset of a marker that ends the call or the region, although neither another call nor the end of the output follows
    // there.
    std::optional<std::size_t> close, weak_end;
    bool in_hand = false, is_json = false;
  };
  Value value_;
};

}  // namespace tessera
