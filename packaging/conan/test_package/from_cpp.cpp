#include <cstdio>
#include <string>

#include <tessera/engine.hpp>
#include <tessera/version.hpp>

// The version, and an error instead of a crash for a file that is not there.
int main() {
  const auto engine = tessera::Engine::load("absent.gguf");
  std::printf("tessera %s from C++: %s\n", std::string(tessera::version()).c_str(), engine ? "loaded what is not there" : engine.error().text().c_str());
  return engine ? 1 : 0;
}
