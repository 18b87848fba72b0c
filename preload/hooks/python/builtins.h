/* Functions that Python calls as its own built-in ones. A training loop needs them in each step,
 * where a call by ctypes costs several times as much.
 *
 * All of them hold the interpreter's lock. The first two and step give it up for as long as the
 * recorder or the replayer is at work (group_operations.h).
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
 *   group_done(group, operation, dtype, outputs, src, error)
 *       It has ended: a GroupEnd. outputs: as group_call takes them. error: bytes or None.
 *   as_library(call, arguments) -> call(*arguments)
 *       What it does is a library's work and not the program's.
 *   plain(tensors) -> (flat, pieces, dtype)
 *       tensors: a tensor, None, or lists of lists of tensors. flat: a list of all of them. pieces:
 *       as group_call takes them; None where a tensor is not in host memory, or has gaps. dtype:
 *       the number of their element type; 255: they have several, or one without a number; -1:
 *       there is none.
 *   describe_tensors(tensor, strided, dtypes)
 *       Before plain: torch.Tensor, torch.strided, and by element type (number, bytes).
 *   step(number) -> number
 *       As deja_impl_step.
 *   state(name, address, size)
 *       As deja_impl_state. name: bytes.
 *   twister(name, address, gauss)
 *       The same for a Mersenne twister whose place among its words is in front of them, as CPython
 *       has it; the trace has it after them. gauss: a float or None.
 *   has_bytes(address, held) -> bool
 *       Whether that memory holds those bytes.
 */
int deja_impl_python_builtins(void* dict, void* describe);

#ifdef __cplusplus
}
#endif

#endif /* DEJA_PRELOAD_HOOKS_PYTHON_BUILTINS_H_ */
