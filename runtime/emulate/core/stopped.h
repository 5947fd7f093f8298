// Thrown by `fail` when it is called outside a fiber; run_team catches it.
#pragma once

namespace emu {
struct Stopped {};
}  // namespace emu
