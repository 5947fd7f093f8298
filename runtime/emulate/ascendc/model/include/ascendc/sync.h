// Flags, barriers, and the settings that hold for the operations after them.
#pragma once

#include "tensor.h"

#define EMU_EVENTS(X)                                                                             \
    X(MTE2, MTE1)                                                                                 \
    X(MTE1, MTE2)                                                                                 \
    X(MTE1, M) X(M, MTE1) X(MTE2, V) X(V, MTE2) X(MTE3, V) X(V, MTE3) X(M, V) X(V, M) X(V, V)     \
        X(MTE3, MTE1) X(MTE1, MTE3) X(MTE1, V) X(V, MTE1) X(MTE2, M) X(M, MTE2) X(M, MTE3)        \
            X(MTE3, M) X(MTE3, MTE2) X(MTE2, MTE3) X(S, V) X(V, S) X(S, MTE2) X(MTE2, S)          \
                X(S, MTE3) X(MTE3, S) X(S, MTE1) X(MTE1, S) X(S, M) X(M, S) X(M, FIX) X(FIX, M)   \
                    X(FIX, MTE1) X(MTE1, FIX) X(FIX, MTE2) X(MTE2, FIX) X(FIX, MTE3) X(MTE3, FIX) \
                        X(FIX, S) X(S, FIX) X(FIX, V) X(V, FIX)

enum pipe_t {
    PIPE_S = emu::S,
    PIPE_V = emu::V,
    PIPE_M = emu::M,
    PIPE_MTE1 = emu::MTE1,
    PIPE_MTE2 = emu::MTE2,
    PIPE_MTE3 = emu::MTE3,
    PIPE_FIX = emu::FIX,
    PIPE_ALL = emu::PIPES
};
enum event_t {
    EVENT_ID0,
    EVENT_ID1,
    EVENT_ID2,
    EVENT_ID3,
    EVENT_ID4,
    EVENT_ID5,
    EVENT_ID6,
    EVENT_ID7
};

namespace AscendC {

using TEventID = int8_t;

enum class HardEvent : uint8_t {
#define X(from, to) from##_##to = emu::from * 16 + emu::to,
    EMU_EVENTS(X)
#undef X
};

template <HardEvent event>
void SetFlag(int32_t id, emu::Line line = emu::Line::here()) {
    emu::set_flag(emu::Pipe(int(event) / 16), emu::Pipe(int(event) % 16), id, line.at);
}
template <HardEvent event>
void WaitFlag(int32_t id, emu::Line line = emu::Line::here()) {
    emu::wait_flag(emu::Pipe(int(event) / 16), emu::Pipe(int(event) % 16), id, line.at);
}
template <pipe_t pipe>
void PipeBarrier(emu::Line line = emu::Line::here()) {
    if (pipe == PIPE_ALL)
        emu::barrier_all(line.at);
    else
        emu::barrier(emu::Pipe(pipe), line.at);
}

template <class T>
void SetAtomicAdd(emu::Line line = emu::Line::here()) {
    emu::require_type<T, float, half, bfloat16_t, int16_t, int32_t, int8_t>("SetAtomicAdd",
                                                                            line.at);
    emu::launch().atomic = emu::ATOMIC_ADD;
}
template <class T>
void SetAtomicMax(emu::Line = emu::Line::here()) {
    emu::launch().atomic = emu::ATOMIC_MAX;
}
template <class T>
void SetAtomicMin(emu::Line = emu::Line::here()) {
    emu::launch().atomic = emu::ATOMIC_MIN;
}
inline void SetAtomicNone() { emu::launch().atomic = emu::PLAIN; }
inline void DisableDmaAtomic() { SetAtomicNone(); }

inline void InitSocState() { SetAtomicNone(); }

inline void SyncAll(emu::Line line = emu::Line::here()) {
    emu::stop(emu::UNSUPPORTED, line.at, "SyncAll: cores run one after another here");
}
template <uint8_t mode, pipe_t pipe>
void CrossCoreSetFlag(uint16_t id, emu::Line line = emu::Line::here()) {
    emu::cross_set(mode, emu::Pipe(pipe), id, line.at);
}
template <uint8_t mode = 0, pipe_t pipe = PIPE_S>
void CrossCoreWaitFlag(uint16_t id, emu::Line line = emu::Line::here()) {
    emu::cross_wait(id, line.at);
}

}  // namespace AscendC

inline void set_flag(pipe_t from, pipe_t to, event_t id, emu::Line line = emu::Line::here()) {
    emu::set_flag(emu::Pipe(from), emu::Pipe(to), id, line.at);
}
inline void wait_flag(pipe_t from, pipe_t to, event_t id, emu::Line line = emu::Line::here()) {
    emu::wait_flag(emu::Pipe(from), emu::Pipe(to), id, line.at);
}
inline void pipe_barrier(pipe_t pipe, emu::Line line = emu::Line::here()) {
    if (pipe == PIPE_ALL)
        emu::barrier_all(line.at);
    else
        emu::barrier(emu::Pipe(pipe), line.at);
}
