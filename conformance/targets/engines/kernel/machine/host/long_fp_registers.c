/* Preloaded into user-mode Linux on processors whose extended registers are longer than it knows.

   User-mode Linux 6.1 keeps 2,696 bytes of them per process. PTRACE_SETREGSET takes all or nothing,
   and answers EFAULT for fewer bytes, as on every processor with AMX (11,008 bytes). What is missing
   here is filled with zeroes: the guest cannot use these registers, since it never asks for them. */

#define _GNU_SOURCE
#include <cpuid.h>
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#define MOST 65536
#define XSAVE_LEAF 0xd

typedef long ptrace_function(int, int, void *, void *);

static unsigned long whole(void)
{
	unsigned size, b, c, d;

	if (!__get_cpuid_count(XSAVE_LEAF, 0, &c, &size, &b, &d))
		return 0;
	return size <= MOST ? size : 0;
}

long ptrace(enum __ptrace_request request, ...)
{
	static ptrace_function *real;
	static unsigned long size;
	static char padded[MOST];
	va_list list;
	int pid;
	void *address, *data;

	if (!real) {
		real = (ptrace_function *)dlsym(RTLD_NEXT, "ptrace");
		size = whole();
	}
	va_start(list, request);
	pid = va_arg(list, int);
	address = va_arg(list, void *);
	data = va_arg(list, void *);
	va_end(list);
	if (request == PTRACE_SETREGSET && (long)address == NT_X86_XSTATE) {
		struct iovec *given = data, full = {padded, size};

		if (given->iov_len < size) {
			memset(padded, 0, size);
			memcpy(padded, given->iov_base, given->iov_len);
			return real(request, pid, address, &full);
		}
	}
	return real(request, pid, address, data);
}
