// Makes the scripts with which a shell completes a program's options when the user presses Tab. Like --help, they are made from CLI11's
// data on the options.
#pragma once

#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace tessera::tool {

// Returns the script with which `shell` (bash, zsh or fish) completes the options of `app`. The script is for the installed program, whose
// name begins with "tessera-". Throws CLI::ValidationError for another shell.
[[nodiscard]] std::string completion(const CLI::App& app, std::string_view shell);

}  // namespace tessera::tool
