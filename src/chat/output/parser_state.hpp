// The parser's inside. Text is consumed from the front of buffer_; what may still be the beginning of a marker waits
// there. Every decision depends on bytes alone and never on how they were cut.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/chat/output_parser.hpp>

#include "chat/output/json_extent.hpp"

namespace tessera {

struct [[gnu::visibility("hidden")]] OutputParser::State {
  State(const OutputFormat& format_, OutputParserOptions options_);

  void push(std::string_view text);
  void finish(OutputEnd end);
  [[nodiscard]] Message message() const;
  std::vector<OutputDelta> deltas;

 private:
  enum class Progress : std::uint8_t { made, waits };  // waits: for more bytes
  enum class Phase : std::uint8_t { between, name, arguments, close };
  struct Found {
    std::size_t at = 0, size = 0;  // of the marker; size 0: none, and all before `at` is no part of one
    std::size_t index = 0;         // of the marker in the list
  };
  struct Marker {
    std::string_view text;
    const OutputRegion* opens = nullptr;  // nullptr: dropped
  };

  // text.cpp: what stands outside of calls
  Progress step();
  Progress step_text();
  Progress step_region();
  [[nodiscard]] Found find(const std::vector<std::string_view>& markers) const;
  [[nodiscard]] std::optional<bool> may_open(const Marker& marker, std::size_t at) const;
  void put(OutputDelta::Kind kind, std::string_view text);
  void enter(const OutputRegion* region);
  void leave();

  // calls.cpp
  Progress step_calls();
  Progress step_between();
  Progress step_json();
  Progress step_name();
  Progress step_raw_arguments();
  Progress step_parameters();
  Progress step_close();
  Progress step_pythonic();
  Progress step_braces();
  [[nodiscard]] std::optional<bool> starts_with(std::string_view marker) const;  // nullopt: too short to tell
  [[nodiscard]] std::optional<std::size_t> search(std::string_view marker);
  void consume(std::size_t bytes);
  void skip_space(std::string_view more = {});
  void begin_call(std::string name, std::string id);
  void add_arguments(std::string_view text);
  void stream_arguments(std::string_view text);
  void end_call();
  void malformed();
  [[nodiscard]] const Json* parameter_schema(std::string_view key) const;  // nullptr: the tools do not say
  [[nodiscard]] Json parameter_value(std::string_view key, std::string value, std::string_view attributes) const;

  OutputFormat format_;
  OutputParserOptions options_;
  std::vector<Marker> markers_;  // that stand in text
  std::string buffer_;
  bool last_ = false;
  std::size_t scanned_ = 0;  // bytes of buffer_ in which a search has found nothing

  const OutputRegion* region_ = nullptr;  // nullptr: in text
  bool broken_ = false;                   // a region of calls that are none: its bytes are text
  Phase phase_ = Phase::between;

  // White space at the end of text waits for more text; between text and a region it is nobody's.
  struct Sink {
    std::string all, held;
    bool after_region = false;
  };
  Sink text_, reasoning_;

  struct Call {
    std::string name, id, arguments;
    bool begun = false, ended = false;
  };
  std::vector<Call> calls_;
  output::JsonExtent extent_;
  output::JsonValueEnd value_end_;  // of a parameter that is JSON
  // Of an object whose members come: what has been read of it.
  std::string object_;
  std::size_t value_begin_ = 0;
  std::string name_, id_, early_arguments_, held_;
  bool in_value_ = false, first_parameter_ = true;
};

}  // namespace tessera
