package main

import (
	"cmp"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Variables that a release build sets: -ldflags "-X main.version=v1.2.3 -X main.commit=...
// -X main.date=...". If they are empty, the build information of Go is used.
var version, commit, date string

func (c *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version, the commit it was built from, and the Go version",
		Long:    "Print the version, the commit it was built from with its date, and the Go version. A bug report\nneeds all four.",
		Example: `  attache version`,
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(c.Stdout, versionText(debug.ReadBuildInfo()))
			return err
		},
	}
}

func versionText(info *debug.BuildInfo, ok bool) string {
	v, rev, day, modified, goVersion := version, commit, date, "", "unknown"
	if ok {
		settings := map[string]string{}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		v = cmp.Or(v, info.Main.Version)
		rev = cmp.Or(rev, settings["vcs.revision"])
		day = cmp.Or(day, settings["vcs.time"])
		goVersion = info.GoVersion
		if commit == "" && settings["vcs.modified"] == "true" {
			modified = " with changes"
		}
	}
	return fmt.Sprintf("attache %s\ncommit  %s%s\ndate    %s\ngo      %s",
		cmp.Or(v, "(devel)"), cmp.Or(rev, "unknown"), modified, cmp.Or(day, "unknown"), goVersion)
}

func ownVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return cmp.Or(version, info.Main.Version, "(devel)")
	}
	return cmp.Or(version, "(devel)")
}
