//go:build !man

package main

import "github.com/spf13/cobra"

// buildCommands returns no commands: see cmd_man.go.
func (c *program) buildCommands() []*cobra.Command { return nil }
