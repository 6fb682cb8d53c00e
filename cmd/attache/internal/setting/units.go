package setting

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration returns a value that is a duration of at least least.
func Duration(to *time.Duration, least time.Duration) Scalar { return duration(to, least, false) }

// OptionalDuration returns a value that is a duration of at least least, or empty, which means 0.
func OptionalDuration(to *time.Duration, least time.Duration) Scalar {
	return duration(to, least, true)
}

func duration(to *time.Duration, least time.Duration, optional bool) Scalar {
	return scalar{
		set: func(s, _ string) error {
			if s == "" && optional {
				*to = 0
				return nil
			}
			d, err := time.ParseDuration(s)
			if err != nil {
				return fmt.Errorf("%q is not a duration: write it with a unit, such as 500ms, 2s or 12h", s)
			}
			if d < least {
				return fmt.Errorf("%q is too short: give at least %s", s, least)
			}
			*to = d
			return nil
		},
		text: func() string {
			if *to == 0 && optional {
				return ""
			}
			return DurationText(*to)
		},
		schema: map[string]any{"type": []string{"string", "integer"}, "description": "a duration with its unit, such as 500ms, 2s or 12h"},
		kind:   "a duration such as 500ms, 2s or 12h", accepts: isTextOrNumber,
	}
}

// DurationText returns d as people write it: 12h, not 12h0m0s.
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

// Size returns a value that is a number of bytes between least and most.
func Size(to *int64, least, most int64) Scalar {
	return scalar{
		set: func(s, _ string) error {
			n, err := parseSize(s)
			switch {
			case err != nil:
				return err
			case n < least || n > most:
				return fmt.Errorf("%q is out of range: write a size from %s to %s", s, sizeText(least), sizeText(most))
			}
			*to = n
			return nil
		},
		text:   func() string { return sizeText(*to) },
		schema: map[string]any{"type": []string{"string", "integer"}, "description": "a size in bytes, or with a unit, such as 512KiB or 8MiB"},
		kind:   "a size such as 8MiB", accepts: isTextOrNumber,
	}
}

// sizeUnits are tried in this order, so that "8MiB" is not read as "8Mi" bytes.
var sizeUnits = [...]struct {
	name  string
	bytes int64
}{
	{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1}, {"", 1},
}

// parseSize returns the size that s names, in bytes.
func parseSize(s string) (int64, error) {
	for _, unit := range sizeUnits {
		digits, ok := strings.CutSuffix(s, unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/unit.bytes {
			break
		}
		return n * unit.bytes, nil
	}
	return 0, fmt.Errorf("%q is not a size: write whole bytes or a unit, such as 8388608, 512KiB or 8MiB", s)
}

// sizeText returns n in the largest unit that divides it.
func sizeText(n int64) string {
	for _, unit := range sizeUnits[:3] {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return strconv.FormatInt(n/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}
