#pragma once
#include "hip_bf16.h"
#include "hip_fp16.h"

#define EMU_F8 __hip_fp8_e4m3_fnuz
#define EMU_F8_FORM emu::e4m3fnuz_form
#include "../../emulate/float8.h"
#undef EMU_F8
#undef EMU_F8_FORM
#define EMU_F8 __hip_fp8_e5m2_fnuz
#define EMU_F8_FORM emu::e5m2fnuz_form
#include "../../emulate/float8.h"
#undef EMU_F8
#undef EMU_F8_FORM
#define EMU_F8 __hip_fp8_e4m3
#define EMU_F8_FORM emu::e4m3_form
#include "../../emulate/float8.h"
#undef EMU_F8
#undef EMU_F8_FORM
#define EMU_F8 __hip_fp8_e5m2
#define EMU_F8_FORM emu::e5m2_form
#include "../../emulate/float8.h"
#undef EMU_F8
#undef EMU_F8_FORM
