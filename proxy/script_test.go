package proxy_test

import (
	"testing"

	"github.com/attache-mcp/attache/proxy/proxytest"
)

// TestScripts plays testdata/*.txtar. A new script needs no Go code.
func TestScripts(t *testing.T) {
	proxytest.Player{Named: scriptLayers}.Play(t, "testdata/*.txtar")
}
