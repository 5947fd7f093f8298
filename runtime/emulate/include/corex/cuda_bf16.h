#pragma once
#include "../emulate/bfloat.h"
