/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CLI_DOCTOR_HOST_H
#define CLI_DOCTOR_HOST_H

#include "cli/doctor/doctor.h"

/* Check the kernel's features, the privileges of this process and the mounts. Set ->method. */
void doctor_host(struct doctor *doctor);

#endif
