#pragma once
#define EMU_BF16 __mt_bfloat16
#define EMU_BF162 __mt_bfloat162
#include "../emulate/bfloat.h"
