// Walks of vector operands: what they touch, and which overlaps are allowed.
#include <unordered_map>
#include <unordered_set>

#include "ascendc/lanes.h"
#include "ascendc/transpose.h"
#include "state.h"

namespace emu {

void touch_lanes(Issue& op, const Operand& o, const Lanes& lanes, int width, bool write) {
    auto touch = [&](uint64_t begin, uint64_t end) {
        write ? op.write(UB, begin, end - begin) : op.read(UB, begin, end - begin);
    };
    if (lanes.counted) {
        if (lanes.count) touch(o.address, o.address + lanes.count * o.size);
        return;
    }
    uint64_t begin = 0, end = 0;
    for (int r = 0; r < lanes.repeats; ++r)
        for (int l = 0; l < width; ++l) {
            if (!lanes.active(l)) continue;
            uint64_t at = o.at(r, l);
            if (end != begin && at == end) {
                end += o.size;
                continue;
            }
            if (at >= begin && at + o.size <= end) continue;
            if (end != begin) touch(begin, end);
            begin = at, end = at + o.size;
        }
    if (end != begin) touch(begin, end);
}

namespace {

[[noreturn]] void overlap(const char* name, int line, const Operand& dst, const Operand& src,
                          const char* what) {
    stop(MISUSE, line, "%s: %s (from byte %llu) and %s (from byte %llu) %s", name, dst.role,
         static_cast<unsigned long long>(dst.address), src.role,
         static_cast<unsigned long long>(src.address), what);
}

void bounds(const Operand& o, const Lanes& lanes, int width, uint64_t& low, uint64_t& high) {
    low = o.address;
    high = o.address;
    for (int r : {0, lanes.repeats - 1})
        for (int l = 0; l < width; ++l)
            if (lanes.active(l) && o.at(r, l) + o.size > high) high = o.at(r, l) + o.size;
}

}  // namespace

void check_overlap(const char* name, int line, const Operand& dst, const Operand& src,
                   const Lanes& lanes, int width, bool accumulates) {
    if (lanes.counted) {
        uint64_t d = dst.address, s = src.address;
        if (d == s && dst.size == src.size) return;
        if (d + lanes.count * dst.size <= s || s + lanes.count * src.size <= d) return;
        overlap(name, line, dst, src, "overlap in part; they must be the same or apart");
    }
    bool alike = dst.address == src.address && dst.size == src.size &&
                 dst.block_stride == src.block_stride && dst.repeat_stride == src.repeat_stride;
    if (alike && dst.block_stride == 1 &&
        dst.repeat_stride >= width * dst.size / static_cast<int>(BLOCK))
        return;
    uint64_t d0, d1, s0, s1;
    bounds(dst, lanes, width, d0, d1);
    bounds(src, lanes, width, s0, s1);
    if (d1 <= s0 || s1 <= d0) return;
    std::unordered_map<uint64_t, int>
        wrote;  // byte of an element's start -> the repeat that wrote it
    for (int r = 0; r < lanes.repeats; ++r) {
        for (int l = 0; l < width; ++l) {
            if (!lanes.active(l)) continue;
            uint64_t at = src.at(r, l);
            for (int b = 0; b < src.size; ++b) {
                auto found = wrote.find(at + b);
                if (found != wrote.end() && found->second < r && !accumulates)
                    overlap(name, line, dst, src,
                            "overlap so that a repeat reads what an earlier repeat wrote");
            }
        }
        std::unordered_map<uint64_t, int> lane_of;
        for (int l = 0; l < width; ++l)
            if (lanes.active(l))
                for (int b = 0; b < dst.size; ++b)
                    lane_of[dst.at(r, l) + b] = l, wrote[dst.at(r, l) + b] = r;
        for (int l = 0; l < width; ++l) {
            if (!lanes.active(l)) continue;
            for (int b = 0; b < src.size; ++b) {
                auto found = lane_of.find(src.at(r, l) + b);
                if (found != lane_of.end() && found->second != l)
                    overlap(name, line, dst, src,
                            "overlap in part within a repeat; they must be the same or apart");
            }
        }
    }
}

void check_apart(const Blocks& to, const Blocks& from, int repeats, int line) {
    std::unordered_set<uint64_t> written;
    for (int r = 0; r < repeats; ++r)
        for (int i = 0; i < 16; ++i)
            if (!written.insert(to.at[i] + r * to.stride).second)
                stop(MISUSE, line, "TransDataTo5HD: two results lie at byte %llu",
                     static_cast<unsigned long long>(to.at[i] + r * to.stride));
    for (int r = 0; r < repeats; ++r)
        for (int i = 0; i < 16; ++i)
            if (written.count(from.at[i] + r * from.stride))
                stop(MISUSE, line, "TransDataTo5HD: source %d lies where a result does, byte %llu",
                     i, static_cast<unsigned long long>(from.at[i] + r * from.stride));
}

}  // namespace emu
