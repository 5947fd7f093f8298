// The kernel sees what model.h gives it; a real toolkit has its own header of this name.
#pragma once
