package setting

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// duration is a time of at least min.
type duration struct {
	to  *time.Duration
	min time.Duration
}

// Duration returns a value that is a time of at least the given one.
func Duration(to *time.Duration, least time.Duration) Scalar { return duration{to, least} }

func (v duration) Set(s, _ string) error {
	d, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("%q is not a duration: write it with a unit, such as 500ms, 2s or 12h", s)
	}
	if d < v.min {
		return fmt.Errorf("%q is too short: give at least %s", s, v.min)
	}
	*v.to = d
	return nil
}

func (v duration) String() string { return DurationText(*v.to) }

// DurationText returns d as a person writes it: 12h, not 12h0m0s.
func DurationText(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func (v duration) Schema() map[string]any {
	return map[string]any{"type": []string{"string", "integer"}, "description": "a duration with its unit, such as 500ms, 2s or 12h"}
}

func (v duration) Written(n ast.Node) (string, bool) {
	return "a duration such as 500ms, 2s or 12h", IsText(n) || n.Type() == ast.IntegerType
}

// optionalDuration is a duration, or empty for none.
type optionalDuration struct{ duration }

// OptionalDuration returns a value that is a time of at least the given one, or empty,
// which is 0.
func OptionalDuration(to *time.Duration, least time.Duration) Scalar {
	return optionalDuration{duration{to, least}}
}

func (v optionalDuration) Set(s, base string) error {
	if s == "" {
		*v.to = 0
		return nil
	}
	return v.duration.Set(s, base)
}

func (v optionalDuration) String() string {
	if *v.to == 0 {
		return ""
	}
	return v.duration.String()
}

// size is a number of bytes from min to max.
type size struct {
	to       *int64
	min, max int64
}

// Size returns a value that is a number of bytes from least to most.
func Size(to *int64, least, most int64) Scalar { return size{to, least, most} }

// sizeUnits are tried in this order, so that "8MiB" is not taken for "8Mi" bytes.
func sizeUnits() []struct {
	name  string
	bytes int64
} {
	return []struct {
		name  string
		bytes int64
	}{
		{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
		{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1}, {"", 1},
	}
}

func (v size) Set(s, _ string) error {
	for _, unit := range sizeUnits() {
		digits, ok := strings.CutSuffix(s, unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/unit.bytes {
			break
		}
		if n *= unit.bytes; n < v.min || n > v.max {
			return fmt.Errorf("%q is out of range: write a size from %s to %s", s, sizeText(v.min), sizeText(v.max))
		}
		*v.to = n
		return nil
	}
	return fmt.Errorf("%q is not a size: write whole bytes or a unit, such as 8388608, 512KiB or 8MiB", s)
}

// sizeText returns n in the largest unit that divides it.
func sizeText(n int64) string {
	for _, unit := range sizeUnits()[:3] {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return strconv.FormatInt(n/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}

func (v size) String() string { return sizeText(*v.to) }

func (v size) Schema() map[string]any {
	return map[string]any{"type": []string{"string", "integer"}, "description": "a size in bytes, or with a unit, such as 512KiB or 8MiB"}
}

func (v size) Written(n ast.Node) (string, bool) {
	return "a size such as 8MiB", IsText(n) || n.Type() == ast.IntegerType
}
