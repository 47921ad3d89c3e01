// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func decodeVectors(dst, text *byte, steps int, v *vectors) bool
TEXT ·decodeVectors(SB), NOSPLIT, $0-33
	MOVQ dst+0(FP), DI
	MOVQ text+8(FP), SI
	MOVQ steps+16(FP), CX
	MOVQ v+24(FP), DX

	VBROADCASTI128 0(DX), Y8    // upper
	VBROADCASTI128 16(DX), Y9   // lower
	VBROADCASTI128 32(DX), Y10  // offset
	VBROADCASTI128 48(DX), Y11  // half
	VBROADCASTI128 64(DX), Y12  // slash
	VBROADCASTI128 80(DX), Y13  // pairs
	VBROADCASTI128 96(DX), Y14  // fours
	VBROADCASTI128 112(DX), Y15 // order
	VPXOR          Y7, Y7, Y7   // what is wrong

step:
	VMOVDQU (SI), Y0

	// The two halves of every character, and whether they make one.
	VPSRLD  $4, Y0, Y1
	VPAND   Y11, Y1, Y1
	VPAND   Y11, Y0, Y2
	VPSHUFB Y1, Y8, Y3
	VPSHUFB Y2, Y9, Y2
	VPAND   Y2, Y3, Y3
	VPOR    Y3, Y7, Y7

	// Its value: a '/' is looked up one place before its upper half.
	VPCMPEQB Y12, Y0, Y3
	VPADDB   Y3, Y1, Y1
	VPSHUFB  Y1, Y10, Y1
	VPADDB   Y1, Y0, Y0

	// Four values make three bytes.
	VPMADDUBSW   Y13, Y0, Y0
	VPMADDWD     Y14, Y0, Y0
	VPSHUFB      Y15, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VMOVDQU      X0, (DI)
	VMOVDQU      X1, 12(DI)

	ADDQ $32, SI
	ADDQ $24, DI
	DECQ CX
	JNZ  step

	VPTEST Y7, Y7
	SETEQ  ret+32(FP)
	VZEROUPPER
	RET
