// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package intake

// fionread asks for the bytes that can be read, _IOR('f', 127, int).
const fionread = 0x4004667f
