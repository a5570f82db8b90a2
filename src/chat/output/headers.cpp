// Parses messages that begin with a header, such as <|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>.
//
// A header needs an end marker (here <|message|>). If, before this marker, a line ends, another message begins, a dropped marker comes
// (OutputFormat::dropped), or more than kLongestHeader bytes were read, the header is given up: its markers, its role and the name of its
// channel are dropped, and the bytes after them count as text of the channel.
#include <algorithm>

#include "chat/output/blanks.hpp"
#include "chat/output/parser_state.hpp"

namespace tessera {
namespace {

using chat_output::kBlanks;
constexpr std::size_t kLongestHeader = 512;  // in bytes

std::string_view first_word(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  return text.substr(begin, std::min(text.find_first_of(kBlanks, begin), text.size()) - begin);
}

}  // namespace

// Called at the beginning of the output. If the output begins with a recipient (" to=functions.f"), the output goes on with a header whose
// first part is the end of the prompt, so the following bytes are read as this header.
OutputParser::State::Progress OutputParser::State::step_begun_header() {
  const std::string_view recipient = format_.header->recipient;
  const std::size_t begin = buffer_.find_first_not_of(kBlanks);
  const std::string_view rest = begin == buffer_.npos ? std::string_view() : std::string_view(buffer_).substr(begin);
  if (!last_ && rest.size() < recipient.size() && recipient.starts_with(rest)) return Progress::waits;
  may_begin_with_header_ = false;
  if (rest.starts_with(recipient)) header_ = {.in_hand = true, .role = {}, .channel = {}};
  return Progress::made;
}

void OutputParser::State::begin_header(std::string_view marker) {
  may_begin_with_header_ = false;
  if (!format_.header || (marker != format_.header->start && marker != format_.header->channel)) return;
  header_ = {.in_hand = true, .has_start = marker == format_.header->start, .has_channel = marker == format_.header->channel, .role = {}, .channel = {}};
}

OutputParser::State::Progress OutputParser::State::step_header() {
  const MessageHeader& form = *format_.header;
  Texts markers{form.end, form.channel, form.start, "\n"};
  markers.insert(markers.end(), form.blank.begin(), form.blank.end());
  const std::size_t others = markers.size();
  markers.insert(markers.end(), format_.dropped.begin(), format_.dropped.end());
  const Found found = find(markers);
  (header_.has_channel ? header_.channel : header_.role).append(buffer_, 0, found.at);
  consume(found.at);
  if (header_.role.size() + header_.channel.size() > kLongestHeader) {
    give_up_header();
    return Progress::made;
  }
  if (found.size == 0) return Progress::waits;
  const bool is_other = found.index >= others && markers[found.index] != form.start;
  if (found.index == 3 || is_other || markers[found.index] == form.start) {
    give_up_header();
    return Progress::made;
  }
  consume(found.size);
  if (found.index == 0) read_header();
  else if (found.index == 1 && !header_.has_channel) header_.has_channel = true;
  else (header_.has_channel ? header_.channel : header_.role) += ' ';
  return Progress::made;
}

void OutputParser::State::enter_kind(RegionKind kind) {
  const auto region = std::ranges::find(format_.regions, kind, &OutputRegion::kind);
  if (region != format_.regions.end()) enter(&*region);
}

void OutputParser::State::read_header() {
  const MessageHeader& form = *format_.header;
  header_.in_hand = false;
  const std::string all = header_.role + ' ' + header_.channel;
  const auto calls = std::ranges::find(format_.regions, RegionKind::calls, &OutputRegion::kind);
  if (const std::size_t to = all.find(form.recipient); to != all.npos && calls != format_.regions.end()) {
    std::string name(first_word(std::string_view(all).substr(to + form.recipient.size())));
    if (name.starts_with(form.prefix)) name.erase(0, form.prefix.size());
    if (is_name(name) && name != form.role) {
      enter(&*calls);
      form_ = &calls->call;
      begin_call(std::move(name), {});
      return;
    }
  }
  const std::string_view channel = first_word(header_.channel);
  const auto known = std::ranges::find(form.channels, channel, &MessageHeader::Channel::name);
  enter_kind(known != form.channels.end() ? known->kind : RegionKind::text);
}

void OutputParser::State::give_up_header() {
  const MessageHeader& form = *format_.header;
  Header header = std::exchange(header_, {});
  if (header.has_start && header.role.starts_with(form.role)) header.role.erase(0, form.role.size());
  RegionKind kind = RegionKind::text;
  for (const MessageHeader::Channel& channel : form.channels) {
    if (!header.has_channel || !header.channel.starts_with(channel.name)) continue;
    kind = channel.kind;
    header.channel.erase(0, channel.name.size());
    break;
  }
  if (header.has_channel) enter_kind(kind);
  give_back(header.role + header.channel);
}

}  // namespace tessera
