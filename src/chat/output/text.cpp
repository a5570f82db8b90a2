// Reads text and reasoning, and the markers between them.
#include <algorithm>
#include <cctype>

#include "chat/output/parser_state.hpp"
#include "core/empty.hpp"
#include "core/error.hpp"

namespace tessera {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

}  // namespace

OutputParser::State::State(const OutputFormat& format, OutputParserOptions options)
    : format_(format), options_(std::move(options)) {
  if (format_.header) {
    for (const std::string* text : {&format_.header->start, &format_.header->channel}) markers_.push_back({*text, nullptr});
  } else {
    for (const OutputRegion& region : format_.regions) {
      for (const std::string& open : region.open) markers_.push_back({open, &region});
    }
  }
  for (const std::string& text : format_.dropped) markers_.push_back({text, nullptr});
  may_begin_with_header_ = (format_.header || format_.recipients) && !options_.starts_in_reasoning;
  if (options_.starts_in_reasoning) {
    for (const OutputRegion& region : format_.regions) {
      if (region.kind == RegionKind::reasoning && region_ == nullptr) region_ = &region;
    }
  }
}

void OutputParser::State::push(std::string_view text) {
  buffer_ += text;
  while (step() == Progress::made) {
  }
}

void OutputParser::State::finish(OutputEnd end) {
  last_ = end == OutputEnd::whole;  // if the output was cut off, bytes that may become a marker are not turned into text
  push({});
  if (last_ && header_.in_hand) {
    give_up_header();
    push({});
  }
  if (region_ != nullptr && region_->kind == RegionKind::calls && !broken_) {
    if (phase_ == Phase::close) end_call();  // only the call's closing marker is missing; its arguments are complete
    // If no call is under way, the region's bytes are text. If a call has begun, the program has got its bytes as deltas.
    if (last_ && (calls_.empty() || calls_.back().ended)) {
      malformed();
      push({});
    }
  }
  if (!last_ && !buffer_.empty()) text_.held.clear();  // white space before a possible marker is dropped with it
  buffer_.clear();
  if (!text_.after_region && !text_.held.empty()) {
    if (!text_.held.empty()) add_span(text_.held_span);
    deltas.push_back({.kind = OutputDelta::Kind::text, .text = text_.held});
    text_.all += std::exchange(text_.held, {});
  }
}

OutputParser::State::Progress OutputParser::State::step() {
  if (header_.in_hand) return step_header();
  if (region_ == nullptr && may_begin_with_header_) return format_.header ? step_begun_header() : step_begun_recipient();
  if (region_ == nullptr) return step_text();
  if (region_->kind == RegionKind::calls && !broken_) return step_calls();
  return step_region();
}

// Returns the first of `markers` in the buffer from offset `from` on; of several markers at one offset, the longest. If there is none,
// returns size 0, and as `at` the first offset at which a marker may still begin when more bytes come; nothing before that offset belongs
// to a marker.
OutputParser::State::Found OutputParser::State::find(const Texts& markers, std::size_t from) const {
  const std::string_view buffer = buffer_;
  bool begins[256] = {};
  for (const std::string_view marker : markers) begins[static_cast<unsigned char>(marker[0])] = true;
  for (std::size_t at = from; at < buffer.size(); ++at) {
    if (!begins[static_cast<unsigned char>(buffer[at])]) continue;
    const std::string_view rest = buffer.substr(at);
    Found found{at, 0, 0};
    bool unsure = false;
    for (std::size_t i = 0; i < markers.size(); ++i) {
      if (rest.starts_with(markers[i])) {
        if (markers[i].size() > found.size) found = {at, markers[i].size(), i};
      } else if (!last_ && markers[i].starts_with(rest)) {
        unsure = true;
      }
    }
    if (unsure) return {at, 0, 0};
    if (found.size > 0) return found;
  }
  return {std::max(from, buffer.size()), 0, 0};
}

// Returns whether the marker at offset `at` really opens its region. nullopt: not clear before more bytes come.
std::optional<bool> OutputParser::State::may_open(const Marker& marker, std::size_t at) const {
  const OutputRegion* region = marker.opens;
  if (region != nullptr && format_.recipients && marker.text == format_.recipients->mark) return names_call(at + marker.text.size());
  if (region == nullptr || !region->at_start) return true;
  if (!text_.all.empty() || buffer_.find_first_not_of(kBlank) < at || !calls_.empty()) return false;
  if (region->call.syntax != CallSyntax::pythonic) return true;
  // The region must begin with "[name(". Any other list is text.
  std::size_t i = buffer_.find_first_not_of(kBlank, at + marker.text.size());
  const std::size_t name = i;
  while (i < buffer_.size() && (std::isalnum(static_cast<unsigned char>(buffer_[i])) != 0 || buffer_[i] == '_' || buffer_[i] == '.')) ++i;
  if (i >= buffer_.size()) {
    if (last_) return false;
    return std::nullopt;
  }
  return i > name && buffer_[i] == '(';
}

OutputParser::State::Progress OutputParser::State::step_text() {
  std::vector<std::string_view> texts;
  std::vector<const Marker*> markers;
  for (const Marker& marker : markers_) {
    texts.push_back(marker.text);
    markers.push_back(&marker);
  }
  const Found found = find(texts);
  if (found.size == 0) {
    if (found.at == 0) return Progress::waits;
    put(OutputDelta::Kind::text, std::string_view(buffer_).substr(0, found.at));
    consume(found.at);
    return Progress::made;
  }
  const Marker& marker = *markers[found.index];
  const auto opens = may_open(marker, found.at);
  if (!opens) {
    if (!format_.recipients || found.at == 0) return Progress::waits;
    // It is not clear yet whether the mark begins a call. The bytes before the mark are text in any case.
    put(OutputDelta::Kind::text, std::string_view(buffer_).substr(0, found.at));
    consume(found.at);
    return Progress::made;
  }
  const std::size_t text = *opens ? found.at : found.at + found.size;
  put(OutputDelta::Kind::text, std::string_view(buffer_).substr(0, text));
  if (!*opens) {
    consume(text);
    return Progress::made;
  }
  consume(found.at + (marker.opens != nullptr && marker.opens->keeps_open ? 0 : found.size));
  if (marker.opens != nullptr) enter(marker.opens);
  else begin_header(marker.text);
  return Progress::made;
}

// Reads the contents of a region whose contents are passed on as they are: reasoning, text, or malformed calls, which become text without
// their markers. The region ends at its end marker. In a region of malformed calls, the opening marker of a call begins a new call.
OutputParser::State::Progress OutputParser::State::step_region() {
  const bool is_calls = region_->kind == RegionKind::calls;
  const auto kind = region_->kind == RegionKind::reasoning ? OutputDelta::Kind::reasoning : OutputDelta::Kind::text;
  Texts markers(region_->close.begin(), region_->close.end());
  const std::size_t closes = markers.size();
  if (format_.header) markers.insert(markers.end(), {format_.header->start, format_.header->channel});
  const std::size_t headers = markers.size();
  if (is_calls) markers.insert(markers.end(), marks_.begin(), marks_.end());
  const Found found = find(markers);
  if (found.size == 0 && found.at == 0) return Progress::waits;
  put(kind, std::string_view(buffer_).substr(0, found.at));
  if (found.size == 0) {
    consume(found.at);
    return Progress::made;
  }
  if (found.index < closes) {
    consume(found.at + found.size);
    leave();
  } else if (found.index < headers) {
    consume(found.at);  // a new message begins although this one has no end marker
    leave();
  } else {
    const std::string_view mark = markers[found.index];
    const bool begins_call = !region_->keeps_open && (mark == region_->call.open || std::ranges::find(region_->open, mark) != region_->open.end());
    consume(found.at + (begins_call ? 0 : found.size));
    if (begins_call) enter(region_);
  }
  return Progress::made;
}

void OutputParser::State::put(OutputDelta::Kind kind, std::string_view text) {
  Sink& sink = kind == OutputDelta::Kind::text ? text_ : reasoning_;
  // White space at the beginning of the reasoning is dropped, and so is white space at the beginning of the text if a region came before the
  // text. White space at the very beginning of the output belongs to the text.
  if (sink.all.empty() && (kind == OutputDelta::Kind::reasoning || sink.after_region)) {
    sink.held.clear();
    text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  }
  const std::size_t end = text.find_last_not_of(kBlank) + 1;  // 0 if the text is only white space
  const std::size_t at = consumed_ + static_cast<std::size_t>(text.data() - buffer_.data());
  if (end == 0) {
    sink.held_span = {sink.held.empty() ? at : sink.held_span.begin, at + text.size()};
    sink.held += text;
    return;
  }
  if (kind == OutputDelta::Kind::text) {
    if (!sink.held.empty()) add_span(sink.held_span);
    add_span({at, at + end});
  }
  sink.held_span = {at + end, at + text.size()};
  std::string more = std::exchange(sink.held, std::string(text.substr(end)));
  more += text.substr(0, end);
  sink.after_region = false;
  sink.all += more;
  deltas.push_back({.kind = kind, .text = std::move(more)});
}

void OutputParser::State::enter(const OutputRegion* region) {
  region_ = region;
  text_.after_region = true;
  phase_ = Phase::between;
  broken_ = has_call_ = false;
  if (region->kind == RegionKind::calls) collect_marks();
}

void OutputParser::State::leave() {
  region_ = nullptr;
  text_.after_region = true;
  reasoning_.held.clear();
  if (!reasoning_.all.empty()) reasoning_.held = "\n";  // separates this reasoning from more reasoning that may follow
}

void OutputParser::State::consume(std::size_t bytes) {
  bytes = std::min(bytes, buffer_.size());
  buffer_.erase(0, bytes);
  consumed_ += bytes;
}

void OutputParser::State::give_back(std::string bytes) {
  buffer_.insert(0, bytes);
  consumed_ -= std::min(consumed_, bytes.size());
}

void OutputParser::State::add_span(OutputSpan span) {
  if (!text_spans.empty() && text_spans.back().end == span.begin) text_spans.back().end = span.end;
  else text_spans.push_back(span);
}

Message OutputParser::State::message() const {
  Message message;
  message.role = "assistant";
  message.content = text_.all;
  message.reasoning = reasoning_.all;
  for (const Call& call : calls_) {
    auto arguments = Json::parse(call.arguments);
    const bool is_object = arguments && arguments->members() != nullptr && output::is_finite(*arguments);
    message.tool_calls.push_back({call.id, call.name, is_object ? *std::move(arguments) : Json(call.arguments)});
  }
  return message;
}

OutputParser::OutputParser(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
OutputParser::OutputParser() noexcept = default;
OutputParser::OutputParser(OutputParser&&) noexcept = default;
OutputParser& OutputParser::operator=(OutputParser&&) noexcept = default;
OutputParser::~OutputParser() = default;

Result<OutputParser> OutputParser::create(const OutputFormat& format, OutputParserOptions options) noexcept {
  return detail::guard([&]() -> Result<OutputParser> {
    for (const OutputRegion& region : format.regions) {
      const bool empty = std::any_of(region.open.begin(), region.open.end(), [](const auto& text) { return text.empty(); }) ||
                         std::any_of(region.close.begin(), region.close.end(), [](const auto& text) { return text.empty(); });
      if (empty || region.open.empty()) {
        return detail::make_error(ErrorCode::invalid_argument, "the output format '{}' has an empty marker", format.name);
      }
    }
    return OutputParser(std::make_unique<State>(format, std::move(options)));
  });
}

Result<std::vector<OutputDelta>> OutputParser::push(std::string_view text) noexcept {
  return detail::guard([&]() -> Result<std::vector<OutputDelta>> {
    if (state_ == nullptr) return detail::empty_handle("OutputParser");
    state_->push(text);
    return std::exchange(state_->deltas, {});
  });
}

Result<std::vector<OutputDelta>> OutputParser::finish(OutputEnd end) noexcept {
  return detail::guard([&]() -> Result<std::vector<OutputDelta>> {
    if (state_ == nullptr) return detail::empty_handle("OutputParser");
    state_->finish(end);
    return std::exchange(state_->deltas, {});
  });
}

Result<std::vector<OutputSpan>> OutputParser::take_text_spans() noexcept {
  return detail::guard([&]() -> Result<std::vector<OutputSpan>> {
    if (state_ == nullptr) return detail::empty_handle("OutputParser");
    return std::exchange(state_->text_spans, {});
  });
}

Result<Message> OutputParser::message() const noexcept {
  return detail::guard([&]() -> Result<Message> {
    if (state_ == nullptr) return detail::empty_handle("OutputParser");
    return state_->message();
  });
}

}  // namespace tessera
