// Kernels that crash or never end: caught by signals for as long as a launch runs.
#pragma once
#include "context.h"

namespace emu {

// Installs the handlers for the process; the destructor puts the old ones back.
class SignalScope {
  public:
    SignalScope();
    ~SignalScope();
};

// Watches the calling OS thread while it runs teams of `worker`.
class WatchScope {
  public:
    explicit WatchScope(Worker& worker);
    ~WatchScope();
    void restart();  // a new team has its own time

  private:
    void* timer_ = nullptr;
    bool has_timer_ = false;
    void* stack_ = nullptr;
    void* previous_ = nullptr;  // stack_t
    Worker* worker_ = nullptr;
};

}  // namespace emu
