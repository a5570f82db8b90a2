#include "completion.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

namespace tessera::tool {

namespace {

// An option, with the facts that a shell needs.
struct Completed {
  std::vector<std::string> names;  // with dashes, the short ones first
  std::string type;                // name of the value in --help; empty for a flag
  std::vector<std::string> words;  // values to choose from
  bool flag = false;
  bool file = false;  // true: the value can be a file or a folder
  bool repeated = false;
  std::string description;
};

struct Program {
  std::string name;
  std::vector<Completed> options;
  bool takes_files = false;  // true: arguments that are not options are files
};

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// Returns whether --help means the text literally, and not as a placeholder such as N or NAME.
bool is_word(std::string_view text) {
  return !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_") == text.npos;
}

// Returns the first sentence of an option's description, on one line.
std::string first_sentence(std::string text) {
  for (const std::string_view end : {". ", ".\n", "\nDefault", "; "}) text = text.substr(0, text.find(end));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

Completed completed(const CLI::Option& option) {
  Completed result;
  for (const std::string& name : option.get_snames()) result.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) result.names.push_back("--" + name);
  result.flag = option.get_items_expected_max() == 0;
  result.repeated = option.get_items_expected_max() > 1;
  result.description = first_sentence(option.get_description());
  if (result.flag) return result;
  result.type = option.get_type_name();
  result.type = result.type.substr(0, result.type.find(':'));  // a range may follow
  // Forms: "auto|none|NAME"; for CLI11's own lists "TEXT:{auto,none}".
  std::string alternatives = option.get_type_name();
  if (const std::size_t open = alternatives.find('{'); open != alternatives.npos) {
    alternatives = alternatives.substr(open + 1, alternatives.find('}') - open - 1);
    std::replace(alternatives.begin(), alternatives.end(), ',', '|');
  }
  for (const std::string& word : split(alternatives, '|')) {
    if (is_word(word)) result.words.push_back(word);
    for (const std::string_view kind : {"FILE", "FOLDER", "MODEL."})
      result.file = result.file || word.starts_with(kind);
  }
  return result;
}

void add_options(Program& program, const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) program.takes_files = true;
    if (option->get_positional() || option->get_group().empty()) continue;  // CLI11 hides an option without a group
    program.options.push_back(completed(*option));
  }
  for (const CLI::App* group : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (group->get_name().empty())
      add_options(program, *group);  // a group of options, to CLI11 a command without a name
  }
}

Program describe(const CLI::App& app) {
  Program program;
  const std::string& name = app.get_name();
  program.name = name.starts_with("tessera-") ? name : "tessera-" + name;
  add_options(program, app);
  return program;
}

std::string in_quotes(std::string_view text) {
  std::string quoted = "'";
  for (const char letter : text) quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return quoted + "'";
}

std::string bash(const Program& program) {
  std::string function = "_" + program.name, names, cases;
  std::replace(function.begin(), function.end(), '-', '_');
  for (const Completed& option : program.options) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", fmt::join(option.names, " "));
    if (option.flag) continue;
    std::string action = ":";
    if (!option.words.empty())
      action = fmt::format("mapfile -t COMPREPLY < <(compgen -W {} -- \"$word\")",
                           in_quotes(fmt::format("{}", fmt::join(option.words, " "))));
    if (option.file) action = "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$word\")";
    cases += fmt::format("    {}) {} ;;\n", fmt::join(option.names, "|"), action);
  }
  const char* const otherwise =
      program.takes_files ? "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$word\")" : ":";
  // bash splits "--option=value" into three words.
  return fmt::format(R"(# Completes the options of {0} in bash. Made by: {0} --completion bash
{1}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
  if [[ $word == = ]]; then
    word=''
  elif [[ $before == = ]] && ((COMP_CWORD > 1)); then
    before=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
  COMPREPLY=()
  case $before in
{2}    *)
      if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W {3} -- "$word")
      else
        {4}
      fi
      ;;
  esac
}}
complete -F {1} {0}
)",
                     program.name, function, cases, in_quotes(names), otherwise);
}

// Puts a backslash before each letter with a meaning in the specifications of zsh's _arguments.
std::string for_arguments(std::string_view text) {
  std::string escaped;
  for (const char letter : text) {
    if (std::string_view("[]:\\").find(letter) != std::string_view::npos) escaped += '\\';
    escaped += letter;
  }
  return escaped;
}

std::string zsh(const Program& program) {
  std::string text = fmt::format(
      "#compdef {0}\n# Completes the options of {0} in zsh. Made by: {0} --completion zsh\n_arguments -s -S",
      program.name);
  for (const Completed& option : program.options) {
    std::string value;
    if (!option.flag) {
      value = fmt::format(":{}:", for_arguments(option.type.empty() ? "value" : option.type));
      if (option.file) {
        value += "_files";
      } else if (!option.words.empty()) {
        value += fmt::format("({})", fmt::join(option.words, " "));
      } else {
        value += " ";
      }
    }
    for (const std::string& name : option.names) {
      const bool is_long = name.starts_with("--");
      const std::string exclusion = option.repeated ? "*" : fmt::format("({})", fmt::join(option.names, " "));
      const char* const join = option.flag ? "" : is_long ? "=" : "+";
      text += fmt::format(" \\\n  {}", in_quotes(fmt::format("{}{}{}[{}]{}", exclusion, name, join,
                                                             for_arguments(option.description), value)));
    }
  }
  if (program.takes_files) text += " \\\n  '*:file:_files'";
  return text + "\n";
}

std::string fish(const Program& program) {
  std::string text =
      fmt::format("# Completes the options of {0} in fish. Made by: {0} --completion fish\n", program.name);
  if (!program.takes_files) text += fmt::format("complete -c {} -f\n", program.name);
  for (const Completed& option : program.options) {
    text += fmt::format("complete -c {}", program.name);
    for (const std::string& name : option.names) {
      text += name.starts_with("--") ? fmt::format(" -l {}", name.substr(2)) : fmt::format(" -s {}", name.substr(1));
    }
    if (option.file) {
      text += " -r -F";
    } else if (!option.flag) {
      text += " -x";
    }
    if (!option.words.empty())
      text += fmt::format(" -a {}", in_quotes(fmt::format("{}", fmt::join(option.words, " "))));
    // In quotes, only backslash and quote have a meaning in fish.
    std::string description;
    for (const char letter : option.description) {
      if (letter == '\\' || letter == '\'') description += '\\';
      description += letter;
    }
    text += fmt::format(" -d '{}'\n", description);
  }
  return text;
}

}  // namespace

std::string completion(const CLI::App& app, std::string_view shell) {
  std::string text;
  if (shell == "bash") {
    text = bash(describe(app));
  } else if (shell == "zsh") {
    text = zsh(describe(app));
  } else if (shell == "fish") {
    text = fish(describe(app));
  } else {
    throw CLI::ValidationError("--completion", fmt::format("\"{}\" is not one of bash, zsh, fish", shell));
  }
  text.pop_back();  // CLI11 ends what it prints with a line feed
  return text;
}

}  // namespace tessera::tool
