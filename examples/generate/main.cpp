// generate: text from a model, on the command line. A tour for readers:
//   options    what can be asked for
//   prompt     the text or ids that come in
//   model      loading
//   drafting   what guesses tokens ahead, if anything is to
//   generation a run from prompt to text: where the library is used the way most programs will
//   several    many texts after one prompt: samples and beams
//   chat*      a conversation, a line a turn
//   inspection the modes that answer a question instead
//   *_output   what is printed
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

// With one of the three closed, the next file opened would take its number: the model would be standard output. Put
// something there that fails instead.
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
  // A reader that leaves (`generate | head`) ends the program quietly, also where a parent ignores the signal.
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
