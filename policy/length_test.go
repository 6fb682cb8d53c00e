package policy

import (
	"fmt"
	"testing"
)

// Render uses length to respect the limit, so length must equal the length of the text.
func TestLength(t *testing.T) {
	for policies := range 4 {
		for objectives := range 4 {
			var b block
			for i := range policies {
				b.policies = append(b.policies, fmt.Sprintf("  - policy %d", i))
			}
			for i := range objectives {
				b.objectives = append(b.objectives, fmt.Sprintf("  - objective %d", i))
			}
			for kept := range policies + objectives + 1 {
				for _, note := range []string{"", "(more left out)"} {
					if got, want := b.length(kept, note), len(b.text(kept, note)); got != want {
						t.Errorf("%d policies, %d objectives, %d kept, note %q: length %d, want %d", policies, objectives, kept, note, got, want)
					}
				}
			}
		}
	}
}
