// What a kernel's translation unit tells the runtime; included by both, so no library headers.
#pragma once

namespace emu {

struct Entry {
    const char* name;
    void (*invoke)(void** args);
    int parameters;
    const unsigned long long* sizes;  // of the parameters, in bytes
    unsigned max_threads;             // __launch_bounds__, 0: none given
    unsigned cluster[3];              // __cluster_dims__, 0: none given
    unsigned min_blocks;              // of a multiprocessor, as __launch_bounds__ asks; 0: none given
};

struct Module {
    const Entry* entries;
    int count;
    unsigned warp_size;
    unsigned static_limit;  // bytes of static shared memory a block may declare
    unsigned total_limit;   // static and dynamic together
    const char* arch;
};

}  // namespace emu

extern "C" const emu::Module emu_module;
