/* GDB's interface for code that is made at run time, as its manual has it, and ELF objects that describe such code. */
#ifndef RPD_JIT_H
#define RPD_JIT_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { JIT_NOACTION, JIT_REGISTER, JIT_UNREGISTER };
struct jit_code_entry {
    struct jit_code_entry *next, *previous;
    const char *object;
    uint64_t size;
};
struct jit_descriptor {
    uint32_t version, action;
    struct jit_code_entry *relevant, *first;
};
struct jit_descriptor __jit_debug_descriptor = {1, JIT_NOACTION, NULL, NULL};
__attribute__((noinline, noclone)) void __jit_debug_register_code(void) { __asm__ volatile("" ::: "memory"); }

static void register_entry(struct jit_code_entry *entry) {
    entry->previous = NULL;
    entry->next = __jit_debug_descriptor.first;
    if (entry->next)
        entry->next->previous = entry;
    __jit_debug_descriptor.first = __jit_debug_descriptor.relevant = entry;
    __jit_debug_descriptor.action = JIT_REGISTER;
    __jit_debug_register_code();
}

static void unregister_entry(struct jit_code_entry *entry) {
    if (entry->previous)
        entry->previous->next = entry->next;
    else
        __jit_debug_descriptor.first = entry->next;
    if (entry->next)
        entry->next->previous = entry->previous;
    __jit_debug_descriptor.relevant = entry;
    __jit_debug_descriptor.action = JIT_UNREGISTER;
    __jit_debug_register_code();
}

/* An object with one section of code, which lies elsewhere, and one function. */
struct jit_object {
    Elf64_Ehdr head;
    Elf64_Shdr sections[4];
    Elf64_Sym symbols[2];
    char names[16];
};

static void describe(struct jit_object *object, const char *name, const void *code, size_t size) {
    memset(object, 0, sizeof *object);
    Elf64_Ehdr *head = &object->head;
    memcpy(head->e_ident, ELFMAG, SELFMAG);
    head->e_ident[EI_CLASS] = ELFCLASS64;
    head->e_ident[EI_DATA] = ELFDATA2LSB;
    head->e_ident[EI_VERSION] = EV_CURRENT;
    head->e_type = ET_REL;
    head->e_machine = EM_X86_64;
    head->e_version = EV_CURRENT;
    head->e_ehsize = sizeof *head;
    head->e_shoff = offsetof(struct jit_object, sections);
    head->e_shentsize = sizeof(Elf64_Shdr);
    head->e_shnum = 4;
    Elf64_Shdr *section = object->sections;
    section[1] = (Elf64_Shdr){.sh_type = SHT_NOBITS,
                              .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                              .sh_addr = (uintptr_t)code,
                              .sh_size = size};
    section[2] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
                              .sh_offset = offsetof(struct jit_object, symbols),
                              .sh_size = sizeof object->symbols,
                              .sh_entsize = sizeof(Elf64_Sym),
                              .sh_link = 3};
    section[3] = (Elf64_Shdr){
        .sh_type = SHT_STRTAB, .sh_offset = offsetof(struct jit_object, names), .sh_size = sizeof object->names};
    object->symbols[1] =
        (Elf64_Sym){.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1, .st_size = size};
    strcpy(object->names + 1, name);
}

#endif
