//go:build !unix

package session

import "os"

// pollable returns f: only Unix descriptors have a non-blocking mode.
func pollable(f *os.File) (file *os.File, restore func()) { return f, func() {} }
