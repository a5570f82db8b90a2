// tessera-rag: answers questions from a folder of texts. A tour for readers:
//   text_files      the files of a folder
//   units, passages a text, cut into the pieces that are found
//   embedder        vectors of texts
//   database, store the index on disk
//   indexing        updates the index to the files of the folder
//   scan, graph     the nearest vectors: exact, and by a graph
//   search          vectors, words and a reranker together
//   saved_prefixes  keys and values of passages, kept for later questions
//   answering       the prompt and the answer
//   commands        the commands of the command line
#include <exception>

#include "commands.hpp"
#include "failure.hpp"
#include "options.hpp"
#include "system/program.hpp"
#include "terminal_text.hpp"

int main(int argc, char** argv) {
  tessera::tool::Program program(argc, argv);
  try {
    const auto options = rag::parse_options(program.argc(), program.argv());
    return options ? rag::run(*options) : 0;
  } catch (const UsageError& error) {
    tessera::tool::complain(rag::kProgram, std::string(error.what()) + " (see tessera-rag --help)");
    return 2;
  } catch (const Failure& failure) {
    if (failure.code == tessera::ErrorCode::cancelled) {
      tessera::tool::complain(rag::kProgram, "interrupted");
      return 130;
    }
    tessera::tool::complain(rag::kProgram, failure.what());
  } catch (const std::exception& error) {
    tessera::tool::complain(rag::kProgram, error.what());
  }
  return 1;
}
