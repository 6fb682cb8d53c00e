package capture

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// protocolKey is on every request of the modern era (2026-07-28, SEP-2575).
const protocolKey = "io.modelcontextprotocol/protocolVersion"

// clientKey is too, and describes the client.
const clientKey = "io.modelcontextprotocol/clientInfo"

// codexWorkspaces is where Codex names the git root of the directory in which the turn of a call works. Its value
// is an object with that path as the only key; Codex leaves it out if the directory is in no repository. A later
// turn can work elsewhere, so the path is a fact of the call alone.
var codexWorkspaces = []string{"x-codex-turn-metadata", "workspaces"}

// facts are the facts in one request's _meta. They share no memory with the frame.
type facts struct {
	workspace, conversation sessionstate.Fact
	gitRoot                 sessionstate.Fact
	protocol                string
	credential              Credential
	carries                 [2]bool // which of CredentialKeys are present, with a value of any type
	empty                   [2]bool // which of them have no text that can be looked up
}

const (
	// maxFact bounds a fact from a peer, in bytes, because it is kept with its session. Linux has
	// no longer paths. A longer fact counts as absent.
	maxFact = 4096
	// maxToken bounds a token, which may have many claims.
	maxToken = 32 << 10
	// maxKey is the length above which a conversation key is replaced by its digest.
	maxKey = 256
	// maxRevision bounds the name of a protocol revision.
	maxRevision = 64
)

type kind uint8

const (
	workspaceFact kind = iota
	gitRootFact
	conversationFact
	credentialFact
	protocolFact
)

// maxLength has the greatest length of the value of a fact, in bytes.
var maxLength = [...]int{workspaceFact: maxFact, gitRootFact: math.MaxInt, conversationFact: math.MaxInt, credentialFact: maxToken, protocolFact: maxRevision}

// A candidate is a place in _meta that may hold a fact.
type candidate struct {
	kind kind
	rank int      // if several places hold the same fact, the lowest rank wins
	rest []string // the path behind its first key
	from string
}

// indexKeys returns the candidates by the first key of their paths. workspaces and conversations are the
// paths that name a workspace or a conversation; gitRoot reports whether codexWorkspaces is one too.
func indexKeys(workspaces, conversations [][]string, gitRoot bool) map[string][]candidate {
	index := map[string][]candidate{}
	add := func(k kind, paths [][]string) {
		for rank, p := range paths {
			index[p[0]] = append(index[p[0]], candidate{k, rank, p[1:], describe(p)})
		}
	}
	add(workspaceFact, workspaces)
	add(conversationFact, conversations)
	if gitRoot {
		add(gitRootFact, [][]string{codexWorkspaces})
	}
	add(credentialFact, [][]string{{CredentialKey}, {TokenKey}})
	add(protocolFact, [][]string{{protocolKey}})
	return index
}

// describe returns a path as people write it.
func describe(path []string) string {
	var b strings.Builder
	b.WriteString("_meta")
	for _, k := range path {
		b.WriteString("[" + strconv.Quote(k) + "]")
	}
	return b.String()
}

// readMeta reads the facts in one pass over the object.
func (c *Conn) readMeta(ctx context.Context, meta wire.Value) (f facts) {
	best := [...]int{workspaceFact: -1, gitRootFact: -1, conversationFact: -1, credentialFact: -1, protocolFact: -1}
	for m := range meta.Members() {
		for _, cand := range c.candidates(m.Key) {
			if cand.kind == credentialFact {
				f.carries[cand.rank] = true
			}
			if best[cand.kind] >= 0 && best[cand.kind] <= cand.rank {
				continue
			}
			value := m.Value.Get(cand.rest...)
			if len(value.Raw) > maxLength[cand.kind] {
				c.conn.Log.WarnContext(ctx, "a fact in _meta was ignored, because it is too long", "from", cand.from, "bytes", len(value.Raw))
				continue
			}
			text := value.Text()
			switch cand.kind {
			case credentialFact:
				f.empty[cand.rank] = text == ""
			case gitRootFact:
				text = onlyKey(value)
			}
			isPath := cand.kind == workspaceFact || cand.kind == gitRootFact
			if text == "" || isPath && !c.usable(ctx, text, cand.from) {
				continue
			}
			best[cand.kind] = cand.rank
			f.set(cand, text)
		}
	}
	return f
}

// onlyKey returns the key of an object with one member, "" for other values and for a key that is too long.
func onlyKey(object wire.Value) (key string) {
	members := 0
	for m := range object.Members() {
		if members++; members > 1 || len(m.Key.Raw) > maxFact {
			return ""
		}
		key = m.Key.Text()
	}
	return key
}

func (c *Conn) candidates(key wire.Value) []candidate {
	raw := key.Raw[1 : len(key.Raw)-1]
	if found := c.index[string(raw)]; found != nil {
		return found
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return nil
	}
	return c.index[key.Text()]
}

func (f *facts) set(cand candidate, text string) {
	switch cand.kind {
	case workspaceFact:
		f.workspace = sessionstate.Fact{Value: text, Source: sessionstate.RequestMeta, From: cand.from}
	case gitRootFact:
		f.gitRoot = sessionstate.Fact{Value: text, Source: sessionstate.GitRoot, From: cand.from}
	case conversationFact:
		if len(text) > maxKey {
			text = fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text)))
		}
		f.conversation = sessionstate.Fact{Value: text, Source: sessionstate.RequestMeta, From: cand.from}
	case credentialFact:
		f.credential = Credential{Key: CredentialKeys()[cand.rank], Text: text}
	case protocolFact:
		f.protocol = text
	}
}

// usable reports whether a workspace from a peer may be put into arguments and environments.
// A server that runs a command would read a workspace that begins with a dash as an option
// (CVE-2025-68144).
func (c *Conn) usable(ctx context.Context, workspace, from string) bool {
	if strings.HasPrefix(workspace, "-") || !utf8.ValidString(workspace) || strings.ContainsFunc(workspace, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		c.conn.Log.WarnContext(ctx, "a workspace was ignored, because it begins with a dash, has control characters or is not UTF-8", "from", from)
		return false
	}
	return true
}
