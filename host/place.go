// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"path"
	"runtime"
)

// place is where something was declared, "folder/file.go:12".
type place string

// caller returns the place that called the function that calls it.
func caller() place {
	_, file, line, ok := runtime.Caller(2)
	if !ok {
		return "unknown place"
	}
	folder := path.Base(path.Dir(file))
	return place(fmt.Sprintf("%s/%s:%d", folder, path.Base(file), line))
}
