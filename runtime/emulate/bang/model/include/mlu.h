#include "bang.h"
