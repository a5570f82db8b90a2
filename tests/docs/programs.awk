# Puts the programs' --help into the page of their options: awk -v helps=DIR -f programs.awk PAGE.md, with a file DIR/PROGRAM for each program.
# In a section "## PROGRAM" the block ```text becomes the help. A program without a file keeps its block.
/^## / { program = substr($0, 4) }
inside && /^```$/ { inside = 0; print; next }
inside { if (!replaced) print; next }
{ print }
/^```text$/ && program != "" {
  inside = 1
  replaced = 0
  while ((getline line < (helps "/" program)) > 0) { print line; replaced = 1 }
  close(helps "/" program)
  program = ""
}
