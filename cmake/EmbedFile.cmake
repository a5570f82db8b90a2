# tessera_embed_file(target symbol path): the file's bytes inside the target, between
#   extern "C" const unsigned char <symbol>_begin[], <symbol>_end[];
# By .incbin, so compile time does not grow with the file; 64-byte aligned; rebuilt when the file changes.
enable_language(ASM)

function(tessera_embed_file target symbol path)
  get_filename_component(path "${path}" ABSOLUTE)
  set(assembly "${CMAKE_CURRENT_BINARY_DIR}/${symbol}.S")
  file(CONFIGURE OUTPUT "${assembly}" @ONLY CONTENT [[
.section .rodata.@symbol@, "a"
.balign 64
.globl @symbol@_begin
.hidden @symbol@_begin
.type @symbol@_begin, %object
@symbol@_begin:
.incbin "@path@"
.globl @symbol@_end
.hidden @symbol@_end
.type @symbol@_end, %object
@symbol@_end:
.byte 0
.size @symbol@_begin, @symbol@_end - @symbol@_begin
.section .note.GNU-stack, "", %progbits
]])
  set_source_files_properties("${assembly}" PROPERTIES OBJECT_DEPENDS "${path}")
  target_sources(${target} PRIVATE "${assembly}")
endfunction()
