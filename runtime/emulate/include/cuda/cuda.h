// The one type of the driver's header that kernels take.
#pragma once
struct alignas(64) CUtensorMap {
    unsigned long long opaque[16];
};
