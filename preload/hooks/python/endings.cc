#include "preload/hooks/python/endings.h"

#include <time.h>

#include <atomic>
#include <memory>
#include <utility>

#include "preload/hooks/python/arguments.h"
#include "preload/hooks/python/raised.h"
#include "preload/process/guard.h"

namespace deja::preload {
namespace {

constexpr const char* kName = "deja.ending";

// Under the interpreter's lock, but for is_over.
struct Ending {
  GroupEnd end;
  PyObject* outputs = nullptr;     // bytes: the pieces
  PyObject* look = nullptr;        // null: there is none, or none any more
  PyThreadState* ender = nullptr;  // the thread that ends it, or has ended it
  std::atomic<bool> is_over{false};
};

void GiveUp(PyObject*& object) {
  if (object != nullptr) Python().Py_DecRef(std::exchange(object, nullptr));
}

void Forget(PyObject* capsule) {
  const std::unique_ptr<Ending> ending(
      static_cast<Ending*>(Python().PyCapsule_GetPointer(capsule, kName)));
  GiveUp(ending->outputs);
  GiveUp(ending->look);
}

// False: the look has raised, and nothing is recorded.
bool Look(Ending& ending) {
  if (ending.look == nullptr) return true;
  const Interpreter& py = Python();
  const Reference src(py.PyObject_CallFunctionObjArgs(ending.look, nullptr));
  if (src) ending.end.src = Int(src.get());
  return src && py.PyErr_Occurred() == nullptr;
}

void Record(Ending& ending) {
  const Pieces outputs = ending.end.failed ? Pieces{} : PiecesOf(ending.outputs);
  const Unlocked unlocked;
  EndGroupOperation(ending.end, outputs);
}

// The thread that was first is at it. A handler of a signal may ask in the midst of that.
void AwaitEnder(const Ending& ending, const PyThreadState* here) {
  if (ending.ender == here || ending.is_over) return;
  const Unlocked unlocked;
  const Guard guard;
  const timespec pause = {.tv_sec = 0, .tv_nsec = 100'000};
  while (!ending.is_over) nanosleep(&pause, nullptr);
}

// raised: what the operation raised, or is empty.
bool EndOnce(Ending& ending, Raised& raised) {
  PyThreadState* const here = Python().PyThreadState_Get();
  if (ending.ender != nullptr) {
    AwaitEnder(ending, here);
    return true;
  }
  ending.ender = here;
  bool is_known = true;
  if (raised) {
    ending.end.failed = true;
    ending.end.error = raised.Describe();
    is_known = ending.end.error.data() != nullptr;
  } else {
    is_known = Look(ending);
  }
  if (is_known) Record(ending);
  GiveUp(ending.look);  // the outputs may be what it holds
  ending.is_over = true;
  return is_known;
}

PyObject* End(PyObject* self, PyObject* const* arguments, intptr_t count) {
  const Interpreter& py = Python();
  if (count != 2) {
    py.PyErr_SetString(*py.type_error, "deja: another number of arguments");
    return nullptr;
  }
  auto* ending = static_cast<Ending*>(py.PyCapsule_GetPointer(self, kName));
  if (ending == nullptr) return nullptr;
  const bool has_call = arguments[0] != py.none;
  Reference value(has_call ? AsLibrary(nullptr, arguments, count) : NewReference(py.none));
  Raised raised;
  if (!value) raised.Take();
  const bool has_ended = EndOnce(*ending, raised);
  if (raised) raised.GiveBack();
  return has_ended ? value.Release() : nullptr;
}

constinit PyMethod g_end = {"end", &End, kFastCall, nullptr};

}  // namespace

PyObject* AsLibrary(PyObject*, PyObject* const* arguments, intptr_t) {
  const Guard guard;
  return Python().PyObject_Call(arguments[0], arguments[1], nullptr);
}

PyObject* NewEnding(PyObject*, PyObject* const* arguments, intptr_t) {
  const Interpreter& py = Python();
  auto ending = std::make_unique<Ending>();
  ending->end.group = Word(arguments[0]);
  ending->end.operation = Word(arguments[1]);
  ending->end.dtype = static_cast<uint32_t>(Int(arguments[2]));
  PiecesOf(arguments[3]);  // looks whether they are any
  if (py.PyErr_Occurred() != nullptr) return nullptr;
  const Reference capsule(py.PyCapsule_New(ending.get(), kName, &Forget));
  if (!capsule) return nullptr;
  ending->outputs = NewReference(arguments[3]);
  if (arguments[4] != py.none) ending->look = NewReference(arguments[4]);
  static_cast<void>(ending.release());  // the capsule's
  return py.PyCFunction_NewEx(&g_end, capsule.get(), nullptr);
}

}  // namespace deja::preload
