// The extension module tessera._core.
#include <string>

#include <tessera/version.hpp>

#include "calls.hpp"
#include "types/boxes.hpp"

NB_MODULE(_core, m) {
  using namespace tessera::python;
  m.doc() = "The compiled part of tessera: import tessera instead.";
  remember_main_thread();
  m.attr("__version__") = std::string(tessera::version());
  bind_values(m);
  bind_tokenizer(m);
  bind_grammar(m);
  bind_sampler(m);
  bind_adapter(m);
  bind_engine(m);
  bind_compile(m);
  bind_session(m);
  bind_batch(m);
  bind_scheduler(m);
  bind_conversation(m);
  explain_wrong_calls(m);
  // Ends the drivers' threads before the interpreter ends, so that no callback runs after the interpreter's end.
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] {
    stop_drivers();
    drop_references();
  }));
}
