//go:build !man

package main

import "github.com/spf13/cobra"

// buildCommands returns none: see cmd_man.go.
func (c *cli) buildCommands() []*cobra.Command { return nil }
