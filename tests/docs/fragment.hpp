// What stands around a piece of code of a page: names that the page's text has introduced, as parameters of a function that is
// compiled and never called. Blocks may declare these names anew.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include <tessera/extend/files/gguf.hpp>
#include <tessera/tessera.hpp>

namespace tessera::docs {

struct Names {
  Engine engine;
  Session session;
  Result<Scheduler> scheduler;
  Result<Conversation> talk;
  Tokenizer tokenizer;
  GgufFile file;
  Sampler sampler;
  Result<std::vector<Token>> tokens;
  LocalTime today;
  std::string text, schema, question;
};
inline int report(const Error& error) { return std::fprintf(stderr, "%s\n", error.text().c_str()), 1; }

}  // namespace tessera::docs

#define TESSERA_FRAGMENT(name)                                            \
  using namespace tessera;                                                \
  using tessera::docs::report;                                            \
  using tessera::sampling::chain;                                         \
  int name(tessera::docs::Names& names);                                  \
  int name([[maybe_unused]] tessera::docs::Names& names)
#define TESSERA_NAMES                                                                                                       \
  [[maybe_unused]] auto& [engine, session, scheduler, talk, tokenizer, file, sampler, tokens, today, text, schema, question] = names;
