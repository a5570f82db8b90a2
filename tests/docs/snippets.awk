# Writes the C++ and the C of a page to files: awk -v out=DIR -v page=NAME -f snippets.awk PAGE.md
# A block with a main() becomes the program NAME_N.cpp, other blocks the body of a function in fragments_NAME.cpp, with
# fragment.hpp around it. A block of C is a whole program, NAME_N.c. Before a program, a line `<!-- run: ARGUMENTS -->` says how it is run: NAME_N.args has the arguments,
# and NAME_N.prints what a block ```text after `<!-- prints -->` says that it prints. Before a block of declarations, which no function can hold,
# a line `<!-- declarations: HEADERS -->` says so, and names the headers of src/ that they need. A block may be indented, as those in lists are.
BEGIN { program = 0; fragments = out "/fragments_" page ".cpp" }
/^<!-- run:.*-->$/ { arguments = $0; sub(/^<!-- run: */, "", arguments); sub(/ *-->$/, "", arguments); has_arguments = 1 }
/^ *<!-- declarations:.*-->$/ { needs = $0; sub(/^ *<!-- declarations: */, "", needs); sub(/ *-->$/, "", needs); declares = 1 }
/^<!-- prints -->$/ { prints = 1 }
/^ *```/ && inside == "" {
  indent = index($0, "`") - 1
  inside = substr($0, indent + 4); body = ""
  if (inside == "") inside = "none"
  first_line = FNR + 1
  next
}
/^ *```$/ && index($0, "`") - 1 == indent {
  if (inside == "cpp" || inside == "c") {
    if (inside == "c" || body ~ /int main\(/) {
      ++program
      file = out "/" page "_" program
      printf "#line %d \"%s\"\n%s", first_line, FILENAME, body > (file "." inside)
      if (has_arguments) printf "%s\n", arguments > (file ".args")
    } else {
      if (!fragment++) printf "#include \"docs/fragment.hpp\"\n\n" > fragments
      includes = ""; rest = ""
      n = split(body, lines, "\n")
      for (i = 1; i <= n; ++i) if (lines[i] ~ /^#include/) includes = includes lines[i] "\n"; else rest = rest lines[i] "\n"
      if (declares) {
        n = split(needs, headers, " ")
        for (i = 1; i <= n; ++i) includes = includes "#include \"" headers[i] "\"\n"
        printf "%s#line %d \"%s\"\n%s\n", includes, first_line, FILENAME, rest > fragments
      } else printf "%sTESSERA_FRAGMENT(%s_%d) {\n  TESSERA_NAMES {\n#line %d \"%s\"\n%s\n  }\n  return 0;\n}\n\n", includes, page, fragment, first_line, FILENAME, rest > fragments
    }
    has_arguments = declares = 0
  } else if (inside == "text" && prints && program) {
    printf "%s", body > (file ".prints")
  }
  if (inside != "cpp" && inside != "c") prints = 0
  inside = ""
  next
}
inside != "" { line = $0; if (substr(line, 1, indent) ~ /^ *$/) line = substr(line, indent + 1); body = body line "\n" }
END { if (inside != "") { printf "%s: a block without its end\n", FILENAME > "/dev/stderr"; exit 1 } }
