#include "bang.h"  // in the cache this header is found already read
