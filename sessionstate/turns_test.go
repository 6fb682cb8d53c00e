package sessionstate_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/sessionstate"
)

// For the other properties see package statetest.

func TestMemoryTurnsAreBounded(t *testing.T) {
	turns := sessionstate.NewMemoryTurns(nil)
	for i := range sessionstate.DefaultMax + 5 {
		if _, _, err := turns.Take(t.Context(), fmt.Sprint(i), 0); err != nil {
			t.Fatal(err)
		}
		testkit.Check(t, turns.Settle(t.Context(), fmt.Sprint(i), sessionstate.Seen))
	}
	if got, err := turns.Sweep(t.Context(), 0); got != sessionstate.DefaultMax || err != nil {
		t.Errorf("%d keys (%v), want %d", got, err, sessionstate.DefaultMax)
	}
}

func ExampleTurns() {
	ctx := context.Background()
	var turns sessionstate.Turns = sessionstate.NewMemoryTurns(time.Now)
	for _, response := range []string{"failed", "first", "second"} {
		mine, _, err := turns.Take(ctx, "session-1", 0)
		if err != nil || !mine {
			fmt.Println(response, "goes without")
			continue
		}
		outcome := sessionstate.Seen
		if response == "failed" {
			outcome = sessionstate.Open // an error does not carry a briefing
		}
		if err := turns.Settle(ctx, "session-1", outcome); err != nil {
			fmt.Println(err)
		}
		fmt.Println(response, outcome == sessionstate.Seen)
	}
	// Output:
	// failed false
	// first true
	// second goes without
}
