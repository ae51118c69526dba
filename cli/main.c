// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/command.h"

int main(int argc, char *argv[])
{
	return cmd_slow(argc, argv);
}
