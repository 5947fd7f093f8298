// Pooling over a tensor of height x width x channels: windows that do not fit whole are dropped.
#pragma once

#include "vector.h"

namespace emu {

struct Window {
    uint64_t channel, height, width, kernel_height, kernel_width, stride_width, stride_height;
};

template <class T, class F>
void pool(const char* name, Line line, T* dst, const T* src, Window w, F combine) {
    needs_type<T>(name, line.at);
    const uint64_t sizes[] = {w.channel,       w.height,       w.width,        w.kernel_height,
                              w.kernel_width,  w.stride_width, w.stride_height};
    static const char* const words[] = {"channel",      "height",       "width",        "kernel_height",
                                        "kernel_width", "stride_width", "stride_height"};
    for (int i = 0; i < 7; ++i) needs_count(name, line.at, sizes[i], words[i]);
    if (w.kernel_height * w.kernel_width > 65536)
        stop(MISUSE, line.at, "%s: a window of %llu elements, but 65536 is the most", name,
             static_cast<unsigned long long>(w.kernel_height * w.kernel_width));
    if (w.kernel_height > w.height || w.kernel_width > w.width)
        stop(MISUSE, line.at, "%s: the window is larger than the tensor", name);
    const uint64_t high = (w.height - w.kernel_height) / w.stride_height + 1;
    const uint64_t wide = (w.width - w.kernel_width) / w.stride_width + 1;
    const uint64_t source = w.height * w.width * w.channel * sizeof(T);
    const uint64_t result = high * wide * w.channel * sizeof(T);
    Instruction instruction(name, COMPUTE, line);
    instruction.read(NRAM, src, source, "src");
    check_overlap(name, line.at, dst, result, src, source, false, "src");
    instruction.write(NRAM, dst, result, "dst");
    instruction.issue([=] {
        for (uint64_t y = 0; y < high; ++y)
            for (uint64_t x = 0; x < wide; ++x)
                for (uint64_t c = 0; c < w.channel; ++c) {
                    bool bad = false;
                    float total = 0;
                    for (uint64_t i = 0; i < w.kernel_height; ++i)
                        for (uint64_t j = 0; j < w.kernel_width; ++j) {
                            const uint64_t row = y * w.stride_height + i;
                            const uint64_t column = x * w.stride_width + j;
                            const float one =
                                widen(load(src + (row * w.width + column) * w.channel + c, bad));
                            total = i || j ? combine(total, one) : one;
                        }
                    store(dst + (y * wide + x) * w.channel + c, static_cast<T>(total), bad);
                }
    });
}

}  // namespace emu

#define EMU_POOL(TYPE, NAME, EXPRESSION)                                                    \
    void __bang_##NAME(TYPE* dst, const TYPE* src, unsigned int channel,                    \
                       unsigned int height, unsigned int width, unsigned int kernel_height, \
                       unsigned int kernel_width, unsigned int stride_width,                \
                       unsigned int stride_height, EMU_LINE) EMU_BODY({                     \
        emu::pool("__bang_" #NAME, line, dst, src,                                          \
                  {channel, height, width, kernel_height, kernel_width, stride_width,       \
                   stride_height},                                                          \
                  [](float a, float b) { return EXPRESSION; });                             \
    })
#define EMU_POOLS(TYPE)                \
    EMU_POOL(TYPE, sumpool, a + b)     \
    EMU_POOL(TYPE, maxpool, b > a ? b : a) \
    EMU_POOL(TYPE, minpool, b < a ? b : a)
EMU_POOLS(half)
EMU_POOLS(bfloat16_t)
EMU_POOLS(float)
#undef EMU_POOLS
#undef EMU_POOL
