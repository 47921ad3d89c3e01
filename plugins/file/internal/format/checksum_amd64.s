// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// The bytes of a block in reverse, so that the first one is the highest.
DATA reverse<>+0(SB)/8, $0x08090a0b0c0d0e0f
DATA reverse<>+8(SB)/8, $0x0001020304050607
GLOBL reverse<>(SB), RODATA|NOPTR, $16

// FOLD multiplies block by the factors k and adds it to into; tmp is spoiled.
#define FOLD(block, k, into, tmp) \
	MOVO      block, tmp;       \
	PCLMULQDQ $0x00, k, block;  \
	PCLMULQDQ $0x11, k, tmp;    \
	PXOR      block, into;      \
	PXOR      tmp, into

// LOAD loads a block at an offset of SI.
#define LOAD(offset, block) \
	MOVOU  offset(SI), block; \
	PSHUFB X15, block

// func fold(rest *[16]byte, crc uint16, p []byte, by *[4][2]uint64)
TEXT ·fold(SB), NOSPLIT, $0-48
	MOVQ    rest+0(FP), DI
	MOVWQZX crc+8(FP), AX
	MOVQ    p_base+16(FP), SI
	MOVQ    p_len+24(FP), CX
	MOVQ    by+40(FP), DX
	MOVOU   reverse<>(SB), X15
	MOVOU   (DX), X14

	LOAD(0, X0)
	LOAD(16, X1)
	LOAD(32, X2)
	LOAD(48, X3)
	SHLQ   $48, AX
	MOVQ   AX, X4
	PSLLDQ $8, X4
	PXOR   X4, X0
	ADDQ   $64, SI
	SUBQ   $64, CX
	JZ     last

loop:
	LOAD(0, X4)
	LOAD(16, X5)
	LOAD(32, X6)
	LOAD(48, X7)
	FOLD(X0, X14, X4, X8)
	FOLD(X1, X14, X5, X9)
	FOLD(X2, X14, X6, X10)
	FOLD(X3, X14, X7, X11)
	MOVO X4, X0
	MOVO X5, X1
	MOVO X6, X2
	MOVO X7, X3
	ADDQ $64, SI
	SUBQ $64, CX
	JNZ  loop

last:
	MOVOU  16(DX), X12
	FOLD(X0, X12, X3, X8)
	MOVOU  32(DX), X12
	FOLD(X1, X12, X3, X9)
	MOVOU  48(DX), X12
	FOLD(X2, X12, X3, X10)
	PSHUFB X15, X3
	MOVOU  X3, (DI)
	RET
