//go:build !linux && !darwin

package clientfile

import "errors"

// exchange always fails, because this system cannot exchange files.
func exchange(string, string) error { return errors.ErrUnsupported }
