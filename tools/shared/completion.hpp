// Scripts by which a shell completes a program's options. They are made of what CLI11 knows of the options, as --help is.
#pragma once

#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace tessera::tool {

// Returns the script that completes the options of `app` in `shell`: bash, zsh or fish. The script completes the name of the installed
// program, which begins with "tessera-".
// Errors: throws CLI::ValidationError for another shell.
[[nodiscard]] std::string completion(const CLI::App& app, std::string_view shell);

}  // namespace tessera::tool
