#pragma once
#define EMU_BFLOAT __mt_bfloat16
#include "../emulated_bfloat.h"
