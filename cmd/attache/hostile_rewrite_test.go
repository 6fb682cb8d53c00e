package main

import (
	"strings"
	"testing"

	"github.com/attache-mcp/attache/proxy/proxytest"
)

// TestHostileFramesRewrite is TestHostileFrames with a hidden tool instead of a denied one, and a set argument
// instead of a pinned one: no parser finds either rule bypassed.
func TestHostileFramesRewrite(t *testing.T) {
	s := loadHostile(t, "../../testdata/hostile/rewrite.yaml")
	for _, f := range proxytest.Frames(t, hostileFrames) {
		t.Run(f.Name, func(t *testing.T) {
			reached, _ := relayLines(t, s, hello+listTools+string(f.Bytes)+"\n"+goodCall)
			if !strings.HasSuffix(reached, goodCall) {
				t.Fatalf("the session did not live: %.2000q reached the server", reached)
			}
			requireRulesHold(t, reached)
			reached, _ = relayLines(t, s, hello+string(f.Bytes)+"\n")
			requireRulesHold(t, reached)
		})
	}
}
