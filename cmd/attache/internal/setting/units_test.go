package setting

import (
	"testing"
	"time"
)

func TestDurationText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		12 * time.Hour: "12h", 90 * time.Minute: "1h30m", time.Minute: "1m", 2 * time.Second: "2s",
		500 * time.Millisecond: "500ms", 0: "0s", 10 * time.Minute: "10m", time.Hour + time.Second: "1h0m1s",
	} {
		if got := DurationText(d); got != want {
			t.Errorf("%d: %q, want %q", d, got, want)
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "8388608": 8 << 20, "8MiB": 8 << 20, "8 MiB": 8 << 20, "512KiB": 512 << 10, "1GiB": 1 << 30,
		"1MB": 1e6, "2kB": 2000, "2KB": 2000, "7B": 7, "8MB1": -1, "MiB": -1, "": -1, "-1": -1, "1.5MiB": -1,
		"8mib": -1, "9223372036854775807GiB": -1,
		"17179869185GiB": -1, // would be 1 GiB with a sum that overflows
		"1TiB":           -1, "1024GiB": 1 << 40, "1099511627777": -1,
	} {
		got := int64(-1)
		err := Size(&got, 0, 1<<40).Set(text, "")
		if got != want || (err == nil) != (want >= 0) {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestSizeText(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 1: "1", 1024: "1KiB", 1025: "1025", 8 << 20: "8MiB", 1 << 30: "1GiB", 1e6: "1000000"} {
		if got := sizeText(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
