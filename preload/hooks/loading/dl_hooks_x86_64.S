// void* dlsym(void* handle, const char* name)
//
// Asks deja_dlsym_decide and then jumps to the next dlsym. A call would not do: the C library takes the return
// address for the caller's when it looks for "the next object after the caller".
#if !defined(__x86_64__) || !defined(__linux__)
#error "write the dlsym hook for this machine"
#endif

    .text
    .globl dlsym
    .type dlsym, @function
    .p2align 4
dlsym:
    .cfi_startproc
    endbr64
    subq $24, %rsp                  // two arguments and the answer; keeps the stack aligned to 16
    .cfi_adjust_cfa_offset 24
    movq %rdi, 0(%rsp)
    movq %rsi, 8(%rsp)
    leaq 16(%rsp), %rdx
    movq 24(%rsp), %rcx             // the return address
    call deja_dlsym_decide
    movq %rax, %r11
    movq 0(%rsp), %rdi
    movq 8(%rsp), %rsi
    movq 16(%rsp), %rax
    addq $24, %rsp
    .cfi_adjust_cfa_offset -24
    testq %r11, %r11
    jz .Lanswer
    jmp *%r11
.Lanswer:
    ret
    .cfi_endproc
    .size dlsym, . - dlsym

    .section .note.GNU-stack, "", @progbits
    // Indirect branches land on endbr64, and calls match returns (CET).
    .section .note.gnu.property, "a", @note
    .p2align 3
    .long 4, 16, 5
    .asciz "GNU"
    .long 0xc0000002, 4, 3, 0
