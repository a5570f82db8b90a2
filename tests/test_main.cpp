// The main function of every test program. It exits with 0, 1, or 77 (ctest's "skipped"); Catch's own status is the
// number of failed assertions, which may be 77 too. TESSERA_TEST_INSTRUCTIONS (forced_set.cpp) names the instruction set of
// engines that do not ask for one; where the machine or the build lacks the set, all tests count as skipped.
// Started by the name of one of its files, which is a link to the program, it runs that file's tests only.
#define CATCH_CONFIG_RUNNER
#include "catch.hpp"

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <system_error>
#include <vector>

#include "cpu/instruction_sets.hpp"
#include "forced_set.hpp"

namespace {

constexpr int kSkipped = 77;
int skips = 0;
bool asserted = false;
bool none = false;  // of the tests ran

// The file that the program is started for; empty: all of them.
std::string file_of(const std::filesystem::path& called) {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return error || called.filename() == program.filename() ? "" : called.filename().string();
}

// What is wanted of one file, by the tag that Catch makes of its name: in front of each of the alternatives.
std::string of_file(const std::string& file, const std::vector<std::string>& wanted) {
  const std::string tag = "[#" + file + "]";
  if (wanted.empty()) return tag + "~[.]";  // hidden ones are run by their names alone
  std::string spec = tag;
  bool quoted = false, escaped = false;
  for (const std::string& part : wanted) {
    spec += ' ';
    for (const char c : part) {
      spec += c;
      if (c == ',' && !quoted && !escaped) spec += tag;
      if (c == '"' && !escaped) quoted = !quoted;
      escaped = c == '\\' && !escaped;
    }
  }
  return spec;
}

// The exit status of a program that is to force an instruction set and cannot.
std::optional<int> without_forced_set() {
  const char* name = std::getenv(tessera::tests::kForcedSetVariable);
  if (name == nullptr) return {};
  const auto set = tessera::parse_instruction_set(name);
  if (!set) {
    std::cout << tessera::tests::kForcedSetVariable << '=' << name << ": there is no such instruction set\n";
    return 1;
  }
  const auto runs = tessera::cpu::claim_among(tessera::cpu::supported_sets(), *set, [] { return true; });
  if (runs) return {};
  std::cout << "SKIPPED " << tessera::tests::kForcedSetVariable << '=' << name << ": " << runs.error().message() << std::endl;
  return kSkipped;
}

}  // namespace

namespace tessera::tests {

void skip(const std::string& reason) {
  ++skips;
  std::cout << "SKIPPED " << Catch::getResultCapture().getCurrentTestName() << ": " << reason << std::endl;
}

}  // namespace tessera::tests

#if __has_include(<catch2/catch_all.hpp>)
using ListenerBase = Catch::EventListenerBase;
#else
using ListenerBase = Catch::TestEventListenerBase;
#endif

struct Counter : ListenerBase {
  using ListenerBase::ListenerBase;
  void testRunEnded(const Catch::TestRunStats& run) override {
    asserted = run.totals.assertions.total() > 0;
    none = run.totals.testCases.total() == 0;
  }
};
CATCH_REGISTER_LISTENER(Counter)

int main(int argc, char** argv) {
  Catch::Session session;
  if (session.applyCommandLine(argc, argv) != 0) return 1;
  if (const auto status = without_forced_set()) return *status;
  const std::string file = file_of(argv[0]);
  if (!file.empty()) {
    auto& config = session.configData();
    config.filenamesAsTags = true;
    config.testsOrTags = {of_file(file, config.testsOrTags)};
  }
  if (session.run() != 0) return 1;
  if (none && !file.empty()) {
    std::cout << "No tests of " << file << ".cpp\n";
    return 1;
  }
  return skips > 0 && !asserted ? kSkipped : 0;
}
