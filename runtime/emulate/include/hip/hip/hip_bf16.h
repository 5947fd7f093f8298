#pragma once
#define EMU_BF16 __hip_bfloat16
#define EMU_BF162 __hip_bfloat162
#include "../../emulate/bfloat.h"
