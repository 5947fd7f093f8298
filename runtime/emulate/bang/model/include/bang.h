// Stands for the toolkit's header: what a BANG C kernel may call, modelled on the CPU.
#pragma once
#include "bang/core.h"
#include "bang/types.h"
#include "bang/copy.h"
#include "bang/vector.h"
#include "bang/active.h"
#include "bang/convert.h"
#include "bang/pool.h"
#include "bang/matrix.h"
#include "cnrt.h"
