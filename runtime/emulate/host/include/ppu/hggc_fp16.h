#pragma once
#include "../emulated_half.h"
