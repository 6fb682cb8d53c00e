package main

import (
	"strings"
	"testing"

	"github.com/attache-mcp/attache/proxy/proxytest"
)

// TestHostileFramesRewrite is TestHostileFrames with a tool that is hidden in place
// of denied, and an argument that is set in place of pinned: no parser finds either
// undone.
func TestHostileFramesRewrite(t *testing.T) {
	s := loadHostile(t, "../../testdata/hostile/rewrite.yaml")
	for _, f := range proxytest.Frames(t, hostileFrames) {
		t.Run(f.Name, func(t *testing.T) {
			reached, _ := besiege(t, s, hello+listTools+string(f.Bytes)+"\n"+goodCall)
			if !strings.HasSuffix(reached, goodCall) {
				t.Fatalf("the session did not live: %.2000q reached the server", reached)
			}
			noneFooled(t, reached)
			reached, _ = besiege(t, s, hello+string(f.Bytes)+"\n")
			noneFooled(t, reached)
		})
	}
}
