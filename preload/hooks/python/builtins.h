/* Functions that Python calls as its own built-in ones: those of a training loop's every step,
 * where a call by ctypes costs several times as much.
 *
 * All of them hold the interpreter's lock, and give it up for as long as c10d_api.h's function
 * runs.
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
 *       Hands an operation over (deja_group_call has the fields; inputs and outputs are bytes, an
 *       array of deja_piece). real(*arguments, **keywords) makes it and returns `value`; what that
 *       raises is raised. answer: None, or (state, src, error) if the operation was served, where
 *       error is bytes or None.
 *   group_done(group, operation, dtype, outputs, src, error)
 *       As deja_impl_group_done. error: bytes or None.
 *   as_library(call, arguments) -> call(*arguments)
 *       What it does is a library's work and not the program's.
 *   plain(tensors) -> (flat, pieces, dtype)
 *       tensors: a tensor, None, or lists of lists of tensors. flat: a list of all of them. pieces:
 *       as group_call takes them; None where a tensor is not in host memory, or has gaps. dtype:
 *       the number of their element type; 255: they have several, or one without a number; -1:
 *       there is none.
 *   describe_tensors(tensor, strided, dtypes)
 *       Before plain: torch.Tensor, torch.strided, and by element type (number, bytes).
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
