/* Functions that Python calls as its own built-in ones. A training loop needs them in each step,
 * where a call by ctypes costs several times as much.
 *
 * All of them hold the interpreter's lock. While the recorder or the replayer is at work,
 * group_call, operation, end and step give it up (group_operations.h).
 */
#ifndef DEJA_PRELOAD_HOOKS_PYTHON_BUILTINS_H_
#define DEJA_PRELOAD_HOOKS_PYTHON_BUILTINS_H_

#ifdef __cplusplus
extern "C" {
#endif

/* Puts them into a dict, by name; both arguments are objects of Python's. describe(error) is the
 * text, as bytes, that a trace has for an exception. Both are kept for good. Returns 0 if the
 * interpreter has not what they need; nothing is in the dict then. Once in a process.
 *
 *   group_call(function, real, arguments, keywords, inputs, outputs, group, dtype, op, peer, tag,
 *              python_stack, nranks, name, identity)
 *     -> (value, group, operation, answer)
 *       Hands an operation over: a GroupOperation; inputs and outputs are bytes, an array of Piece.
 * real(*arguments, **keywords) makes it and returns `value`; what that raises is raised. answer:
 * None, or (state, src, error) if the operation was served, where error is bytes or None.
 *   ending(group, operation, dtype, outputs, look) -> end
 *       end(call, arguments) -> call(*arguments): what waits for the operation, made as as_library
 * makes it; None: nothing has to. The operation has ended once that returns or raises. The first
 * thread records it, a GroupEnd; others return when that is done. outputs: as group_call takes
 * them. look() is called, unless it is None, before an end without error is recorded; it returns
 * src. What it raises is raised, and nothing is recorded.
 *   as_library(call, arguments) -> call(*arguments)
 *       What it does is a library's work and not the program's.
 *   operation(function, real, arguments, keywords, inputs, outputs, group, op, peer, tag,
 *             python_stack) -> (value, operation, answer, inputs, outputs, pieces, dtype)
 *       group_call for tensors that are where it can take them. inputs and outputs: a tensor, None,
 * or lists of lists of tensors; the same object twice where an operation writes what it has read.
 * None, and nothing is done, where a tensor is not in host memory, or has gaps. The inputs and
 * outputs that it returns are lists of all tensors. pieces: of the outputs. dtype: the number of
 * the element type; 255: they have several, or one without a number, or there is none.
 *   describe_tensors(tensor, strided, dtypes)
 *       Before operation: torch.Tensor, torch.strided, and by element type (number, bytes).
 *   step(number) -> number
 *       As deja_impl_step.
 *   states(told) -> True
 *       told: a list of states of generators, a deja_impl_state each; name: bytes.
 *       (name, address, size, owner): the memory that has it.
 *       (name, address, None, gauss): a Mersenne twister whose place among its words is in front of
 * them, as CPython has it; the trace has it after them, and then gauss, a float or None.
 *       (name, None, call, None): the bytes of the tensor that call() returns.
 *   states_if(attributes, modules, absent, memory, told) -> bool
 *       The same if all of this holds; else False, and nothing is told.
 *       attributes, a list of (object, name, value): that attribute is that object.
 *       absent, a list of names: the dict `modules` does not have them.
 *       memory, a list of (address, held): it holds those bytes.
 *   has_bytes(address, held) -> bool
 *       Whether that memory holds those bytes.
 *   value_byte(object, place) -> number
 *       A byte of the value of C++ that the object of a class of pybind11 stands for.
 */
int deja_impl_python_builtins(void* dict, void* describe);

#ifdef __cplusplus
}
#endif

#endif /* DEJA_PRELOAD_HOOKS_PYTHON_BUILTINS_H_ */
