// Holds the precompiled header of the programs (cmake/TesseraProgram.cmake).
