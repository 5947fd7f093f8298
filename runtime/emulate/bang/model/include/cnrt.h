// The names of the runtime that a text with host code in it mentions. Such code compiles here and is
// never run: a launch by <<<...>>> becomes a plain call.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct cnrtQueue;
struct cnrtNotifier;
typedef cnrtQueue* cnrtQueue_t;
typedef cnrtNotifier* cnrtNotifier_t;
typedef struct {
    unsigned int x, y, z;
} cnrtDim3_t;
enum cnrtFunctionType_t {
    cnrtFuncTypeBlock = 1,
    cnrtFuncTypeUnion1 = 4,
    cnrtFuncTypeUnion2 = 8,
    cnrtFuncTypeUnion4 = 16,
    cnrtFuncTypeUnion8 = 32,
};
#define CNRT_FUNC_TYPE_BLOCK cnrtFuncTypeBlock
#define CNRT_FUNC_TYPE_UNION1 cnrtFuncTypeUnion1
enum cnrtMemTransDir_t { cnrtMemcpyHostToDev, cnrtMemcpyDevToDev, cnrtMemcpyDevToHost };
// As older releases spell them.
#define CNRT_MEM_TRANS_DIR_HOST2DEV cnrtMemcpyHostToDev
#define CNRT_MEM_TRANS_DIR_DEV2HOST cnrtMemcpyDevToHost
enum cnrtRet_t { cnrtSuccess, cnrtErrorNotReady };
#define CNRT_RET_SUCCESS cnrtSuccess
#define CNRT_CHECK(call) (void)(call)

inline cnrtRet_t cnrtMalloc(void** at, size_t bytes) {
    *at = malloc(bytes);
    return *at ? cnrtSuccess : cnrtErrorNotReady;
}
inline cnrtRet_t cnrtFree(void* at) {
    free(at);
    return cnrtSuccess;
}
inline cnrtRet_t cnrtMemcpy(void* to, void* from, size_t bytes, cnrtMemTransDir_t) {
    memcpy(to, from, bytes);
    return cnrtSuccess;
}
inline cnrtRet_t cnrtQueueCreate(cnrtQueue_t* queue) {
    *queue = nullptr;
    return cnrtSuccess;
}
inline cnrtRet_t cnrtQueueSync(cnrtQueue_t) { return cnrtSuccess; }
inline cnrtRet_t cnrtQueueDestroy(cnrtQueue_t) { return cnrtSuccess; }
inline cnrtRet_t cnrtNotifierCreate(cnrtNotifier_t* notifier) {
    *notifier = nullptr;
    return cnrtSuccess;
}
inline cnrtRet_t cnrtPlaceNotifier(cnrtNotifier_t, cnrtQueue_t) { return cnrtSuccess; }
inline cnrtRet_t cnrtNotifierDestroy(cnrtNotifier_t) { return cnrtSuccess; }
inline cnrtRet_t cnrtNotifierElapsedTime(cnrtNotifier_t, cnrtNotifier_t, float* ms) {
    *ms = 0;
    return cnrtSuccess;
}
