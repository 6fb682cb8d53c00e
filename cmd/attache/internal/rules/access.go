package rules

import (
	"strconv"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/middleware/access"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// Access returns a value that is a list of rules that say who may call which tool.
func Access(to *[]access.Rule) setting.Value {
	return setting.Entries[access.Rule]{
		To:   to,
		Name: func(r *access.Rule) *string { return &r.Name },
		Options: func(r *access.Rule) []setting.Option {
			return []setting.Option{
				{Key: "tools", Help: "globs of the tools' names", Value: globs(&r.Tools)},
				{Key: "require", Help: "permissions that the principal must hold, all of them", Value: setting.Words{To: &r.Require,
					Empty: "name a permission, or leave the key out: a rule that requires nothing allows"}},
				{Key: "deny", Help: "refuse the call", Value: setting.Bool(&r.Deny)},
				{Key: "when", Help: "the condition under which the rule applies", Value: setting.Expression(&r.When, expression.Bool)},
				{Key: "message", Help: "the text that the model gets when a call is refused, instead of the usual one", Value: setting.Text(&r.Message, setting.NotBlank("is empty: write what the model is told, or leave the key out"))},
			}
		},
		Required:   []string{"tools"},
		Example:    `{tools: ["get_*"], require: [records:read]}`,
		Check:      func(all []access.Rule, i int) error { return all[i].Check() },
		CheckOrder: access.CheckOrder,
	}
}

// Rates returns a value that is a list of rules that say how often tools may be called.
func Rates(to *[]access.Rate) setting.Value {
	return setting.Entries[access.Rate]{
		To:   to,
		Name: func(r *access.Rate) *string { return &r.Name },
		Options: func(r *access.Rate) []setting.Option {
			return []setting.Option{
				{Key: "tools", Help: "globs of the tools' names", Value: globs(&r.Tools)},
				{Key: "per", Help: "who shares a bucket", Value: setting.Choice((*string)(&r.Per), string(access.PerSession), string(access.PerUser), string(access.PerTenant), string(access.PerTool))},
				{Key: "limit", Help: "how many calls in what time, such as 60/minute or 100/15m", Value: rateLimit{&r.Limit, &r.Window}},
				{Key: "burst", Help: "how many calls may come at once; default: the limit's number", Value: setting.Count(&r.Burst, 1, 1_000_000)},
			}
		},
		Required: []string{"tools", "per", "limit"},
		Example:  `{tools: ["*"], per: tenant, limit: 60/minute, burst: 10}`,
		Check:    func(all []access.Rate, i int) error { return all[i].Check() },
	}
}

// rateLimit reads a number of calls in a period.
type rateLimit struct {
	calls  *int
	window *time.Duration
}

func (v rateLimit) Set(s, _ string) error {
	calls, window, err := access.ParseLimit(s)
	if err == nil {
		*v.calls, *v.window = calls, window
	}
	return err
}

func (v rateLimit) String() string {
	if *v.calls == 0 {
		return ""
	}
	names := map[time.Duration]string{time.Second: "second", time.Minute: "minute", time.Hour: "hour", 24 * time.Hour: "day"}
	unit, ok := names[*v.window]
	if !ok {
		unit = setting.DurationText(*v.window)
	}
	return strconv.Itoa(*v.calls) + "/" + unit
}

func (v rateLimit) Schema() map[string]any {
	return map[string]any{"type": "string", "pattern": "^[ ]*[1-9][0-9]*[ ]*/"}
}
