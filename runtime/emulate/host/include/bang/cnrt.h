// CNRT for programs that run emulated kernels; launches end before the call returns.
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef enum {
    cnrtSuccess = 0,
    cnrtErrorArgsInvalid = 100007,
    cnrtErrorNoMem = 100008,
    cnrtErrorNotReady = 100010,
    cnrtErrorKernelTrap = 101004
} cnrtRet_t;

typedef struct cnrtQueue* cnrtQueue_t;

typedef struct {
    unsigned int x, y, z;
} cnrtDim3_t;

typedef enum { cnrtFuncTypeBlock = 1, cnrtFuncTypeUnion1 = 4 } cnrtFunctionType_t;

typedef enum {
    cnrtMemcpyHostToDev = 0,
    cnrtMemcpyDevToDev,
    cnrtMemcpyDevToHost,
    cnrtMemcpyHostToHost,
    cnrtMemcpyNoDirection
} cnrtMemTransDir_t;

#ifdef __cplusplus
extern "C" {
#endif

cnrtRet_t cnrtSetDevice(int ordinal);
cnrtRet_t cnrtMalloc(void** pointer, size_t bytes);
cnrtRet_t cnrtFree(void* pointer);
cnrtRet_t cnrtMemcpy(void* to, void* from, size_t bytes, cnrtMemTransDir_t direction);
cnrtRet_t cnrtQueueCreate(cnrtQueue_t* queue);
cnrtRet_t cnrtQueueDestroy(cnrtQueue_t queue);
cnrtRet_t cnrtQueueSync(cnrtQueue_t queue);
cnrtRet_t cnrtGetLastError(void);
cnrtRet_t cnrtPeekAtLastError(void);
const char* cnrtGetErrorStr(cnrtRet_t error);
void tile2c_emulated_launch(const char* name, cnrtDim3_t tasks, cnrtFunctionType_t type, void** args);

#ifdef __cplusplus
}

// What `kernel<<<tasks, type, queue>>>(values...)` becomes.
template <typename... Values>
void tile2c_emulated(const char* name, cnrtDim3_t tasks, cnrtFunctionType_t type, cnrtQueue_t,
                     Values... values) {
    void* args[] = {&values..., nullptr};
    tile2c_emulated_launch(name, tasks, type, args);
}
#endif
