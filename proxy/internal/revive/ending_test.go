package revive

import (
	"errors"
	"testing"
)

// The text of a server's error is not changed.
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
