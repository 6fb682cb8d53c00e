package child

import (
	"slices"
	"testing"
)

// A variable that is set again, in whatever case, has only its last value. Drives keep their working directories.
func TestLastOfEach(t *testing.T) {
	got := lastOfEach([]string{"=C:=C:\\a", "=D:=D:\\b", "Path=C:\\old", "A=1=2", "B=", "PATH=C:\\new", "a=3"})
	want := []string{"=C:=C:\\a", "=D:=D:\\b", "B=", "PATH=C:\\new", "a=3"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
