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

#ifndef EMU_CALLS
// What a text copies by these is counted as well (own.cpp).
extern "C" void* memcpy(void*, const void*, size_t) noexcept __asm__("emu_memcpy");
extern "C" void* memset(void*, int, size_t) noexcept __asm__("emu_memset");
#endif
