// Runs the built command line as a user would. Output goes to temporary files, so nothing can block.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"

extern "C" char** environ;

namespace tessera::tests::cli {

using Args = std::vector<std::string>;

inline const std::string kProgram = TESSERA_BIN_DIR "/generate";
inline const std::string kShared = TESSERA_SHARED_DIR;
inline const std::string kStories = kShared + "/models/stories260K-f32.gguf";
inline const std::string kGolden = TESSERA_SOURCE_DIR "/tests/golden/data/";
inline const std::string kTiny = kGolden + "llama-gqa.gguf";  // random weights, 104 tokens, context 64

// True, and told, when the file is not there.
inline bool lacks(const std::string& path, const std::string& what) {
  if (std::filesystem::exists(path)) return false;
  skip(what + " is absent");
  return true;
}
inline bool lacks_program() { return lacks(kProgram, "the example program \"generate\" (not built)"); }
inline bool lacks_stories() { return lacks_program() || lacks(kStories, "../shared/models/stories260K-f32.gguf"); }

inline std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<int> ids_in(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<int>(stream), {}};
}

inline std::string joined(const std::vector<int>& ids, std::size_t first, std::size_t count) {
  std::string text;
  for (std::size_t i = first; i < first + count; ++i) {
    if (i > first) text += ' ';
    text += std::to_string(ids.at(i));
  }
  return text;
}

// A name in the system's temporary directory; the file goes when this does.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content = {}) {
    path_ = (std::filesystem::temp_directory_path() / "tessera-cli-XXXXXX").string();
    const int fd = mkstemp(path_.data());
    REQUIRE(fd >= 0);
    close(fd);
    std::ofstream(path_, std::ios::binary) << content;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::filesystem::remove(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// kTiny for readers that know nothing of its vocabulary: the key that names its kind is another one of the same length.
inline std::string without_vocabulary() {
  std::string bytes = slurp(kTiny);
  const std::string key = "tokenizer.ggml.model";
  const std::size_t at = bytes.find(key);
  REQUIRE(at != std::string::npos);
  return bytes.replace(at, key.size(), "tokenizer.ggml.other");
}

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

inline File scratch(const std::string& content = {}) {
  File file(std::tmpfile(), &std::fclose);
  REQUIRE(file != nullptr);
  std::fwrite(content.data(), 1, content.size(), file.get());
  std::rewind(file.get());
  return file;
}

inline std::string content_of(std::FILE* file) {
  std::rewind(file);
  std::string text;
  for (int c = 0; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
  return text;
}

// The exit status, or 128 + the signal that ended it, as shells count.
inline int wait_for(pid_t pid) {
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

enum class Interrupts { as_usual, ignored };  // by the shell: what a program is told when it starts

inline pid_t start(const std::string& program, const Args& args, int in, int out, int err,
                   Interrupts interrupts = Interrupts::as_usual) {
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in, 0);
  posix_spawn_file_actions_adddup2(&files, out, 1);
  posix_spawn_file_actions_adddup2(&files, err, 2);
  // Whatever ctest was started under, the program begins with the usual meaning of signals.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t usual;
  sigemptyset(&usual);
  if (interrupts == Interrupts::as_usual) sigaddset(&usual, SIGINT);
  sigaddset(&usual, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);

  pid_t pid = -1;
  const auto ours = interrupts == Interrupts::ignored ? std::signal(SIGINT, SIG_IGN) : SIG_DFL;  // a child inherits it
  const int error = posix_spawn(&pid, program.c_str(), &files, &attributes, argv.data(), environ);
  if (interrupts == Interrupts::ignored) std::signal(SIGINT, ours);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  REQUIRE(error == 0);
  return pid;
}

struct Outcome {
  int status;
  std::string out, err;
};

inline Outcome run_program(const std::string& program, const Args& args, const std::string& input = {}) {
  const File in = scratch(input), out = scratch(), err = scratch();
  const int status = wait_for(start(program, args, fileno(in.get()), fileno(out.get()), fileno(err.get())));
  return {status, content_of(out.get()), content_of(err.get())};
}

inline Outcome run(const Args& args, const std::string& input = {}) { return run_program(kProgram, args, input); }

// A shell command; "$0" is the program and "$@" the arguments.
inline Outcome run_shell(const std::string& command, const Args& args) {
  Args all = {"-c", command, kProgram};
  all.insert(all.end(), args.begin(), args.end());
  return run_program("/bin/sh", all);
}

// One line, and it says who speaks.
inline bool is_one_complaint(const std::string& err) {
  return err.starts_with("generate: ") && err.size() > 20 && err.find('\n') == err.size() - 1;
}

}  // namespace tessera::tests::cli
