// Stubs for functions of NCCL whose parameters Deja does not know: 64, of 16 bytes each.
//
// Each asks deja_newer_call for the real function of its number and jumps there. All registers that may hold arguments
// are as they were, and so is the stack.
#if !defined(__x86_64__) || !defined(__linux__)
#error "write the stubs for this machine"
#endif

    .text
    .globl deja_newer_stubs
    .hidden deja_newer_stubs
    .type deja_newer_stubs, @function
    .p2align 4
deja_newer_stubs:
    .set number, 0
    .rept 64
    .p2align 4
    endbr64
    movl $number, %r11d
    jmp .Lcall
    .set number, number + 1
    .endr
    .size deja_newer_stubs, . - deja_newer_stubs

    .p2align 4
.Lcall:
    .cfi_startproc
    pushq %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    subq $192, %rsp                 // 7 words, 8 vectors; aligned to 16
    movq %rdi, 0(%rsp)
    movq %rsi, 8(%rsp)
    movq %rdx, 16(%rsp)
    movq %rcx, 24(%rsp)
    movq %r8, 32(%rsp)
    movq %r9, 40(%rsp)
    movq %rax, 48(%rsp)             // al: the number of vector registers of a variadic call
    movups %xmm0, 64(%rsp)
    movups %xmm1, 80(%rsp)
    movups %xmm2, 96(%rsp)
    movups %xmm3, 112(%rsp)
    movups %xmm4, 128(%rsp)
    movups %xmm5, 144(%rsp)
    movups %xmm6, 160(%rsp)
    movups %xmm7, 176(%rsp)
    movl %r11d, %edi
    call deja_newer_call
    movq %rax, %r11
    movq 0(%rsp), %rdi
    movq 8(%rsp), %rsi
    movq 16(%rsp), %rdx
    movq 24(%rsp), %rcx
    movq 32(%rsp), %r8
    movq 40(%rsp), %r9
    movq 48(%rsp), %rax
    movups 64(%rsp), %xmm0
    movups 80(%rsp), %xmm1
    movups 96(%rsp), %xmm2
    movups 112(%rsp), %xmm3
    movups 128(%rsp), %xmm4
    movups 144(%rsp), %xmm5
    movups 160(%rsp), %xmm6
    movups 176(%rsp), %xmm7
    movq %rbp, %rsp
    popq %rbp
    .cfi_def_cfa %rsp, 8
    jmp *%r11
    .cfi_endproc

    .section .note.GNU-stack, "", @progbits
    // Indirect branches land on endbr64, and calls match returns (CET).
    .section .note.gnu.property, "a", @note
    .p2align 3
    .long 4, 16, 5
    .asciz "GNU"
    .long 0xc0000002, 4, 3, 0
