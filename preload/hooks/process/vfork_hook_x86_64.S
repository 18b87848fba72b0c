// pid_t vfork(void)
//
// The child runs on its parent's stack until it execs or ends, so nothing that the parent needs may be there
// meanwhile. The return address is in a register during the call, as in the C library's own vfork. Only the parent,
// when it goes on, calls deja_vfork_made.
#if !defined(__x86_64__) || !defined(__linux__)
#error "write the vfork hook for this machine"
#endif

#include <asm/unistd.h>

    .text
    .globl vfork
    .type vfork, @function
    .p2align 4
vfork:
    .cfi_startproc
    endbr64
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    call deja_vfork_begins
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    .cfi_register %rip, %rdi
    movl $__NR_vfork, %eax
    syscall
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    .cfi_offset %rip, -8
    testl %eax, %eax
    jz .Lchild
    movl %eax, %edi
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    call deja_vfork_made
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
.Lchild:
    ret
    .cfi_endproc
    .size vfork, . - vfork

    .section .note.GNU-stack, "", @progbits
    // Indirect branches land on endbr64.
    .section .note.gnu.property, "a", @note
    .p2align 3
    .long 4, 16, 5
    .asciz "GNU"
    .long 0xc0000002, 4, 1, 0
