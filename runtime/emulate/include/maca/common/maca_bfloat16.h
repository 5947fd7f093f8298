#pragma once
#define EMU_BF16 maca_bfloat16
#define EMU_BF162 maca_bfloat162
#include "../../emulate/bfloat.h"
using __maca_bfloat16 = maca_bfloat16;
