#!/usr/bin/awk -f
# Rewrites the comments of our headers for Doxygen: `//` before a declaration becomes `///`, `//` after a declaration becomes `///<`, also
# in the lines below that continue the comment in the same column. Escapes characters that Doxygen would take for a command, a tag or a
# link.
function text(comment, parts, i, n, plain, result) {
  n = split(comment, parts, "`")
  for (i = 1; i <= n; ++i) {
    plain = parts[i]
    if (i % 2 == 1) gsub(/[\\@#<>&%]/, "\\\\&", plain)  # not in `code`
    result = result (i > 1 ? "`" : "") plain
  }
  return result
}
FNR == 1 && /^\/\// { print "/// \\file" }
{
  at = match($0, /(^| )\/\/( |$)/)
  if (!at || $0 ~ /"[^"]*\/\/[^"]*"/) { print; behind = 0; next }
  if (substr($0, at, 1) == " ") ++at
  code = substr($0, 1, at - 1)
  comment = text(substr($0, at + 2))
  if (code !~ /^ *$/) { behind = code ~ /[;,}] *$/ ? at : 0; print code (behind ? "///<" : "//") comment; next }
  if (behind != at) behind = 0
  print code (behind ? "///<" : "///") comment
}
