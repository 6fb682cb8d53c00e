package access

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attache-mcp/attache/middleware/glob"
)

// Per selects which calls share a bucket of a rate.
type Per string

// The values of Per. The same user name in two tenants is two users.
const (
	PerSession Per = "session"
	PerUser    Per = "user"
	PerTenant  Per = "tenant"
	PerTool    Per = "tool"
)

// A Rate limits how often tools are called: Limit times in each Window on average,
// and up to Burst at once.
type Rate struct {
	// Name is the place of the rate in the configuration, for notes and errors; "" means
	// "access.rates[i]", with its index.
	Name string
	// Tools are patterns of tool names, with * and ?.
	Tools []string
	Per   Per
	// Limit is the number of calls in a Window.
	Limit  int
	Window time.Duration
	// Burst is the number of calls at once; 0 means Limit.
	Burst int
}

// Check returns an error if the rate is invalid.
func (r *Rate) Check() error {
	switch r.Per {
	case PerSession, PerUser, PerTenant, PerTool:
	default:
		return fmt.Errorf("per is %q: write session, user, tenant or tool", string(r.Per))
	}
	if r.Limit < 1 || r.Window <= 0 || r.Burst < 0 {
		return errors.New("a rate needs a limit such as 60/minute, and no burst below one")
	}
	return glob.Check(r.Tools)
}

func (r *Rate) equal(o *Rate) bool {
	return slices.Equal(r.Tools, o.Tools) && r.Per == o.Per && r.Limit == o.Limit && r.Window == o.Window && r.Burst == o.Burst
}

// ParseLimit reads a limit such as 60/minute, 5/s or 100/15m.
func ParseLimit(s string) (limit int, window time.Duration, err error) {
	count, unit, _ := strings.Cut(s, "/")
	limit, err = strconv.Atoi(strings.TrimSpace(count))
	switch unit = strings.TrimSpace(unit); unit {
	case "second", "s":
		window = time.Second
	case "minute", "m", "min":
		window = time.Minute
	case "hour", "h":
		window = time.Hour
	case "day", "d":
		window = 24 * time.Hour
	default:
		window, _ = time.ParseDuration(unit)
	}
	if err != nil || limit < 1 || window <= 0 {
		return 0, 0, fmt.Errorf("%q is not a limit: write a number of calls and a time, such as 60/minute or 100/15m", s)
	}
	return limit, window, nil
}

// Down selects what happens to a call while the Lender of its rates does not answer.
type Down string

const (
	// DownShare counts the call in this process, whose limit is then the configured limit divided
	// by the number of processes that used the bucket lately. A process that never had an answer
	// uses the whole limit.
	DownShare Down = "share"
	// DownClosed refuses the call.
	DownClosed Down = "closed"
)
