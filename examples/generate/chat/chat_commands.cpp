// The commands that begin with a slash.
#include <charconv>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "chat/chat.hpp"
#include "chat/chat_input.hpp"
#include "failure.hpp"
#include "sampler.hpp"
#include "output/terminal.hpp"
#include "terminal_text.hpp"
#include "system/program.hpp"

using tessera::ErrorCode;
using tessera::Json;
using tessera::Message;

namespace {

constexpr std::string_view kHelp =
    "/help            this\n"
    "/system [TEXT]   sets the system message, or shows it\n"
    "/retry           another answer to the last message\n"
    "/undo            takes back the last message and its answer\n"
    "/reset           forgets everything but the system message\n"
    "/compact [N]     puts a summary in the place of all turns but the last N (2)\n"
    "/drop [N]        takes all turns but the last N (2) out\n"
    "/set [NAME VALUE] shows or sets temperature, top-p, length and so on\n"
    "/lora [NAME SCALE] lists the adapters of --lora, or changes the scale of one; 0: not used\n"
    "/think on|off|N  whether the model thinks first, if it can be told; N tokens at most\n"
    "/save FILE       writes the conversation as JSON; generate --render reads it too\n"
    "/load FILE       goes on from a saved conversation\n"
    "/tokens          what the model reads of it all, token by token\n"
    "/stats           what was read and written so far\n"
    "/quit            ends, as Ctrl-D does\n"
    "A line that ends in \\ goes on with the next one; // begins a message with a slash.\n";

std::string trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\n");
  if (begin == text.npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\n") + 1 - begin));
}

std::string needed(const std::string& argument, const char* usage) {
  if (argument.empty()) throw Failure(ErrorCode::invalid_argument, usage);
  return argument;
}

// Parses a number of turns or tokens; nullopt: the text is no number.
std::optional<std::size_t> number(const std::string& text) {
  std::size_t n = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, n);
  return error == std::errc() && stop == end ? std::optional(n) : std::nullopt;
}

}  // namespace

Chat::Next Chat::command(std::string_view line) {
  const std::size_t space = std::min(line.find_first_of(" \t\n"), line.size());
  const std::string_view name = line.substr(0, space);
  const std::string argument = trimmed(line.substr(space));
  if (name == "/help") help();
  else if (name == "/system") set_system(argument);
  else if (name == "/retry") retry();
  else if (name == "/undo") undo();
  else if (name == "/reset") reset();
  else if (name == "/think") think(argument);
  else if (name == "/set") set(argument);
  else if (name == "/lora") lora(argument);
  else if (name == "/compact" || name == "/drop") compact(name, argument);
  else if (name == "/save") save(needed(argument, "/save needs the name of a file"));
  else if (name == "/load") load(needed(argument, "/load needs the name of a file"));
  else if (name == "/tokens") show_tokens();
  else if (name == "/stats") show_statistics();
  else if (name == "/quit" || name == "/exit") return Next::leave;
  else throw Failure(ErrorCode::invalid_argument, fmt::format("there is no command {}; /help lists those that there are", name));
  return Next::go_on;
}

void Chat::help() const { fmt::print(stderr, "{}", kHelp); }

void Chat::reset() {
  auto& list = messages();
  const bool system = !list.empty() && list.front().role == "system";
  list.resize(system ? 1 : 0);
  statistics_ = {};
}

void Chat::set_system(const std::string& text) {
  auto& list = messages();
  const bool there = !list.empty() && list.front().role == "system";
  if (text.empty()) {
    fmt::print(stderr, "{}\n", there ? tessera::tool::shown(list.front().content, tessera::tool::Lines::kept)
                                     : "none but what the template may say by itself");
  } else if (there) {
    list.front() = {.role = "system", .content = text};
  } else {
    list.insert(list.begin(), Message{.role = "system", .content = text});
  }
}

void Chat::retry() {
  auto& list = messages();
  std::size_t end = list.size();
  while (end > 0 && list[end - 1].role != "user") --end;
  if (end == 0) throw Failure(ErrorCode::invalid_argument, "there is nothing to answer yet");
  const std::vector<Message> before = list;
  list.resize(end);
  ++seed_;
  answer();
  if (messages().size() < end) messages() = before;  // no new answer was made
}

void Chat::undo() {
  auto& list = messages();
  const std::size_t before = list.size();
  forget_turn();
  if (list.size() == before) throw Failure(ErrorCode::invalid_argument, "there is nothing to take back");
  std::size_t turns = 0;
  for (const Message& message : list) turns += message.role == "user" ? 1 : 0;
  fmt::print(stderr, "{} {} left\n", turns, turns == 1 ? "turn" : "turns");
}

void Chat::compact(std::string_view name, const std::string& argument) {
  tessera::CompactionOptions how;
  if (!argument.empty()) {
    const auto turns = number(argument);
    if (!turns) throw Failure(ErrorCode::invalid_argument, fmt::format("{} [N], N being how many turns stay", name));
    how.keep_turns = *turns;
  }
  if (name == "/compact") return summarise(std::move(how));
  const Interruptible work(interrupts_);
  how.stop = work.token();
  show(value(conversation_.drop_old(how)), how.keep_turns);
}

void Chat::summarise(tessera::CompactionOptions how) {
  const Interruptible work(interrupts_);
  how.stop = work.token();
  tessera::Sampler drawing = make_sampler(options_, seed_);
  show(value(conversation_.summarise_old(drawing, how)), how.keep_turns);
}

void Chat::show(const tessera::Compaction& done, std::size_t keep_turns) const {
  if (done.messages == 0) {
    fmt::print(stderr, "there is nothing older than the last {} turns\n", keep_turns);
    return;
  }
  if (!done.summary.empty()) fmt::print(stderr, "{}\n", tessera::tool::shown(done.summary, tessera::tool::Lines::kept));
  fmt::print(stderr, "[{} messages are gone; {} tokens instead of {}, of which {} were kept]\n", done.messages, done.tokens_after,
             done.tokens_before, done.kept);
}

void Chat::think(const std::string& how) {
  most_reasoning_ = how == "on" || how == "off" ? std::nullopt : number(how);
  if (how != "on" && how != "off" && !most_reasoning_) {
    throw Failure(ErrorCode::invalid_argument, "/think on, /think off, or /think N for N tokens at most");
  }
  auto& arguments = conversation_.request().arguments;
  std::erase_if(arguments, [](const auto& argument) { return argument.first == "enable_thinking"; });
  arguments.emplace_back("enable_thinking", how != "off");
}

// Saves the conversation. Writes a new file beside the old file first, so that a full disk leaves the old file as it was.
void Chat::save(const std::string& path) {
  std::error_code error;
  const std::filesystem::path target = tessera::tool::path_of(path), part = tessera::tool::path_of(path + ".part");
  if (path != own_file_ && std::filesystem::exists(target, error) && std::filesystem::file_size(target, error) != 0) {
    throw Failure(ErrorCode::invalid_argument, fmt::format("{}: is there already; choose another name", path));
  }
  std::ofstream file(part, std::ios::binary);
  file << conversation_.request().to_json().dump() << '\n';
  file.close();
  error.clear();
  if (file) std::filesystem::rename(part, target, error);
  if (!file || error) {
    std::filesystem::remove(part, error);
    throw Failure(ErrorCode::io, fmt::format("{}: cannot write", path));
  }
  own_file_ = path;
}

void Chat::load(const std::string& path) {
  if (path == "-") throw Failure(ErrorCode::invalid_argument, "/load needs a file: standard input is the conversation");
  auto& request = conversation_.request();
  tessera::ChatRequest old = std::exchange(request, value(tessera::ChatRequest::from_json(read_json(path))));
  request.add_generation_prompt = true;
  if (request.tools.empty()) request.tools = old.tools;
  const auto prompt = conversation_.prompt();
  if (!prompt && !request.messages.empty()) {
    request = std::move(old);
    throw Failure(prompt.error());
  }
  own_file_ = path;
  fmt::print(stderr, "{} messages\n", request.messages.size());
}

// Shows the conversation's text with a bar between tokens.
void Chat::show_tokens() {
  const tessera::Tokenizer& tokenizer = conversation_.session().engine().tokenizer();
  const auto tokens = value(conversation_.prompt());
  std::string text;
  for (const tessera::Token token : tokens) {
    if (!text.empty()) text += "|";
    text += tessera::tool::shown(tokenizer.is_control(token) ? tokenizer.text(token) : tokenizer.piece(token),
                                 tessera::tool::Lines::kept);
  }
  fmt::print(stderr, "{}{}{} of {} tokens\n", text, text.empty() ? "" : "\n", tokens.size(), conversation_.session().context());
}

void Chat::show_statistics() const {
  const ChatStatistics& s = statistics_;
  const tessera::Session& session = conversation_.session();
  fmt::print(stderr,
             "{} answers in {}: {} tokens read, {} kept from before, {} written\n"
             "{} of {} tokens of the context, {} of keys and values; calls and reasoning are read as \"{}\"; seed {}\n",
             s.answers, human_seconds(s.seconds), s.read, s.kept, s.tokens, session.tokens().size(), session.context(),
             human_bytes(session.kv().bytes()), conversation_.output_format().name, seed_);
}
