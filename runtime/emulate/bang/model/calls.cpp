// The vector calls and products of the headers, compiled once.
#define EMU_CALLS
#include "bang.h"
