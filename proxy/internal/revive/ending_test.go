package revive

import (
	"errors"
	"testing"
)

// The error of a server loses no word. A server that has ended without an error may have written some.
func TestErr(t *testing.T) {
	if err := NewEnding(nil).Err(); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"exit status 0; its last words on stderr:\nbye; bye", "exit status 3", "exit status 3; its last words on stderr:\nno"} {
		if err := NewEnding(errors.New(text)).Err(); err == nil || err.Error() != text {
			t.Errorf("%q becomes %v", text, err)
		}
	}
}
