// AscendCL as launching functions call it; `kernel<<<...>>>(...)` was put into stand_in_call.
#pragma once
#include <stdint.h>

constexpr int ACL_RT_THREAD_LEVEL = 0;
extern "C" int aclrtGetLastError(int level);
extern "C" void stand_in_launch(const char* name, unsigned blocks, int dynamic, void* stream, void** arguments);

template <typename... Values>
void stand_in_call(const char* name, unsigned blocks, int dynamic, void* stream, Values... values) {
    void* arguments[] = {&values...};
    stand_in_launch(name, blocks, dynamic, stream, arguments);
}
