// Copies between memories, fills, and what makes instructions wait for each other.
#pragma once

#include "types.h"

enum mluMemcpyDirection_t {
    GDRAM2GDRAM, GDRAM2LDRAM, GDRAM2SRAM, GDRAM2NRAM, GDRAM2WRAM,
    LDRAM2GDRAM, LDRAM2LDRAM, LDRAM2SRAM, LDRAM2NRAM, LDRAM2WRAM,
    SRAM2GDRAM, SRAM2LDRAM, SRAM2SRAM, SRAM2NRAM, SRAM2WRAM,
    NRAM2GDRAM, NRAM2LDRAM, NRAM2SRAM, NRAM2NRAM, NRAM2WRAM,
    WRAM2GDRAM, WRAM2LDRAM, WRAM2SRAM, WRAM2NRAM,
};

namespace emu {

struct Way {
    Space from, to;
};
inline Way way_of(mluMemcpyDirection_t direction) {
    static const Space order[] = {GDRAM, LDRAM, SRAM, NRAM, WRAM};
    return {order[direction / 5], order[direction % 5]};
}
inline bool off_chip(Space space) { return space == GDRAM || space == LDRAM; }

struct Segments {
    int64_t to_stride[2] = {0, 0}, from_stride[2] = {0, 0};
    uint32_t more[2] = {0, 0};
    int dimensions = 1;
};

void copy(const char* name, Line line, bool async, void* dst, const void* src, uint64_t size,
          mluMemcpyDirection_t direction, const Segments& segments);

}  // namespace emu

#define EMU_COPY(NAME, ASYNC)                                                                      \
    inline void NAME(void* dst, const void* src, unsigned int size, mluMemcpyDirection_t dir,      \
                     EMU_LINE) {                                                                   \
        emu::copy(#NAME, line, ASYNC, dst, src, size, dir, {});                                    \
    }                                                                                              \
    inline void NAME(void* dst, const void* src, unsigned int size, mluMemcpyDirection_t dir,      \
                     unsigned int dst_stride, int src_stride, unsigned int segnum, EMU_LINE) {     \
        emu::copy(#NAME, line, ASYNC, dst, src, size, dir,                                         \
                  {{dst_stride, 0}, {src_stride, 0}, {segnum, 0}, 2});                             \
    }                                                                                              \
    inline void NAME(void* dst, const void* src, unsigned int size, mluMemcpyDirection_t dir,      \
                     unsigned int dst_stride0, unsigned int dst_segnum1, unsigned int dst_stride1, \
                     unsigned int dst_segnum2, unsigned int src_stride0, unsigned int src_segnum1, \
                     unsigned int src_stride1, unsigned int src_segnum2, EMU_LINE) {               \
        if (dst_segnum1 != src_segnum1 || dst_segnum2 != src_segnum2)                              \
            emu::stop(emu::UNSUPPORTED, line.at,                                                   \
                      #NAME " with other numbers of segments there than here is not modelled");    \
        emu::copy(#NAME, line, ASYNC, dst, src, size, dir,                                         \
                  {{dst_stride0, dst_stride1}, {src_stride0, src_stride1},                         \
                   {dst_segnum1, dst_segnum2}, 3});                                                \
    }
EMU_COPY(__memcpy, false)
EMU_COPY(__memcpy_async, true)
#undef EMU_COPY

// One element, as C++ reads and writes it.
#define EMU_ELEMENT(TYPE, MEMORY)                                                                  \
    EMU_READ inline TYPE __load_##MEMORY(const TYPE* src) { return *src; }                         \
    EMU_READ inline void __store_##MEMORY(TYPE* dst, TYPE value) { *dst = value; }
#define EMU_ELEMENTS(TYPE)  \
    EMU_ELEMENT(TYPE, nram) \
    EMU_ELEMENT(TYPE, gdram)
EMU_ELEMENTS(int8_t)
EMU_ELEMENTS(int16_t)
EMU_ELEMENTS(int32_t)
EMU_ELEMENTS(uint8_t)
EMU_ELEMENTS(uint16_t)
EMU_ELEMENTS(uint32_t)
EMU_ELEMENTS(float)
EMU_ELEMENTS(half)
EMU_ELEMENTS(bfloat16_t)
#undef EMU_ELEMENTS
#undef EMU_ELEMENT

inline void __sync() {
    const bool all[] = {true, true, true};
    emu::synchronise(all, all);
}
inline void __sync_io_move_compute(bool ioproducer = true, bool moveproducer = true,
                                   bool computeproducer = true, bool ioconsumer = true,
                                   bool moveconsumer = true, bool computeconsumer = true,
                                   EMU_LINE) {
    const bool producers[] = {ioproducer, moveproducer, computeproducer};
    const bool consumers[] = {ioconsumer, moveconsumer, computeconsumer};
    if (!(ioproducer || moveproducer || computeproducer) ||
        !(ioconsumer || moveconsumer || computeconsumer))
        emu::stop(emu::MISUSE, line.at,
                  "__sync_io_move_compute: producers cannot all be false, nor consumers");
    emu::synchronise(producers, consumers);
}
inline void __sync_io() { __sync_io_move_compute(true, false, false); }
inline void __sync_move() { __sync_io_move_compute(false, true, false); }
inline void __sync_compute() { __sync_io_move_compute(false, false, true); }

// Cores run one after another here, so they cannot wait for each other.
#define EMU_TOGETHER(NAME)                                                               \
    inline void NAME(EMU_LINE) {                                                         \
        emu::stop(emu::UNSUPPORTED, line.at, #NAME ": cores that wait for each other are " \
                                                   "not modelled");                      \
    }
EMU_TOGETHER(__sync_cluster)
EMU_TOGETHER(__sync_all)
EMU_TOGETHER(__sync_all_ipu)
#undef EMU_TOGETHER
