// The header a kernel text includes; here it leads to the model of the core.
#pragma once

#include "ascendc/vector.h"
#include "ascendc/cast.h"
#include "ascendc/compare.h"
#include "ascendc/reduce.h"
#include "ascendc/transpose.h"
#include "ascendc/fixpipe.h"
