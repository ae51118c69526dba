// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/complete.h"
#include "host/elf_map.h"

/* Files of servers are mapped for reading, and their owners can truncate them meanwhile. */
static void main_sigbus(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_code != BUS_ADRERR || !elf_map_fault(info->si_addr))
		signal(sig, SIG_DFL);
}

int main(int argc, char *argv[])
{
	struct sigaction action = { .sa_sigaction = main_sigbus, .sa_flags = SA_SIGINFO };
	const struct command *command;
	int fd, taken;

	/* No descriptor opened later must take the number of a standard one that is closed. */
	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
	/* Texts of statements must not be in a core dump, nor readable by others of this user. */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	sigaction(SIGBUS, &action, NULL);
	if (complete_is_asked(argc, argv))
		return complete_run(argc, argv);
	command = command_choose(argc, argv, &taken);
	return command->run(command, argc - taken, argv + taken);
}
