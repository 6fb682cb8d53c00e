//go:build !linux && !darwin

package clientfile

import "errors"

// exchange is not to be had here.
func exchange(string, string) error { return errors.ErrUnsupported }
