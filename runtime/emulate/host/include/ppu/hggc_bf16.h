#pragma once
#define EMU_BFLOAT __ppu_bfloat16
#include "../emulated_bfloat.h"
