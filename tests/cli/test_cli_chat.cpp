// --chat: lines in, answers out; on a terminal, with Ctrl-C.
#include <poll.h>

#include <algorithm>
#include <cstdlib>

#include "program.hpp"

namespace test_cli_chat {

using namespace tessera::tests::cli;

namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

// The program on a terminal of its own.
class Terminal {
 public:
  explicit Terminal(const Args& args) : master_(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    REQUIRE(master_ >= 0);
    REQUIRE(grantpt(master_) == 0);
    REQUIRE(unlockpt(master_) == 0);
    const std::string name = ptsname(master_);
    std::vector<char*> argv = {const_cast<char*>(kProgram.c_str())};
    for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
    argv.push_back(nullptr);
    // The first terminal that the leader of a session opens is the one whose Ctrl-C it gets.
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, name.c_str(), O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&files, 0, 1);
    posix_spawn_file_actions_adddup2(&files, 0, 2);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t usual;
    sigemptyset(&usual);
    sigaddset(&usual, SIGINT);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    REQUIRE(posix_spawn(&pid_, kProgram.c_str(), &files, &attributes, argv.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    close(master_);
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    (void)wait_for(pid_);
  }

  void type(const std::string& keys) { REQUIRE(write(master_, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size())); }

  // Returns the output since the last wait, up to the text that comes first. Fails after a minute of silence.
  std::string until(const std::vector<std::string>& texts) {
    for (;;) {
      std::size_t end = std::string::npos;
      for (const std::string& text : texts) {
        const std::size_t at = unread_.find(text);
        if (at != std::string::npos) end = std::min(end, at + text.size());
      }
      if (end != std::string::npos) {
        std::string shown = unread_.substr(0, end);
        unread_.erase(0, end);
        return shown;
      }
      pollfd wait{master_, POLLIN, 0};
      char bytes[4096];
      const bool came = poll(&wait, 1, 60000) > 0;
      const ssize_t n = came ? read(master_, bytes, sizeof(bytes)) : -1;
      if (n <= 0) FAIL("the terminal shows no \"" << texts.at(0) << "\" but: " << unread_);
      unread_.append(bytes, static_cast<std::size_t>(n));
    }
  }

  int end() {
    const int status = wait_for(pid_);
    pid_ = -1;
    return status;
  }

 private:
  int master_;
  pid_t pid_ = -1;
  std::string unread_;
};

constexpr const char* kRoles =
    "{% for m in messages %}{% if m.content == 'refuse' %}{{ raise_exception('not this') }}{% endif %}"
    "{{ m.role[0] }}:{{ m.content }}\n{% endfor %}a:{# <tool_call> #}";

}  // namespace

TEST_CASE("each line is a turn, each answer a line, and the context is kept between them") {
  if (lacks_program()) return;
  const Args args = {"--chat", "--seed", "3", "-n", "30"};
  const Outcome got = run(args, "One day a dog came.\n\nThen it\\\nran away.\n");
  CHECK(got.status == 0);
  CHECK(count(got.err, "30 tokens written") + count(got.err, "the end") >= 2);
  CHECK(count(got.err, " read, 0 kept;") == 1);
  CHECK(count(got.err, "no chat template") == 1);
  CHECK_FALSE(got.out.empty());
  CHECK(got.out.back() == '\n');
  CHECK(got.out.find("One day a dog came") == std::string::npos);
  CHECK(run(args, "One day a dog came.\n\nThen it\\\nran away.\n").out == got.out);
  CHECK(run(args, "").status == 0);
}

TEST_CASE("an undone turn leaves no trace, and a retried one is another") {
  if (lacks_program()) return;
  const TemporaryFile form(kRoles);
  const Args args = {"--chat", "--seed", "3", "-n", "12", "--template", form.path()};
  const Outcome plain = run(args, "One day a dog came.\nWhy?\n");
  const Outcome undone = run(args, "One day a dog came.\nThe cat!\n/undo\nWhy?\n");
  CHECK(undone.status == 0);
  CHECK(undone.err.find("1 turn left") != std::string::npos);
  const std::string first = run(args, "One day a dog came.\n").out;
  REQUIRE(plain.out.starts_with(first));
  CHECK(undone.out.starts_with(first));
  CHECK(undone.out.ends_with(plain.out.substr(first.size())));
  const Outcome retried = run(args, "One day a dog came.\n/retry\n");
  CHECK(retried.out.starts_with(first));
  CHECK(retried.out != first + first);
  CHECK(retried.err.find("[0 read, ") != std::string::npos);
  const Outcome reset = run(args, "The cat!\n/reset\nOne day a dog came.\n");
  CHECK(reset.out.ends_with(first));
}

TEST_CASE("a conversation is saved as what --render reads, and goes on where it was loaded") {
  if (lacks_program()) return;
  const TemporaryFile form(kRoles), saved, other;
  const Args args = {"--chat", "--greedy", "-n", "8", "--template", form.path(), "--system", "Be kind.", "--think", "off"};
  const Outcome whole = run(args, "One day a dog came.\n/save " + saved.path() + "\nWhy?\n/tokens\n/stats\n/system\n/help\n");
  CHECK(whole.status == 0);
  CHECK(whole.err.find("2 answers") != std::string::npos);
  CHECK(whole.err.find("Be kind.") != std::string::npos);
  CHECK(whole.err.find("/retry") != std::string::npos);
  CHECK(whole.err.find("|:|") != std::string::npos);
  const Outcome rendered = run({"--template", form.path(), "--render", saved.path()});
  CHECK(rendered.out.starts_with("s:Be kind.\nu:One day a dog came.\na:"));
  CHECK(slurp(saved.path()).find("\"enable_thinking\": false") != std::string::npos);
  const Outcome loaded = run({"--chat", "--greedy", "-n", "8", "--template", form.path()}, "/load " + saved.path() + "\nWhy?\n");
  CHECK(loaded.status == 0);
  CHECK(whole.out.ends_with(loaded.out));
  const Outcome system = run({"--chat", "--template", form.path(), "-n", "2"},
                             "/system Hi.\nA\n/save " + saved.path() + "\n/save " + other.path() + "\n/undo\nB\n/save " + other.path() + "\n/load -\n");
  CHECK(system.status == 1);
  CHECK(count(system.err, "is there already") == 1);  // what somebody else has saved
  CHECK(count(system.err, "/load needs a file") == 1);
  CHECK(slurp(saved.path()).find("Be kind.") != std::string::npos);
  CHECK(slurp(other.path()).find(R"([{"role": "system", "content": "Hi."}, {"role": "user", "content": "B"})") != std::string::npos);
}

TEST_CASE("a turn that fails is taken back, and the next one goes on") {
  if (lacks_program()) return;
  const TemporaryFile form(kRoles), broken("{\"messages\": 3}");
  const Args args = {"--chat", "--greedy", "-n", "8", "--template", form.path()};
  const Outcome got = run(args, "One day a dog came.\nrefuse\n/nonsense\n/undo now\n/undo\n/retry\n/load " + broken.path() +
                                    "\n/save\nOne day a dog came.\n");
  CHECK(got.status == 1);
  for (const char* told : {"not this", "no command /nonsense", "nothing to take back", "nothing to answer", "list of messages", "/save needs"}) {
    INFO(told);
    CHECK(count(got.err, told) == 1);
  }
  const std::string answer = run(args, "One day a dog came.\n").out;
  CHECK(got.out == answer + answer);
  const Outcome slash = run(args, "//help\n");
  CHECK(slash.status == 0);
  CHECK(slash.err.find("/retry") == std::string::npos);
}

TEST_CASE("tools are answered with JSON") {
  if (lacks_program()) return;
  const TemporaryFile form(kRoles);
  const TemporaryFile tools(R"([{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}])");
  const Args args = {"--chat", "--template", form.path(), "--tools", tools.path(), "--temp", "100", "--regex",
                     R"(<tool_call>\{"name": "add", "arguments": \{"a": 1\}\}</tool_call>|Done\.)", "--seed"};
  // A seed whose first answer is a call and whose second is text.
  for (int seed = 0; seed < 40; ++seed) {
    Args with = args;
    with.push_back(std::to_string(seed));
    const TemporaryFile saved;
    const Outcome got = run(with, "Add.\n{oops\n{\"sum\": 2}\n/save " + saved.path() + "\n");
    if (got.out != "[add {\"a\": 1}]\nDone.\n") continue;
    CHECK(got.status == 1);  // of the line that was no JSON
    CHECK(count(got.err, "JSON, line 1") == 1);
    const std::string json = slurp(saved.path());
    CHECK(json.find(R"({"role": "tool", "content": "{\"sum\": 2}", "tool_call_id": "call00001", "name": "add"})") != std::string::npos);
    CHECK(json.find(R"("content": "Done.")") != std::string::npos);
    const Outcome cut = run(with, "Add.\n");
    CHECK(cut.status == 1);
    CHECK(cut.err.find("before an answer of add") != std::string::npos);
    return;
  }
  FAIL("no seed calls first and talks then");
}

TEST_CASE("a turn whose answer was cut within a call is taken back, and that is said") {
  if (lacks_program()) return;
  const TemporaryFile form(kRoles), saved;
  const TemporaryFile tools(R"([{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}])");
  const Args args = {"--chat", "--seed", "3", "--template", form.path(), "--tools", tools.path(), "-n", "44", "--regex", R"(<tool_call>\{"name": "add", "arguments": \{"a": 111111111111\}\}</tool_call>)"};
  const Outcome got = run(args, "Add.\nAdd.\n/save " + saved.path() + "\n");
  CHECK(count(got.err, "the turn is taken back: its answer ended within a call") == 2);
  CHECK(slurp(saved.path()).find("Add.") == std::string::npos);
}

TEST_CASE("a call that could not be read is not run, and that is said") {
  if (lacks_program()) return;
  const TemporaryFile form(kRoles);
  const TemporaryFile tools(R"([{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}])");
  const Outcome got = run({"--chat", "--template", form.path(), "--tools", tools.path(), "--regex", R"(<tool_call>\{"name": "add", "arguments": \[1\]\}</tool_call>)"}, "Add.\n");
  CHECK(count(got.err, "a call could not be read whole: it is not run") == 1);
  CHECK(count(got.err, "the turn is taken back: its call was not run") == 1);
  CHECK(count(got.err, "gives (JSON)") == 0);
}

TEST_CASE("a tool's call is required of the first answer to a message, or forbidden") {
  if (lacks_program()) return;
  const TemporaryFile form(kRoles);
  const TemporaryFile tools(R"([{"type": "function", "function": {"name": "pet", "parameters": {"type": "object", "properties":
    {"kind": {"enum": ["cat", "dog"]}}, "required": ["kind"], "additionalProperties": false}}}, {"type": "function", "function": {"name": "now"}}])");
  Args args = {"--chat", "--template", form.path(), "--tools", tools.path(), "--seed", "2", "-n", "60", "--tool-choice"};
  for (const char* choice : {"pet", "required", "none", "auto"}) {
    INFO(choice);
    Args with = args;
    with.push_back(choice);
    const Outcome got = run(with, "A pet!\n{\"name\": \"Tom\"}\n{\"name\": \"Tom\"}\n{\"name\": \"Tom\"}\n/quit\n");
    if (std::string(choice) == "pet") CHECK(got.out.starts_with("[pet {"));
    if (std::string(choice) == "required") CHECK((got.out.starts_with("[pet {") || got.out.starts_with("[now {")));
    if (std::string(choice) == "none") CHECK(count(got.out, "[pet {") + count(got.out, "[now {") == 0);
  }
  args.push_back("nobody");
  const Outcome wrong = run(args);
  CHECK(wrong.status == 2);
  CHECK(is_one_complaint(wrong.err));
}

TEST_CASE("old turns become a summary, or go") {
  if (lacks_program()) return;
  const TemporaryFile form(kRoles), saved;
  const Args args = {"--chat", "--seed", "3", "-n", "8", "--template", form.path(), "--system", "Be kind."};
  const std::string turns = "One.\nTwo.\nThree.\n";
  const Outcome summed = run(args, turns + "/compact 1\n/compact 1\n/save " + saved.path() + "\nFour.\n");
  CHECK(summed.status == 0);
  CHECK(count(summed.err, "4 messages are gone") == 1);
  CHECK(count(summed.err, "nothing older") == 1);
  const std::string json = slurp(saved.path());
  CHECK(json.find("Be kind.") != std::string::npos);
  CHECK(json.find("One.") == std::string::npos);
  CHECK(count(json, "Summarise our conversation") == 1);
  CHECK(json.find("Three.") != std::string::npos);
  const Outcome dropped = run(args, turns + "/drop 1\n/undo\n/compact x\n/drop\n");
  CHECK(dropped.status == 1);  // of the line that makes no sense
  CHECK(count(dropped.err, "4 messages are gone") == 1);
  CHECK(count(dropped.err, "0 turns left") == 1);
  CHECK(count(dropped.err, "/compact [N]") == 1);
}

TEST_CASE("a model that thinks for ever answers when its budget is spent") {
  if (lacks_program()) return;
  const TemporaryFile form("{% for m in messages %}{{ m.content }}\n{% endfor %}<think>"), saved;
  const Outcome got = run({"--chat", "--seed", "3", "-n", "40", "--template", form.path(), "--think", "8"},
                          "One day\n/save " + saved.path() + "\n/think many\n");
  CHECK(got.status == 1);
  CHECK(count(got.err, "/think N") == 1);
  const std::string json = slurp(saved.path());
  CHECK(json.find("\"reasoning_content\": \"") != std::string::npos);
  CHECK(json.find("\"role\": \"assistant\", \"content\": \"\"") == std::string::npos);
}

TEST_CASE("what makes no sense in a conversation is status 2") {
  if (lacks_program()) return;
  const std::vector<Args> wrong = {{"--chat", "--prompt-ids", "1"}, {"--chat", "--when-full", "never"}, {"--when-full", "stop"}, {"--chat", "--json"}, {"--chat", "--stop", "x"}, {"--chat", "-n", "0"},
                                   {"--chat", "--plan"}, {"--chat", "--tool-choice", "none"}, {"--chat", "--think", "-3"}, {"--chat", "--think", "perhaps"}, {"--system", "x"}, {"--think", "on"},
                                   {"--tools", "x.json"}, {"--chat", "--save-session", "x"}, {"--chat", "--top-p", "7"},
                                   {"--chat", "--no-stream"}};
  for (const Args& args : wrong) {
    INFO(args.back());
    const Outcome got = run(args);
    CHECK(got.status == 2);
    CHECK(is_one_complaint(got.err));
  }
  CHECK(run({"--chat", "--tools", "/nowhere.json"}).status == 1);
}

TEST_CASE("-p asks one question, and the program ends") {
  if (lacks_program()) return;
  const TemporaryFile form(kRoles);
  const Args args = {"--chat", "--seed", "3", "-n", "12", "--template", form.path()};
  const auto with = [&](Args more) {
    more.insert(more.begin(), args.begin(), args.end());
    return more;
  };
  const Outcome asked = run(with({"-p", "One day a dog came."}), "this is not read\n");
  CHECK(asked.status == 0);
  CHECK(asked.out == run(args, "One day a dog came.\n").out);
  CHECK(run(with({"-p", "refuse"})).status == 1);
}

TEST_CASE("/set changes the sampler and the length, and shows them") {
  if (lacks_program()) return;
  const Args args = {"--chat", "--seed", "3", "-n", "30"};
  const Outcome got = run(args, "/set length 2\n/set temperature 0\n/set\nOne day\n");
  CHECK(got.status == 0);
  CHECK(count(got.err, "2 tokens written") == 1);
  CHECK(got.out == run({"--chat", "--temp", "0", "-n", "2"}, "One day\n").out);
  const Outcome wrong = run(args, "/set\n/set mirror 1\n/set top-p 7\n/set top-p\n/set length 0\n/set full perhaps\n/set temperature hot\n");
  CHECK(wrong.status == 1);
  for (const char* words : {"no setting \"mirror\"", "/set top-p needs a value", "/set length 0", "\"perhaps\" is not one of", "\"hot\" is not a number"}) {
    CAPTURE(words);
    CHECK(count(wrong.err, words) == 1);
  }
  CHECK(count(wrong.err, "0.95") == 1);  // nothing of it was changed
}

TEST_CASE("a conversation of forty turns goes on behind a full context") {
  if (lacks_program()) return;
  const TemporaryFile form(kRoles);
  std::string turns;
  for (int turn = 0; turn < 40; ++turn) turns += "The dog ran away again.\n";
  const auto with = [&](const char* when_full) {
    return run({"--chat", "--seed", "3", "-n", "20", "--ctx", "128", "--template", form.path(), "--system", "Be kind.", "--when-full", when_full},
               turns);
  };
  const Outcome dropped = with("drop");
  CHECK(dropped.status == 0);
  CHECK(count(dropped.err, " tokens written") == 40);
  CHECK(count(dropped.err, "the context is full: the oldest 2 messages are left out") > 20);
  CHECK(count(with("compact").err, " tokens written") == 40);
  const Outcome stopped = with("stop");
  CHECK(count(stopped.err, " tokens written") < 10);
  CHECK(stopped.status == 1);
}

TEST_CASE("what is typed during an answer is not shown in it, and is the next line") {
  if (lacks_program()) return;
  Terminal terminal({"--chat", "--numerics", "reference", "--threads", "1", "--regex", "[a-z ]{450}"});
  terminal.until({"> "});
  terminal.type("Go.\r");
  terminal.until({"Go."});
  terminal.until({"a", "e", "o"});
  terminal.type("/quick\r");
  const std::string answer = terminal.until({"; the end]", "as many as allowed]"});
  CHECK(count(answer, "/quick") == 0);
  terminal.until({"no command /quick"});
  terminal.until({"> "});
  terminal.type("/quit\r");
  CHECK(terminal.end() == 0);
}

TEST_CASE("on a terminal Ctrl-C stops the answer and not the program, and Ctrl-D ends it") {
  if (lacks_program()) return;
  Terminal terminal({"--chat"});
  terminal.until({"> "});
  terminal.type("\x03");
  terminal.until({"/quit or Ctrl-D"});
  terminal.until({"> "});
  terminal.type("/quack\r");
  terminal.until({"no command /quack"});
  terminal.until({"> "});
  terminal.type("/stats\r");
  terminal.until({"0 answers"});
  terminal.until({"> "});
  terminal.type("\x04");
  CHECK(terminal.end() == 0);
}

TEST_CASE("on a terminal forty turns fill the context, while more is typed, and tools are answered of a model whose template has none") {
  if (lacks_program()) return;
  const TemporaryFile form(kRoles);
  const TemporaryFile tools(R"([{"type": "function", "function": {"name": "pet", "parameters": {"type": "object", "properties":
    {"kind": {"enum": ["cat", "dog"]}}, "required": ["kind"], "additionalProperties": false}}}])");
  Terminal terminal({"--chat", "--seed", "3", "-n", "16", "--ctx", "200", "--template", form.path(), "--tools", tools.path(), "--tool-choice", "none"});
  terminal.until({"> "});
  // Each line is typed while the answer to the one before it is written.
  std::size_t dropped = 0;
  terminal.type("The dog ran away again.\r");
  for (int turn = 0; turn < 40; ++turn) {
    if (turn < 39) terminal.type("The dog ran away again.\r");
    dropped += count(terminal.until({"; the end]", "as many as allowed]"}), "the context is full: the oldest");
  }
  CHECK(dropped > 25);
  terminal.until({"> "});
  terminal.type("/reset\r");
  terminal.until({"/reset"});
  terminal.until({"> "});
  terminal.type("/quit\r");
  CHECK(terminal.end() == 0);

  Terminal calling({"--chat", "--temp", "100", "--seed", "4", "-n", "100", "--template", form.path(), "--tools", tools.path(), "--regex",
                    R"(<tool_call>\{"name": "pet", "arguments": \{"kind": "cat"\}\}</tool_call>|Do\.)"});
  calling.until({"> "});
  std::size_t results = 0;
  for (int turn = 0; turn < 60 && results < 3; ++turn) {
    calling.type("A pet!\r");
    for (;;) {
      const std::string shown = calling.until({"pet gives (JSON)> ", ".\r\n["});
      if (!shown.ends_with("(JSON)> ")) break;
      CHECK(count(shown, "[pet {\"kind\": \"cat\"}]") == 1);
      if (++results == 1) {
        calling.type("{oops\r");  // no JSON: it is asked for again
        calling.until({"JSON, line 1"});
        calling.until({"pet gives (JSON)> "});
      }
      if (results == 2) {
        calling.type("\x03");  // no result
        calling.until({"the turn is taken back: its call has no result"});
        break;
      }
      calling.type("{\"name\": \"Tom\"}\r");
    }
    calling.until({"> "});
  }
  CHECK(results >= 3);
  calling.type("\x04");
  CHECK(calling.end() == 0);
}

TEST_CASE("Ctrl-D that comes before the prompt ends the program at the prompt") {
  if (lacks_program()) return;
  Terminal terminal({"--chat", "--numerics", "reference", "--threads", "1", "--regex", "[a-z ]{450}"});
  terminal.until({"> "});
  terminal.type("Go.\r");
  terminal.until({"Go."});
  terminal.until({"a", "e", "o"});
  terminal.type("\x04");
  terminal.until({"as many as allowed]", "; the end]"});
  CHECK(terminal.end() == 0);
}

TEST_CASE("an answer on a terminal is stopped by Ctrl-C, and is kept as far as it came") {
  if (lacks_program()) return;
  const TemporaryFile form(kRoles);
  // A machine may be so busy that an answer is over before we come to stop it: then another program's answer is stopped.
  bool stopped = false;
  for (int attempt = 1; !stopped; ++attempt) {
    REQUIRE(attempt < 20);
    Terminal terminal({"--chat", "--seed", "1", "--numerics", "reference", "--threads", "1", "--template", form.path(), "--regex", "[a-z ]{450}"});
    terminal.until({"> "});
    terminal.type("Go.\r");
    terminal.until({"Go."});
    terminal.until({"a", "e", "o"});
    terminal.type("/nex\x03t\r");
    stopped = terminal.until({"; stopped]", "; the end]", "as many as allowed]"}).ends_with("stopped]");
    if (!stopped) continue;
    // The text before Ctrl-C and the text behind it are one line.
    terminal.until({"no command /next"});
    terminal.until({"> "});
    terminal.type("/tokens\r");
    terminal.until({"a|:|"});
    terminal.until({"> "});
    terminal.type("/quit\r");
    CHECK(terminal.end() == 0);
  }
}

}  // namespace test_cli_chat
