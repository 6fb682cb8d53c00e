//go:build !linux

package soak

import (
	"context"
	"io"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/machine"
)

// Run needs Linux.
func Run(context.Context, Options) error { return machine.Supported() }

// Serve needs Linux.
func Serve([]string, io.Reader, io.Writer) error { return machine.Supported() }
