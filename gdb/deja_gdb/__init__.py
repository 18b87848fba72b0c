"""Deja's commands for gdb: where a replay is, and going to a place of interest, forwards and backwards.

Loaded by `deja replay --gdb`. The replay library inside the program keeps its position in the exported structure
`deja_replay_state` (replayer/report/position.h has its layout). It calls `deja_replay_stop` where it shall stop; these
commands read and write that memory. No function of the program is ever called and no register is written. So all this
works in stripped programs, in signal handlers, and on machines whose processor state this gdb cannot write. Backwards
means: a copy of the program that sleeps at an earlier place goes on, or the program starts again from the checkpoint
before. It is the same run, so it reaches the same places. Type `deja help`.

state      deja_replay_state          session    starting the program, and from which checkpoint
tensors    elements of tensors        running    stops, going on, what is said at each stop
stacks     recorded and live          positions  where the program is, so that a later run finds it
images     sleeping copies            frames     Deja's own frames in backtraces
children   processes of the program   libraries  which symbols gdb reads, and when (elf: what a file defines)
commands   the list of commands       travel     goto, back, reverse-next, reverse-continue, marks
"""
