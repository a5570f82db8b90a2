// The parser's inside. Text is consumed from the front of buffer_; text that may still be the beginning of a marker waits there. Every
// decision depends on bytes alone, never on how they were cut.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/chat/output_parser.hpp>

#include "chat/output/json_extent.hpp"
#include "chat/output/loose_values.hpp"

namespace tessera {

struct [[gnu::visibility("hidden")]] OutputParser::State {
  State(const OutputFormat& format_, OutputParserOptions options_);

  void push(std::string_view text);
  void finish(OutputEnd end);
  [[nodiscard]] Message message() const;
  std::vector<OutputDelta> deltas;
  std::vector<OutputSpan> text_spans;  // places of the text in the output

 private:
  enum class Progress : std::uint8_t { made, waits };  // waits: needs more bytes
  enum class Phase : std::uint8_t { between, id, name, arguments, close };
  struct Found {
    std::size_t at = 0, size = 0;  // place and size of the marker; size 0: no marker, and nothing before `at` is a part of one
    std::size_t index = 0;         // index of the marker in the list
  };
  struct Marker {
    std::string_view text;
    const OutputRegion* opens = nullptr;  // nullptr: a marker that is dropped, or of a header
  };
  using Texts = std::vector<std::string_view>;

  // text.cpp: everything outside of calls
  Progress step();
  Progress step_text();
  Progress step_region();
  [[nodiscard]] Found find(const Texts& markers, std::size_t from = 0) const;
  [[nodiscard]] std::optional<bool> may_open(const Marker& marker, std::size_t at) const;
  void put(OutputDelta::Kind kind, std::string_view text);
  void enter(const OutputRegion* region);
  void leave();
  void consume(std::size_t bytes);
  void give_back(std::string bytes);  // bytes that were consumed, to be read again
  void add_span(OutputSpan span);
  [[nodiscard]] bool nothing_written() const { return text_.all.empty() && reasoning_.all.empty() && calls_.empty(); }

  // headers.cpp: messages that begin with a header
  Progress step_begun_header();
  Progress step_header();
  void begin_header(std::string_view marker);
  void read_header();
  void give_up_header();
  void enter_kind(RegionKind kind);

  // recipients.cpp: parts that begin with a recipient
  Progress step_begun_recipient();
  [[nodiscard]] std::optional<bool> names_call(std::size_t at) const;  // a name and its arguments stand there; nullopt: too short to tell

  // calls.cpp: steps that all forms have
  Progress step_calls();
  Progress step_between();
  Progress step_id();
  Progress step_name();
  Progress step_arguments();
  Progress step_close();
  [[nodiscard]] std::optional<bool> starts_with(std::string_view marker) const;  // nullopt: too short to tell
  [[nodiscard]] std::optional<const CallForm*> form_here() const;  // nullopt: too short to tell; nullptr: no call begins here
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
  [[nodiscard]] bool begins_tool(std::string_view word) const;  // the name of a tool begins like this
  [[nodiscard]] std::string tool_of_id(std::string_view name) const;
  [[nodiscard]] const Json* call_schema() const;  // schema of the arguments of the call in hand; nullptr: the tools do not say

  // calls_json.cpp
  Progress step_json();
  Progress step_raw_arguments();
  [[nodiscard]] std::optional<bool> ends_here(std::size_t at) const;
  void stream_arguments(std::string_view text);

  // calls_parameters.cpp
  Progress step_parameters();
  Progress step_value();
  Progress step_elements();
  enum class KeyState : std::uint8_t { waits, malformed, read };
  struct Key {
    KeyState state = KeyState::malformed;
    std::string name;
    std::string_view attributes{};
    std::size_t end = 0;  // place where the value begins
  };
  [[nodiscard]] Key read_key(std::size_t at) const;
  [[nodiscard]] std::optional<bool> goes_on_behind(std::size_t at, const Texts& next) const;
  void take_value(std::size_t end, std::size_t behind, bool closed);
  void add_argument(std::string_view key, const Json& value);

  // calls_loose.cpp
  Progress step_pythonic();
  Progress step_braces();

  OutputFormat format_;
  OutputParserOptions options_;
  std::vector<Marker> markers_;  // markers that may stand in text
  std::string buffer_;
  std::size_t consumed_ = 0;  // bytes of the output in front of buffer_
  bool last_ = false;

  const OutputRegion* region_ = nullptr;  // nullptr: in text
  const CallForm* form_ = nullptr;        // form of the call in hand: one of region_
  bool broken_ = false;                   // true: the region's calls are malformed, and its bytes are text
  bool has_call_ = false;                 // true: the region has a call
  Phase phase_ = Phase::between;
  Texts marks_;  // markers of the region: no name, key or text holds one

  // A text that grows. White space at its end waits for more text; white space between the text and a region is dropped.
  struct Sink {
    std::string all, held;
    bool after_region = false;
    OutputSpan held_span{};  // place of `held`, unless `held` is empty
  };
  Sink text_, reasoning_;

  // A header as it comes: its text behind `start`, and behind `channel`.
  struct Header {
    bool in_hand = false, has_start = false, has_channel = false;
    std::string role, channel;
  };
  Header header_;
  bool may_begin_with_header_ = false;  // the prompt may hold the beginning of the first header, or the first recipient's mark

  struct Call {
    std::string name, id, arguments;
    bool ended = false, broken = false;
  };
  std::vector<Call> calls_;
  output::JsonExtent extent_;
  output::JsonValueEnd value_end_;  // end of a parameter that is JSON
  output::LooseExtent loose_;       // end of a call that is not JSON
  // The bytes that have been read of an object whose members are coming.
  std::string object_;
  std::size_t value_begin_ = 0;
  std::string name_, id_, early_arguments_, held_;
  bool in_value_ = false, streams_ = false, first_parameter_ = true;

  // A parameter whose value is in hand: where the value begins in buffer_, how far its end was looked for, and the markers met there.
  struct Value {
    std::string key, attributes;
    std::size_t begin = 0, scanned = 0;
    std::optional<std::size_t> close, weak_end;  // the last close marker; the first possible end with more text behind
    bool in_hand = false, is_json = false;
  };
  Value value_;
};

}  // namespace tessera
