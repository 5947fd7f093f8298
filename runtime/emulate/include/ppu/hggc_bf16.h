#pragma once
#define EMU_BF16 __ppu_bfloat16
#define EMU_BF162 __ppu_bfloat162
#include "../emulate/bfloat.h"
