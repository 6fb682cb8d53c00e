//go:build !linux

package soak

import (
	"context"
	"io"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/machine"
)

// Run is for Linux.
func Run(context.Context, Options) error { return machine.Supported() }

// Play is for Linux.
func Play([]string, io.Reader, io.Writer) error { return machine.Supported() }
