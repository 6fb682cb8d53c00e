package statetest_test

import (
	"testing"
	"time"

	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/statetest"
)

func TestMemoryTurns(t *testing.T) {
	statetest.Run(t, func(_ *testing.T, now func() time.Time) sessionstate.Turns {
		return sessionstate.NewMemoryTurns(now)
	})
}
