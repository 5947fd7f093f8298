// CNRT as launching functions call it; `kernel<<<...>>>(...)` was put into stand_in_call.
#pragma once
#include <stdint.h>

struct half;
struct bfloat16_t;
struct cnrtQueue;
typedef cnrtQueue* cnrtQueue_t;
struct cnrtDim3_t {
    unsigned x, y, z;
};
enum cnrtFunctionType_t { cnrtFuncTypeBlock = 1 };
extern "C" int cnrtGetLastError();
extern "C" void stand_in_launch(const char* name, cnrtDim3_t tasks, int type, void* queue, void** arguments);

template <typename... Values>
void stand_in_call(const char* name, cnrtDim3_t tasks, int type, void* queue, Values... values) {
    void* arguments[] = {&values...};
    stand_in_launch(name, tasks, type, queue, arguments);
}
