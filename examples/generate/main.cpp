// generate: text from a model, on the command line. A tour for readers:
//   options    the command line
//   prompt     the text or ids to read
//   model      loading
//   drafting   the options of speculation
//   generation a run from prompt to text: uses the library as most programs will
//   several    many texts after one prompt: samples and beams
//   chat*      a conversation, a line a turn
//   inspection the modes that answer a question instead
//   *_output   the output
#include <csignal>
#include <exception>
#include <initializer_list>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "failure.hpp"
#include "modes.hpp"
#include "options.hpp"
#include "terminal.hpp"

namespace {

// Opens /dev/null for each closed standard file, so that its use fails. Otherwise the next file that is opened, the model for
// example, would take its number and be standard output.
void fill_standard_files() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) == -1) (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

int run(const Options& options) {
  switch (options.mode) {
    case Mode::generate: return generate_text(options);
    case Mode::tokenize: return tokenize(options);
    case Mode::detokenize: return detokenize(options);
    case Mode::logits: return write_logits(options);
    case Mode::plan: return show_plan(options);
    case Mode::explain: return show_kernels(options);
    case Mode::render: return render_conversation(options);
    case Mode::chat: return converse(options);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  fill_standard_files();
  // If the reader of a pipe ends (`generate | head`), SIGPIPE ends this program quietly, also if the parent process ignores SIGPIPE.
  std::signal(SIGPIPE, SIG_DFL);
  try {
    const auto options = parse_options(argc, argv);
    return options ? run(*options) : 0;
  } catch (const UsageError& error) {
    complain(fmt::format("{} (see generate --help)", error.what()));
    return 2;
  } catch (const Failure& failure) {
    if (failure.code == tessera::ErrorCode::cancelled) {
      complain("interrupted");
      return 130;
    }
    complain(failure.what());
  } catch (const std::exception& error) {
    complain(error.what());
  }
  return 1;
}
