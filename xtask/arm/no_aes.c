/* A CPU that says it has no AES.
 *
 * qemu-user knows no 64-bit Arm CPU without AES and PMULL. A program learns what its CPU can do from
 * one word that the kernel gives it; loaded before the C library, this takes the two bits out of it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/auxv.h>

unsigned long getauxval(unsigned long kind)
{
    unsigned long (*kernel_says)(unsigned long) = dlsym(RTLD_NEXT, "getauxval");
    unsigned long word = kernel_says(kind);
    return kind == AT_HWCAP ? word & ~(HWCAP_AES | HWCAP_PMULL) : word;
}
