//go:build !unix

package session

import "os"

// pollable returns f as it is: only Unix descriptors have a mode to change.
func pollable(f *os.File) (file *os.File, restore func()) { return f, func() {} }
