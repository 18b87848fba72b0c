// void* dlopen(const char* file, int mode), in a library that stands in for NCCL, or for its profiler plugin
//
// Asks deja_dlopen_decide which file to open and where to go on, and jumps there. The C library takes the return
// address for the caller's, by whose search path it looks for the file.
#if !defined(__x86_64__) || !defined(__linux__)
#error "write the dlopen hook for this machine"
#endif

    .text
    .globl dlopen
    .type dlopen, @function
    .p2align 4
dlopen:
    .cfi_startproc
    endbr64
    subq $24, %rsp                  // file and mode; keeps the stack aligned to 16
    .cfi_adjust_cfa_offset 24
    movq %rdi, 0(%rsp)
    movq %rsi, 8(%rsp)
    movq %rsp, %rdi
    call deja_dlopen_decide
    movq 0(%rsp), %rdi
    movq 8(%rsp), %rsi
    addq $24, %rsp
    .cfi_adjust_cfa_offset -24
    jmp *%rax
    .cfi_endproc
    .size dlopen, . - dlopen

    .section .note.GNU-stack, "", @progbits
    // Indirect branches land on endbr64, and calls match returns (CET).
    .section .note.gnu.property, "a", @note
    .p2align 3
    .long 4, 16, 5
    .asciz "GNU"
    .long 0xc0000002, 4, 3, 0
