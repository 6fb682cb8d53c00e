package identity

import (
	"fmt"
	"strings"
	"testing"
)

func TestTokenCacheIsBounded(t *testing.T) {
	var c tokenCache
	long := strings.Repeat("x", maxCachedTokenBytes+1)
	c.add(long, &cachedToken{})
	if c.get(long) != nil {
		t.Error("a long token is cached")
	}
	for i := range maxCachedTokens + 10 {
		token := fmt.Sprint(i)
		content := &cachedToken{}
		if c.add(token, content); c.get(token) != content {
			t.Fatalf("token %d is not cached", i)
		}
	}
	if len(c.bySum) > maxCachedTokens {
		t.Errorf("%d tokens are cached", len(c.bySum))
	}
}

// The tokens of an earlier key set are removed, so that its memory can be freed.
func TestTokenCacheRemovesOldKeySets(t *testing.T) {
	var c tokenCache
	before, after := &cachedToken{set: &keySet{}}, &cachedToken{set: &keySet{}}
	c.add("a", before)
	if c.add("b", after); c.get("a") != nil || c.get("b") != after {
		t.Error("a token of another key set is still cached")
	}
}
