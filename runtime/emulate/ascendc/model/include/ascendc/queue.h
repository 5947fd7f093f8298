// TPipe, TQue, TQueBind, TBuf.
#pragma once

#include <stdio.h>

#include "sync.h"

namespace emu {

// The units that a queue's flags join: a full buffer goes from the first to the second.
struct QueuePipes {
    Pipe source, target;
};

constexpr QueuePipes queue_pipes(Space from, Space to) {
    if (from == GM) return {MTE2, to == UB ? V : to == L1 ? MTE1 : M};
    if (from == UB)
        return to == GM   ? QueuePipes{V, MTE3}
               : to == L1 ? QueuePipes{MTE3, MTE1}
                          : QueuePipes{MTE2, MTE3};
    if (from == L1) return {MTE1, M};
    if (from == L0C) return {M, FIX};
    return {M, V};
}

constexpr Space queue_source(AscendC::TPosition p) {
    using P = AscendC::TPosition;
    return p == P::VECIN || p == P::A1 || p == P::B1 || p == P::C1 || p == P::TSCM ? GM
           : p == P::A2 || p == P::B2 || p == P::C2                                ? L1
                                                                                   : space_of(p);
}
constexpr Space queue_target(AscendC::TPosition p) {
    using P = AscendC::TPosition;
    return p == P::VECOUT || p == P::CO1 ? GM : space_of(p);
}

}  // namespace emu

namespace AscendC {

template <TPosition where, int32_t depth_, emu::Space from, emu::Space to>
class EmuQueue {
   public:
    static constexpr TPosition position = where;
    static constexpr int32_t depth = depth_;
    static constexpr emu::QueuePipes pipes = emu::queue_pipes(from, to);

    template <class T>
    LocalTensor<T> AllocTensor(emu::Line line = emu::Line::here()) {
        in_place("AllocTensor", false, line);
        return alloc<T>(line);
    }
    template <class T>
    void AllocTensor(LocalTensor<T>& tensor, emu::Line line = emu::Line::here()) {
        in_place("AllocTensor", true, line);
        tensor = alloc<T>(line);
    }
    template <class T>
    bool EnQue(const LocalTensor<T>& tensor, emu::Line line = emu::Line::here()) {
        emu::queue_enque(queue_, tensor.address, line.at);
        return true;
    }
    template <class T>
    LocalTensor<T> DeQue(emu::Line line = emu::Line::here()) {
        in_place("DeQue", false, line);
        return deque<T>(line);
    }
    template <class T>
    void DeQue(LocalTensor<T>& tensor, emu::Line line = emu::Line::here()) {
        in_place("DeQue", true, line);
        tensor = deque<T>(line);
    }
    template <class T>
    void FreeTensor(LocalTensor<T>& tensor, emu::Line line = emu::Line::here()) {
        emu::queue_free(queue_, tensor.address, line.at);
    }
    bool VacantInQue() { return emu::queue_vacant(queue_); }
    bool HasTensorInQue() { return emu::queue_count(queue_) > 0; }
    int32_t GetTensorCountInQue() { return emu::queue_count(queue_); }
    bool HasIdleBuffer() { return emu::queue_idle(queue_); }
    void FreeAllEvent() {}

    emu::Queue* queue_ = nullptr;

   private:
    template <class T>
    LocalTensor<T> alloc(emu::Line line) {
        uint64_t bytes = 0, address = emu::queue_alloc(queue_, bytes, line.at);
        return LocalTensor<T>(emu::space_of(where), where, address, bytes);
    }
    template <class T>
    LocalTensor<T> deque(emu::Line line) {
        uint64_t bytes = 0, address = emu::queue_deque(queue_, bytes, line.at);
        return LocalTensor<T>(emu::space_of(where), where, address, bytes);
    }
    static void in_place(const char* call, bool tensor_given, emu::Line line) {
        if ((depth_ == 0) != tensor_given)
            emu::stop(emu::MISUSE, line.at, "%s %s a tensor, but the queue has depth %d", call,
                      tensor_given ? "is given" : "returns", depth_);
    }
};

template <TPosition source, TPosition target, int32_t depth, auto mask = 0>
class TQueBind : public EmuQueue<(source == TPosition::GM ? target : source), depth,
                                 emu::space_of(source), emu::space_of(target)> {};
template <TPosition position, int32_t depth, auto mask = 0>
class TQue
    : public EmuQueue<position, depth, emu::queue_source(position), emu::queue_target(position)> {};

template <TPosition position_ = TPosition::VECCALC>
class TBuf {
   public:
    static constexpr TPosition position = position_;
    template <class T>
    LocalTensor<T> Get(emu::Line line = emu::Line::here()) {
        return GetWithOffset<T>(bytes_ / sizeof(T), 0, line);
    }
    template <class T>
    LocalTensor<T> Get(uint32_t count, emu::Line line = emu::Line::here()) {
        return GetWithOffset<T>(count, 0, line);
    }
    template <class T>
    LocalTensor<T> GetWithOffset(uint32_t count, uint32_t offset,
                                 emu::Line line = emu::Line::here()) {
        if (!bytes_) emu::stop(emu::MISUSE, line.at, "Get from a TBuf without InitBuffer");
        uint64_t bytes = uint64_t{count} * sizeof(T);
        if (offset + bytes > bytes_)
            emu::stop(emu::MISUSE, line.at, "Get of %llu bytes at %u from a TBuf of %llu",
                      static_cast<unsigned long long>(bytes), offset,
                      static_cast<unsigned long long>(bytes_));
        return LocalTensor<T>(emu::space_of(position_), position_, begin_ + offset, bytes);
    }
    uint64_t begin_ = 0, bytes_ = 0;
};

class TPipe {
   public:
    TPipe() { emu::pipe_opened(0); }
    void Init() {}
    template <class Q>
    auto InitBuffer(Q& queue, uint8_t count, uint32_t bytes, emu::Line line = emu::Line::here())
        -> decltype(queue.queue_, bool()) {
        emu::queue_init(queue.queue_, int(Q::position), emu::space_of(Q::position), count, bytes,
                        Q::depth, Q::pipes.source, Q::pipes.target, line.at);
        return true;
    }
    template <TPosition position>
    bool InitBuffer(TBuf<position>& buffer, uint32_t bytes, emu::Line line = emu::Line::here()) {
        buffer.begin_ = emu::buffer_init(int(position), emu::space_of(position), bytes, line.at);
        buffer.bytes_ = (uint64_t{bytes} + 31) / 32 * 32;
        return true;
    }
    template <HardEvent event>
    TEventID AllocEventID(emu::Line line = emu::Line::here()) {
        return TEventID(
            emu::take_event(emu::Pipe(int(event) / 16), emu::Pipe(int(event) % 16), line.at));
    }
    template <HardEvent event>
    void ReleaseEventID(TEventID id, emu::Line line = emu::Line::here()) {
        emu::give_event(emu::Pipe(int(event) / 16), emu::Pipe(int(event) % 16), id, line.at);
    }
    template <HardEvent event>
    TEventID FetchEventID() {
        return FetchEventID(event);
    }
    TEventID FetchEventID(HardEvent event) {
        return TEventID(emu::free_event(emu::Pipe(int(event) / 16), emu::Pipe(int(event) % 16)));
    }
    void Reset(emu::Line line = emu::Line::here()) { emu::pipe_reset(line.at); }
    void Destroy(emu::Line line = emu::Line::here()) { emu::pipe_reset(line.at); }
};

enum class Hardware : uint8_t { GM, UB, L1, L0A, L0B, L0C, BIAS, FIXBUF, MAX };

// Hands out one memory from its start on, in place of TPipe: the text sets all flags itself.
template <Hardware hardware = Hardware::UB>
class LocalMemAllocator {
   public:
    template <TPosition position, class T, uint32_t elements>
    LocalTensor<T> Alloc(emu::Line line = emu::Line::here()) {
        return Alloc<position, T>(elements, line);
    }
    template <TPosition position, class T>
    LocalTensor<T> Alloc(uint32_t elements, emu::Line line = emu::Line::here()) {
        if (emu::space_of(position) != space())
            emu::stop(emu::MISUSE, line.at, "Alloc: this position is not in %s",
                      emu::space_name(space()));
        uint64_t begin = emu::buffer_init(int(position), space(), elements * sizeof(T), line.at);
        end_ = uint32_t(begin + elements * sizeof(T));
        return LocalTensor<T>(space(), position, begin, elements * sizeof(T));
    }
    template <class T, uint32_t elements>
    LocalTensor<T> Alloc(emu::Line line = emu::Line::here()) {
        return Alloc<T>(elements, line);
    }
    template <class T>
    LocalTensor<T> Alloc(uint32_t elements, emu::Line line = emu::Line::here()) {
        return Alloc<usual(), T>(elements, line);
    }
    uint32_t GetCurAddr() const { return end_; }

   private:
    static constexpr emu::Space space() { return emu::space_of(usual()); }
    static constexpr TPosition usual() {
        switch (hardware) {
            case Hardware::L1:
                return TPosition::A1;
            case Hardware::L0A:
                return TPosition::A2;
            case Hardware::L0B:
                return TPosition::B2;
            case Hardware::L0C:
                return TPosition::CO1;
            case Hardware::BIAS:
                return TPosition::C2;
            default:
                return TPosition::VECCALC;
        }
    }
    uint32_t end_ = 0;
};

inline TPipe* GetTPipePtr() {
    static TPipe pipe;
    return &pipe;
}

template <class... A>
void printf(const char* format, A... values) {
    ::printf(format, values...);
}

}  // namespace AscendC

using AscendC::GetTPipePtr;

#ifndef assert
#define assert(condition) \
    ((condition) ? void() \
                 : ::emu::stop(::emu::MISUSE, __LINE__, "assertion failed: %s", #condition))
#endif
