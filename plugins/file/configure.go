// SPDX-License-Identifier: Apache-2.0

package file

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// The bounds of settings.
const (
	// beaconUnit is what the format wants an interval to be a multiple of.
	beaconUnit = 1024
	// maxBase is how long the last part of the path may be: the names of rotated
	// files and of those beside it are longer, and 255 is the limit of all of
	// them.
	maxBase = 255 - len(".groups") - len(".000001")
)

// check says what is wrong with settings beyond their schema.
func check(s *settings.Settings) []core.Diagnostic {
	var wrong []core.Diagnostic
	add := func(path, fix, format string, args ...any) {
		wrong = append(wrong, core.Diagnostic{Path: path, Message: fmt.Sprintf(format, args...), Fix: fix})
	}
	base := filepath.Base(s.Path)
	switch {
	case strings.ContainsRune(s.Path, 0):
		add("path", "take the zero byte out", "%q cannot be a path", s.Path)
	case strings.HasSuffix(s.Path, string(filepath.Separator)), base == ".", base == "..":
		add("path", "add the name of the file, as in orders.ss", "%q is a folder", s.Path)
	case len(base) > maxBase:
		add("path", fmt.Sprintf("use at most %d bytes", maxBase), "the file's name has %d bytes", len(base))
	}
	if strings.ContainsRune(s.Groups, 0) {
		add("groups", "take the zero byte out", "%q cannot be a path", s.Groups)
	}
	if i := s.BeaconInterval; i <= 0 || i%beaconUnit != 0 || i > math.MaxUint32 {
		add("beacon_interval", fmt.Sprintf("use a positive multiple of %d, as 1048576", beaconUnit), "%d is no multiple of %d between %d and %d",
			i, beaconUnit, beaconUnit, math.MaxUint32/beaconUnit*beaconUnit)
	}
	if s.Rotate.Keep > 0 && s.Rotate.Bytes == 0 && s.Rotate.Age == 0 {
		add("rotate.keep", "set rotate.bytes or rotate.age too", "says how many old files are kept, and nothing rotates")
	}
	return wrong
}
