package config

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/attache-mcp/attache/middleware/access"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// AccessSettings say who may call what, and how often.
type AccessSettings struct {
	Default string // "allow" or "deny"
	Hide    bool
	Rules   []access.Rule
	Rates   []access.Rate
}

// Enforces reports whether anything may be refused.
func (a *AccessSettings) Enforces() bool {
	return len(a.Rules) > 0 || len(a.Rates) > 0 || a.Default == string(access.Deny)
}

func accessOptions(s *Settings) []option {
	o := &s.Access
	return []option{
		{Key: "access.default", Help: "what happens to a call that no rule decides", value: choice{&o.Default, []string{string(access.Allow), string(access.Deny)}}},
		{Key: "access.hide", Help: "leave tools that may not be called out of tools/list", value: boolean{&o.Hide}},
		{Key: "access.rules", Help: "who may call what; the first rule that applies decides", value: accessRuleList(&o.Rules)},
		{Key: "access.rates", Help: "how often tools may be called", value: accessRateList(&o.Rates)},
	}
}

func accessRuleList(to *[]access.Rule) value {
	return entries[access.Rule]{
		to:    to,
		fresh: func() access.Rule { return access.Rule{} },
		name:  func(r *access.Rule) *string { return &r.Name },
		options: func(r *access.Rule) []option {
			return []option{
				{Key: "tools", Help: "globs of the tools' names", value: globs(&r.Tools)},
				{Key: "require", Help: "permissions that the principal must hold, all of them", value: words{to: &r.Require,
					empty: "name a permission, or leave the key out: a rule that requires nothing allows"}},
				{Key: "deny", Help: "refuse the call", value: boolean{&r.Deny}},
				{Key: "when", Help: "the condition under which the rule applies", value: formula{&r.When, expression.Bool}},
				{Key: "message", Help: "what the model is told of a refusal, in place of the usual text", value: text{&r.Message, checkMessage}},
			}
		},
		required:   []string{"tools"},
		example:    `{tools: ["get_*"], require: [records:read]}`,
		terse:      true,
		check:      (*access.Rule).Check,
		checkOrder: access.CheckOrder,
	}
}

func accessRateList(to *[]access.Rate) value {
	return entries[access.Rate]{
		to:    to,
		fresh: func() access.Rate { return access.Rate{} },
		name:  func(r *access.Rate) *string { return &r.Name },
		options: func(r *access.Rate) []option {
			return []option{
				{Key: "tools", Help: "globs of the tools' names", value: globs(&r.Tools)},
				{Key: "per", Help: "who shares a bucket", value: choice{(*string)(&r.Per), []string{
					string(access.PerSession), string(access.PerUser), string(access.PerTenant), string(access.PerTool),
				}}},
				{Key: "limit", Help: "how many calls in what time, such as 60/minute or 100/15m", value: rateLimit{&r.Limit, &r.Window}},
				{Key: "burst", Help: "how many calls may come at once; default: the limit's number", value: count{&r.Burst, 1, 1_000_000}},
			}
		},
		required: []string{"tools", "per", "limit"},
		example:  `{tools: ["*"], per: tenant, limit: 60/minute, burst: 10}`,
		terse:    true,
		check:    (*access.Rate).Check,
	}
}

// rateLimit is a number of calls in a time.
type rateLimit struct {
	calls  *int
	window *time.Duration
}

func (v rateLimit) set(s, _ string) error {
	calls, window, err := access.ParseLimit(s)
	if err == nil {
		*v.calls, *v.window = calls, window
	}
	return err
}

// rateUnits are the times that have a name.
func rateUnits() map[time.Duration]string {
	return map[time.Duration]string{time.Second: "second", time.Minute: "minute", time.Hour: "hour", 24 * time.Hour: "day"}
}

func (v rateLimit) String() string {
	if *v.calls == 0 {
		return ""
	}
	unit, ok := rateUnits()[*v.window]
	if !ok {
		unit = duration{to: v.window}.String()
	}
	return strconv.Itoa(*v.calls) + "/" + unit
}

func (v rateLimit) schema() map[string]any {
	return map[string]any{"type": "string", "pattern": "^[ ]*[1-9][0-9]*[ ]*/"}
}

// checkMessage is what a message for the model must not be.
func checkMessage(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("is empty: write what the model is told, or leave the key out")
	}
	return nil
}
