// Session::score for clients.py --score: score_ids MODEL reads token ids from standard input, a prompt a line, and writes the scores of
// each prompt's tokens but the first, a line a prompt, with all their digits.
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <tessera/engine.hpp>
#include <tessera/session.hpp>

namespace {

int fail(const tessera::Error& error) {
  std::fprintf(stderr, "score_ids: %s\n", error.text().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: score_ids MODEL < IDS\n", stderr);
    return 2;
  }
  const auto engine = tessera::Engine::load(argv[1]);
  if (!engine) return fail(engine.error());
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream ids(line);
    std::vector<tessera::Token> tokens;
    for (tessera::Token token = 0; ids >> token;) tokens.push_back(token);
    auto session = engine->session();
    if (!session) return fail(session.error());
    const auto scores = session->score(tokens);
    if (!scores) return fail(scores.error());
    for (std::size_t i = 1; i < scores->size(); ++i) std::printf("%s%.17g", i > 1 ? " " : "", static_cast<double>((*scores)[i]));
    std::printf("\n");
  }
}
