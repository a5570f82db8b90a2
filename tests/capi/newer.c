/* Ten functions of a later version of the library. */
#include <stdint.h>

#define NEWER(n) \
  int32_t tessera_newer_##n(void); \
  int32_t tessera_newer_##n(void) { return n; }
NEWER(0)
NEWER(1)
NEWER(2)
NEWER(3)
NEWER(4)
NEWER(5)
NEWER(6)
NEWER(7)
NEWER(8)
NEWER(9)
