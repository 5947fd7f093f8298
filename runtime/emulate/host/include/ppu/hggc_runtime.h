#pragma once
#include "hggc_runtime_api.h"
