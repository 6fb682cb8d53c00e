package policy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/policy"
)

func TestCredentialIsNeverPrinted(t *testing.T) {
	const secret = "atk_k1_sEcReT"
	q := policy.Query{Scope: "acme", Workspace: "w1", Credential: policy.Credential(secret)}

	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	logger.Info("query", "query", q, "credential", q.Credential)
	slog.New(slog.NewTextHandler(&log, nil)).Info("query", "query", q, "credential", q.Credential)
	marshalled, err := json.Marshal(q)
	testkit.Check(t, err)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%z"} {
		fmt.Fprintf(&log, verb+"\n", q)
		fmt.Fprintf(&log, verb+"\n", &q)
		fmt.Fprintf(&log, verb+"\n", q.Credential)
	}
	log.Write(marshalled)
	for _, form := range []string{secret, fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret)} {
		if strings.Contains(log.String(), form) {
			t.Errorf("the credential is printed as %s in\n%s", form, log.String())
		}
	}
	if got := q.Credential.Reveal(); got != secret {
		t.Errorf("Reveal() = %q, want %q", got, secret)
	}
	if got := policy.Credential("").String(); got != "[none]" {
		t.Errorf("an empty credential prints as %q, want [none]", got)
	}
}

func TestDigest(t *testing.T) {
	const want = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if got := policy.Digest("abc"); got != want {
		t.Errorf("Digest(abc) = %s, want %s", got, want)
	}
}

func TestEffectiveEmpty(t *testing.T) {
	tests := []struct {
		effective policy.Effective
		want      bool
	}{
		{policy.Effective{}, true},
		{policy.Effective{Policies: []policy.Policy{{}}}, false},
		{policy.Effective{Objectives: []string{"a"}}, false},
	}
	for _, test := range tests {
		if got := test.effective.Empty(); got != test.want {
			t.Errorf("%+v.Empty() = %v, want %v", test.effective, got, test.want)
		}
	}
}
