// generate: text from a model, on the command line. A tour for readers:
//   options    the command line
//   prompt     the text or ids to read
//   model      loading
//   adapters   the option --lora
//   drafting   the options of speculation
//   generation a run from prompt to text: uses the library as most programs will
//   several    many texts after one prompt: samples and beams
//   chat*      a conversation, a line a turn
//   inspection the modes that need no weights, and the list of kernels
//   *_output   the output
#include <exception>

#include <fmt/format.h>

#include "failure.hpp"
#include "modes.hpp"
#include "option_words.hpp"
#include "options.hpp"
#include "output/terminal.hpp"
#include "system/program.hpp"

namespace {

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
  tessera::tool::Program program(argc, argv);
  try {
    const auto options = parse_options(program.argc(), program.argv());
    return options ? run(*options) : 0;
  } catch (const UsageError& error) {
    complain(fmt::format("{} (see generate --help)", error.what()));
    return 2;
  } catch (const Failure& failure) {
    if (failure.code == tessera::ErrorCode::cancelled) {
      complain("interrupted");
      return 130;
    }
    complain(in_options(failure.what()));
  } catch (const std::exception& error) {
    complain(error.what());
  }
  return 1;
}
