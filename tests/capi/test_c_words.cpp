// Error texts in the words of C: names of the C++ API are replaced, and long texts of callers are cut.
#include <fstream>

#include "capi/c_rig.hpp"
#include "capi/values/words.hpp"

namespace test_c_words {

using namespace tessera;
using namespace tessera::test;
using Catch::Matchers::ContainsSubstring;

namespace {

// Returns the texts in quotes of a source file; neighbours are one text. Comments, includes and raw strings are left
// out, and so are texts without a blank, which are no sentences.
std::vector<std::string> sentences_of(const std::string& source) {
  std::vector<std::string> found;
  std::string text;
  const auto end = [&] {
    if (text.find(' ') != std::string::npos) found.push_back(text);
    text.clear();
  };
  for (std::size_t at = 0; at < source.size(); ++at) {
    const char c = source[at];
    if (c == '/' && source.compare(at, 2, "//") == 0) {
      at = std::min(source.find('\n', at), source.size() - 1);
    } else if (c == '\'' && at + 2 < source.size()) {  // a character; a quote in a number such as 1'000 is passed over
      const std::size_t close = source[at + 1] == '\\' ? at + 3 : at + 2;
      if (close < source.size() && source[close] == '\'') at = close;
    } else if (c == 'R' && source.compare(at, 2, "R\"") == 0) {
      const std::size_t open = source.find('(', at);
      if (open == std::string::npos) break;
      at = std::min(source.find(")" + source.substr(at + 2, open - at - 2) + "\"", open), source.size() - 1);
      at = std::min(source.find('"', at), source.size() - 1);
    } else if (c == '"') {
      for (++at; at < source.size() && source[at] != '"'; ++at) {
        if (source[at] == '\\') ++at;
        text += source[std::min(at, source.size() - 1)];
      }
    } else if (c != ' ' && c != '\n') {
      end();
    }
  }
  end();
  return found;
}

// Files whose sentences do not reach a program in C, which has no CUDA objects, kernels, model sources or drafters of
// its own; and jinja, whose functions are those of templates.
bool is_left_out(const std::string& path) {
  if (!path.ends_with(".cpp") && !path.ends_with(".hpp")) return true;
  for (const char* folder : {"/cuda/", "/jinja/", "/cpu/", "/tensor_binding.cpp", "/speculation.cpp"})
    if (path.find(folder) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("no sentence of the library has a name of the C++ API after it is put in words of C") {
  std::size_t sentences = 0, changed = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_dir() / "src")) {
    const std::string path = entry.path().generic_string();
    if (!entry.is_regular_file() || is_left_out(path)) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    for (const std::string& sentence : sentences_of({std::istreambuf_iterator<char>(in), {}})) {
      INFO(path << ": " << sentence);
      std::string words = c::in_words_of_c(sentence);
      ++sentences, changed += words != sentence ? 1 : 0;
      CHECK(cpp_word_in(words) == "");
    }
  }
  CHECK(sentences > 500);
  CHECK(changed > 20);
}

TEST_CASE("an empty handle is told with a small letter, and callbacks by their members' names") {
  CHECK(c::in_words_of_c(
            "this Session is empty: it was default-constructed or moved from, or it is the value of a failed "
            "Result; test the Result, and use the object that was moved to") ==
        "this session is empty: look at the error of the call that should have made it");
  CHECK(c::in_words_of_c("SchedulerOptions::clock threw: no time") == "clock threw: no time");
  CHECK(c::in_words_of_c("my Session.gguf") == "my Session.gguf");
}

TEST_CASE("a long path or name is cut in an error, between characters") {
  for (const std::string letter : {"p", "\u00e9"}) {
    std::string path = "a";
    while (path.size() < 1 << 20) path += letter;
    tessera_engine* engine = nullptr;
    tessera_error* error = nullptr;
    CHECK(tessera_engine_load(path.data(), path.size(), nullptr, &engine, &error) != TESSERA_OK);
    const CError owned(error);
    const std::string_view place = tessera_error_place(error), text = tessera_error_text(error);
    CHECK((place.size() < 600 && text.size() < 1000));
    CHECK(place.find(letter + "..." + letter) != std::string_view::npos);
  }
}

}  // namespace test_c_words
