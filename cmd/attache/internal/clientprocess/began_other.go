//go:build !linux && !darwin && !windows

package clientprocess

import "errors"

func began(int) (string, error) { return "", errors.New("not known on this system") }
