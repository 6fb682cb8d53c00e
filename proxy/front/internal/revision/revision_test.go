package revision

import "testing"

func TestRevisions(t *testing.T) {
	for revision, want := range map[string]string{
		"": "handshake", "2024-10-07": "handshake legacy", "2024-11-05": "handshake legacy batches",
		"2025-03-26": "handshake legacy batches", "2025-06-18": "handshake legacy", "2025-11-25": "handshake legacy resumes",
		"2026-01-01": "handshake", "2026-07-28": "", "2027-01-01": "", "next": "",
	} {
		got := ""
		for _, q := range []struct {
			name string
			is   func(string) bool
		}{{"handshake", HasHandshake}, {" legacy", IsLegacy}, {" batches", HasBatches}, {" resumes", Resumes}} {
			if q.is(revision) {
				got += q.name
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", revision, got, want)
		}
	}
}
