#pragma once
#define EMU_BFLOAT maca_bfloat16
#include "../../emulated_bfloat.h"
