# Cuts the examples out of comments of public headers: awk -v out=FILE.cpp -v c_out=FILE.c -v root=INCLUDE_DIR -f examples.awk HEADERS...
# An example is a run of comment lines that are indented by three spaces and follow an empty comment line, of which at least one ends as code
# does (; { }). Each becomes the body of a function, with example.hpp around it; the examples of tessera.h become functions in C.
# With `-v list=1` it writes "HEADER class NAME HAS" for each class instead, HAS being 1 if the class has an example: directly above it, or one
# of its header that contains its name (in any case, with or without underscores).
function trim(line) { sub(/ +(\/\/ .*|\/\*.*\*\/)$/, "", line); return line }
function plain(line) { gsub(/_/, "", line); return tolower(line) }
function end_block() {
  if (lines && code) {
    ++n
    if (header ~ /\.h$/) {
      c_names[++c_n] = "example_" c_n
      c_body = c_body sprintf("static void example_%d(void) {\n#line %d \"%s\"\n%s}\n", c_n, first, path, block)
    } else {
      names[++cpp_n] = header ":" first
      body = body sprintf("static Outcome example_%d([[maybe_unused]] Names& names) {\n  TESSERA_EXAMPLE_NAMES {\n#line %d \"%s\"\n%s  }\n  return 0;\n}\n", cpp_n, first, path, block)
    }
    text = text plain(block)
    above = 1
  }
  lines = code = 0
  block = ""
}
function end_header(  i) {
  end_block()
  for (i = 1; i <= classes; ++i) print header, "class", class[i], (has[i] || index(text, plain(class[i])) ? 1 : 0)
  classes = above = 0
  text = ""
}
function quoted(line) { return "\"" line "\"" }
FNR == 1 {
  if (header != "" && list) end_header()
  end_block()
  path = FILENAME
  header = substr(path, length(root) + 2)
  before = text = ""
  if (header ~ /\.hpp$/) includes = includes "#include <" header ">\n"
}
{
  is_comment = header ~ /\.h$/ ? /^ \*( |$)/ : /^ *\/\/( |$)/
  line = $0
  sub(header ~ /\.h$/ ? "^ \\*" : "^ *//", "", line)
  if (is_comment && line ~ /^   / && (lines || before == "comment ends")) {
    if (!lines++) first = FNR
    line = substr(line, 4)
    if (trim(line) ~ /[;{}]$/) code = 1
    block = block line "\n"
    next
  }
  end_block()
  before = is_comment && line ~ /^ *$/ ? "comment ends" : ""
  if (/^(class|class \[\[nodiscard\]\]) [A-Z][A-Za-z0-9]*( final)?( :[^;]*)? \{$/) {
    sub(/^class (\[\[nodiscard\]\] )?/, "")
    sub(/[^A-Za-z0-9].*/, "")
    class[++classes] = $0
    has[classes] = above
  }
  if (!is_comment && $0 !~ /^template/) above = 0
}
END {
  if (list) { end_header(); exit }
  end_block()
  print "// Made by tests/docs/examples.awk from the comments of the public headers.\n#include \"docs/example.hpp\"\n" > out
  print includes "\nusing namespace tessera;\nusing namespace tessera::docs;\n" > out
  print body > out
  printf "constexpr Example kExamples[] = {\n" > out
  for (i = 1; i <= cpp_n; ++i) printf "    {%s, example_%d},\n", quoted(names[i]), i > out
  print "};\n\nint main(int argc, char** argv) { return run_all(kExamples, argc, argv); }" > out
  print "/* Made by tests/docs/examples.awk from the comments of tessera.h. */\n#include <stdio.h>\n#include <tessera.h>\n" > c_out
  print c_body > c_out
  print "int main(void) {" > c_out
  for (i = 1; i <= c_n; ++i) printf "  %s();\n", c_names[i] > c_out
  print "  return 0;\n}" > c_out
}
