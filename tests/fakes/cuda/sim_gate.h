// Calls of the driver's API: a process that is locked lets no further ones begin. Any thread.
#ifndef DEJA_TESTS_FAKES_CUDA_SIM_GATE_H_
#define DEJA_TESTS_FAKES_CUDA_SIM_GATE_H_

#include <chrono>

namespace cusim {

// Around a host function. A call that it makes ends the process.
class HostFunction {
 public:
  HostFunction();
  ~HostFunction();
  HostFunction(const HostFunction&) = delete;
  HostFunction& operator=(const HostFunction&) = delete;
};

// At the beginning of a call. Calls within a call do not wait.
class ApiCall {
 public:
  ApiCall();
  ~ApiCall();
  ApiCall(const ApiCall&) = delete;
  ApiCall& operator=(const ApiCall&) = delete;
};

// False: a call that had begun did not end in time, and the gate is open as before.
bool CloseGate(std::chrono::steady_clock::time_point deadline);
void OpenGate();

// Takes the requests of other processes (process checkpoints) from now on. Once.
void ServeCheckpoints();

}  // namespace cusim

#endif  // DEJA_TESTS_FAKES_CUDA_SIM_GATE_H_
