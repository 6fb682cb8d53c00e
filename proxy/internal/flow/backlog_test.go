package flow

import "testing"

// A Backlog is full from its limit on, and the channel of Full is closed as soon as it is not.
func TestBacklog(t *testing.T) {
	b := Backlog{Limit: 10}
	var room <-chan struct{}
	for i, step := range []struct {
		add  int64
		full bool
	}{
		{9, false}, {1, true}, {1, true}, {-1, true}, {-1, false}, {1, true}, {-10, false}, {20, true}, {-20, false},
	} {
		b.Add(step.add)
		if room != nil {
			select {
			case <-room:
				if step.full {
					t.Errorf("step %d: the channel is closed, though the backlog is full", i)
				}
			default:
				if !step.full {
					t.Errorf("step %d: the channel is not closed, though there is room", i)
				}
			}
		}
		if room = b.Full(); (room != nil) != step.full {
			t.Errorf("step %d: full: %v", i, room != nil)
		}
	}
}
