//go:build !linux

package load

import (
	"context"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/machine"
)

// Run needs Linux.
func Run(context.Context, Options) error { return machine.Supported() }
