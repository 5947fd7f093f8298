#pragma once
#include "../../emulate/half.h"
