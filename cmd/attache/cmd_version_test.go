package main

import (
	"runtime/debug"
	"testing"
)

// A release prints the values set at build time, other builds the build information of Go.
func TestVersionText(t *testing.T) {
	clone := &debug.BuildInfo{
		GoVersion: "go1.26.8",
		Main:      debug.Module{Version: "v1.2.4-0.20260102030405-abcdefabcdef"},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "abcdef"},
			{Key: "vcs.time", Value: "2026-01-02T03:04:05Z"},
			{Key: "vcs.modified", Value: "true"},
		},
	}
	installed := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: "v1.2.3"}}
	for _, test := range []struct {
		name                  string
		version, commit, date string
		info                  *debug.BuildInfo
		want                  string
	}{
		{"a release", "v1.2.3", "123456", "2026-03-04T05:06:07Z", installed, "attache v1.2.3\ncommit  123456\ndate    2026-03-04T05:06:07Z\ngo      go1.26.8"},
		{"a release from a changed clone", "v1.2.3", "123456", "2026-03-04T05:06:07Z", clone, "attache v1.2.3\ncommit  123456\ndate    2026-03-04T05:06:07Z\ngo      go1.26.8"},
		{"go build in a clone", "", "", "", clone, "attache v1.2.4-0.20260102030405-abcdefabcdef\ncommit  abcdef with changes\ndate    2026-01-02T03:04:05Z\ngo      go1.26.8"},
		{"go install", "", "", "", installed, "attache v1.2.3\ncommit  unknown\ndate    unknown\ngo      go1.26.8"},
		{"no record", "", "", "", nil, "attache (devel)\ncommit  unknown\ndate    unknown\ngo      unknown"},
	} {
		version, commit, date = test.version, test.commit, test.date
		if got := versionText(test.info, test.info != nil); got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", test.name, got, test.want)
		}
	}
	version, commit, date = "", "", ""
}
