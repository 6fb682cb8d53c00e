package chain_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/attache-mcp/attache/middleware/audit/chain"
)

// verify verifies the log at path, together with the files that were renamed before it. known is the
// digest of a line that must be in it, zero if no digest was kept.
func verify(path string, known chain.Digest) (*chain.Verifier, error) {
	s, err := chain.Open(path)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	v := &chain.Verifier{Expect: known}
	for _, f := range s.Files {
		if err := v.File(f.Name, f); err != nil {
			return v, err
		}
	}
	return v, v.Close()
}

// A program writes a log and verifies it, also after somebody has changed it.
func Example() {
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "audit.jsonl")

	log := chain.New(chain.Options{File: path})
	for _, user := range []string{"ada", "bob", "eve"} {
		log.Append(fmt.Appendf(nil, `{"kind":"call","user":%q}`, user))
	}
	if err := log.Close(time.Second); err != nil {
		fmt.Println(err)
	}
	v, err := verify(path, chain.Digest{})
	fmt.Println(v.Records, "records:", err)
	kept := v.Digest // in another place

	text, _ := os.ReadFile(path)
	os.WriteFile(path, bytes.Replace(text, []byte("bob"), []byte("joe"), 1), 0o600)
	_, err = verify(path, chain.Digest{})
	if fault := new(chain.Fault); errors.As(err, &fault) {
		fmt.Println("line", fault.Line, "is the first fault")
	}

	// A change of the last line is found only with a digest that was kept.
	os.WriteFile(path, bytes.Replace(text, []byte("eve"), []byte("sam"), 1), 0o600)
	_, err = verify(path, chain.Digest{})
	fmt.Println(err)
	_, err = verify(path, kept)
	fmt.Println(err != nil)

	// Output:
	// 4 records: <nil>
	// line 3 is the first fault
	// <nil>
	// true
}
