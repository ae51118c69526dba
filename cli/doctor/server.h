/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CLI_DOCTOR_SERVER_H
#define CLI_DOCTOR_SERVER_H

#include "cli/doctor/doctor.h"

/* Check every running server: whether it can be traced, and at which probe sites. */
void doctor_servers(struct doctor *doctor);

/* Check the files that the command line names. */
void doctor_files(struct doctor *doctor);

#endif
