// Iluvatar's dialect: CUDA's names on warps of 64 lanes. No assembler, no matrix builtin.
#pragma once
#include "device.h"
#include "vectors.h"
#include "math.h"
#include "bits.h"
#include "numbers.h"
#include "warp_64.h"
#include "atomics.h"
