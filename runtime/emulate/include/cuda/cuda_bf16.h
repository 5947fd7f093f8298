#pragma once
#include "../emulate/bfloat.h"
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;
