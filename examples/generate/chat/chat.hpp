// --chat: a conversation at the terminal, or with lines from a pipe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/conversation/conversation.hpp>
#include <tessera/grammar/compiled.hpp>

#include "chat/line_reader.hpp"
#include "interrupts.hpp"
#include "options.hpp"

inline constexpr std::size_t kLongestAnswer = 1024;  // tokens, without -n

// Figures since the program began, or since /reset.
struct ChatStatistics {
  std::size_t answers = 0;
  std::size_t read = 0, kept = 0;  // tokens of prompts: read were computed, kept were in the session already
  std::size_t tokens = 0;          // tokens of answers
  double seconds = 0.0;            // seconds of reading and writing
};

class Chat {
 public:
  // `adapters`: the adapters of --lora, with which the conversation begins.
  Chat(const Options& options, tessera::Conversation conversation, std::vector<tessera::AdapterUse> adapters, Interrupts& interrupts,
       LineReader& lines, std::string model);
  // Runs until the lines end. Returns the exit status: 1 if a turn failed and no user was at the terminal to see it.
  [[nodiscard]] int run();

 private:
  enum class Next { go_on, leave };

  // chat.cpp
  void greet() const;
  [[nodiscard]] std::optional<std::string> read_turn();
  void ask(std::string text);
  void answer();
  [[nodiscard]] bool answer_once();
  [[nodiscard]] Next give_results(const std::vector<tessera::ToolCall>& calls);
  void fail(std::string_view what);
  void settle();
  void forget_turn();  // removes the user's last message and all messages after it
  [[nodiscard]] bool asks_once() const { return options_.prompt || options_.prompt_file; }
  [[nodiscard]] bool has_tools() const { return options_.tools_file && options_.tool_choice != "none"; }
  [[nodiscard]] std::optional<tessera::Matcher> matcher();
  void warn_of_tools();
  [[nodiscard]] tessera::Sampler sampler(std::optional<tessera::Matcher> matcher) const;
  [[nodiscard]] std::vector<tessera::Message>& messages() noexcept { return conversation_.request().messages; }

  // chat_room.cpp
  void make_room();  // before an answer: removes the oldest turns, as Options::when_full says
  [[nodiscard]] bool lacks_room();

  // chat_settings.cpp
  void set(const std::string& argument);

  // chat_adapters.cpp
  void lora(const std::string& argument);
  void list_adapters() const;

  // chat_commands.cpp
  [[nodiscard]] Next command(std::string_view line);
  void help() const;
  void reset();
  void set_system(const std::string& text);
  void retry();
  void undo();
  void think(const std::string& how);
  void compact(std::string_view name, const std::string& argument);
  void summarise(tessera::CompactionOptions how);
  void show(const tessera::Compaction& done, std::size_t keep_turns) const;
  void save(const std::string& path);
  void load(const std::string& path);
  void show_tokens();
  void show_statistics() const;

  Options options_;  // /set changes them
  tessera::Conversation conversation_;
  Interrupts& interrupts_;
  LineReader& lines_;
  std::string model_;
  std::vector<tessera::AdapterUse> adapters_;  // all adapters of --lora, also with scale 0
  std::string own_file_{};  // the file that /save may overwrite
  std::optional<tessera::Grammar> constraint_;
  std::optional<tessera::CompiledGrammar> compiled_;
  std::optional<std::size_t> most_reasoning_;  // tokens
  std::uint64_t seed_;
  std::vector<std::string> told_warnings_;  // warnings about tools that have been printed
  bool failed_ = false, left_ = false;
  tessera::FinishReason finish_ = tessera::FinishReason::none;  // finish reason of the last answer
  ChatStatistics statistics_;
};
