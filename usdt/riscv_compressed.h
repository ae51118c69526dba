/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Compressed instructions of RISC-V.
 *
 * Source of the encodings: RISC-V Instruction Set Manual, volume I, "C" Extension for
 * Compressed Instructions (RV64C).
 */
#ifndef USDT_RISCV_COMPRESSED_H
#define USDT_RISCV_COMPRESSED_H

#include <stdint.h>

/*
 * Return the 32-bit instruction that the 16-bit one @half is short for, or 0 if @half is reserved,
 * of a later extension, or not compressed.
 */
uint32_t riscv_expand(uint16_t half);

#endif
