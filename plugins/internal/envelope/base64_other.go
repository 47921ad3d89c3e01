// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package envelope

// decodeLong leaves everything to decodeWords.
func decodeLong(dst, text []byte) (restDst, restText []byte, ok bool) { return dst, text, true }
