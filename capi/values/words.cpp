#include "values/words.hpp"

namespace tessera::c {

namespace {

struct Words {
  std::string_view cpp, c;
};

// test_c_words searches the library's sentences for names that no entry of this table replaces. Entries are tried in
// order, so an entry whose text is a part of another entry's text comes after it.
constexpr Words kWords[] = {
    {" is empty: it was default-constructed or moved from, or it is the value of a failed Result; test the Result, and "
     "use the object that was moved to",
     " is empty: look at the error of the call that should have made it"},
    {" is empty: it was default-constructed or moved from, its chain was built before or had no memory, or it is the "
     "value of a failed Result; build a chain again, and use the object that was moved to",
     " is empty: look at the error of the call that should have made it"},
    {"an empty Error was returned as an error: return the error of a Result that failed",
     "an error without a code was returned"},
    {"a Generation of this session has not ended: finish it or destroy it first",
     "a generation of this session has not ended: read it to its end or free it"},
    {"the session of this Generation is gone", "the session of this generation is gone"},
    {"an Answer of this conversation has not ended: read it to its end, or destroy it first",
     "an answer of this conversation has not ended: read it to its end or free it"},
    {"the scheduler was destroyed before the request had ended",
     "the scheduler was freed before the request had ended"},
    {"the driver was stopped before", "tessera_scheduler_stop() was called before"},
    {"requests had ended: start another one", "requests had ended: tessera_scheduler_start() goes on with them"},
    {"wait_until_idle() from a callback of the driver's own thread would wait for itself",
     "tessera_scheduler_wait_until_idle() from a callback of the scheduler would wait for itself"},
    {"the session is suspended: resume() it first", "the session is suspended: tessera_session_resume() comes first"},
    {"restore it in that type, and convert() it", "restore it in that type, and change it by tessera_session_copy()"},
    {"restore it so, and convert() it", "restore it so, and change it by tessera_session_copy()"},
    {"make it with KvKind::paged, or convert() it",
     "make it with \"kv_kind\": \"paged\", or copy it so by tessera_session_copy()"},
    {"choose KvKind::paged", "choose \"kv_kind\": \"paged\""},
    {"cannot be forked: clone() it, which copies,", "cannot be forked: use tessera_session_copy(),"},
    {"cannot be suspended: convert() it to a paged one",
     "cannot be suspended: make a paged one of it by tessera_session_copy()"},
    {"its tokens and ends are those of BeamOptions", "its tokens and ends are those of \"beams\""},
    {"leave StreamOptions::window 0", "leave \"window\" 0"},
    {"give its session no budget of tokens (kNoTokenBudget)", "give its session no \"token_budget\""},
    {"load it by this engine's adapter()", "load it by tessera_adapter_load() for this engine"},
    {"load one by Engine::adapter()", "load one by tessera_adapter_load()"},
    {"load it by Engine::adapter()", "load it by tessera_adapter_load()"},
    {"give its source in AdapterOptions::base", "give its source in options.base"},
    {"give it a budget of h2o or snapkv (EngineOptions::kv)",
     "give it a \"token_budget\" whose choice is \"h2o\" or \"snapkv\""},
    {"no draft heads are loaded (EngineOptions::draft_heads)", "no draft heads are loaded (\"draft_heads\")"},
    {"load the engine with EngineOptions::mtp = MtpHeads::load", "load the engine with \"mtp\": true"},
    {"session_options ask for a context", "\"session\" asks for a context"},
    {"are not among VerifyOptions::embeddings; it keeps their hashes alone",
     "are not known: it keeps their hashes alone"},
    {"use Bos::as_model or Bos::never", "use TESSERA_BOS_AS_MODEL or TESSERA_BOS_NEVER"},
    {"the template asks for the time: give RenderOptions::now", "the template asks for the time: give \"now\""},
    {"RenderOptions::now is no date", "\"now\" is no date"},
    {"Scheduler::between_steps", "work between steps"},
    {"Scheduler::step", "tessera_scheduler_step()"},
    // Names of callbacks.
    {"SchedulerOptions::", ""},
    {"Request::on_", "on_"},
    {"ByteSource::", "source."},
};

// Writes the word before `end` with a small first letter in C: "this Session is empty".
void lower_word_before(std::string& text, std::size_t end) {
  const std::size_t space = text.rfind(' ', end - 1);
  const std::size_t at = space == std::string::npos ? 0 : space + 1;
  if (at < end && text[at] >= 'A' && text[at] <= 'Z') text[at] = static_cast<char>(text[at] - 'A' + 'a');
}

}  // namespace

std::string in_words_of_c(std::string_view text) {
  std::string words(text);
  for (const Words& line : kWords) {
    for (std::size_t at = words.find(line.cpp); at != std::string::npos;
         at = words.find(line.cpp, at + line.c.size())) {
      words.replace(at, line.cpp.size(), line.c);
      if (line.cpp.starts_with(" is empty") && at > 0) lower_word_before(words, at);
    }
  }
  return words;
}

}  // namespace tessera::c
