// Everything that nvcc gives a kernel without an include.
#pragma once
#include "device.h"
#include "vectors.h"

// EMU_ARCH: 700, 750, 800, … A function the architecture lacks is refused where it is called.
#include "math.h"
#include "bits.h"
#include "warp_cuda.h"
#include "atomics.h"
#include "ptx.h"
#include "ptx_scalar.h"
#include "ptx_memory.h"
#include "ptx_hopper.h"
