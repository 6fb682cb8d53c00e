package teamserver

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/teams"
	store "github.com/attache-mcp/attache/sessionstate/teams"
)

type sendResult struct {
	MessageID     string `json:"message_id"`
	Status        string `json:"status"`
	Reach         string `json:"reach"`
	ExpiresAt     string `json:"expires_at"`
	MessageLength int    `json:"message_length"`
}

func sendMessage(ctx context.Context, c *call) (any, error) {
	var in struct {
		To      string `json:"session_id"`
		Message string `json:"message"`
		Key     string `json:"key"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	in.To = strings.TrimSpace(in.To)
	message, err := store.CheckMessage("Message", in.Message, store.MaxMessage)
	if err := cmp.Or(err, checkKey(in.Key)); err != nil {
		return nil, err
	}
	if !store.IsHandle(in.To) {
		return nil, store.ErrTarget
	}
	m, err := c.db.Send(ctx, c.me.Ref, store.Draft{
		To: in.To, Body: message, SendKey: in.Key, AnswerParent: c.Launcher.Settings().Teams.Replies == "parent",
	})
	if err != nil {
		return nil, err
	}
	out := sendResult{MessageID: m.ID, Status: store.Queued, Reach: c.reach(m.Target), ExpiresAt: at(m.Expires), MessageLength: m.Length}
	c.toolCall.Note(middleware.Allowed, "sent "+m.ID+" to "+in.To)
	if out.Reach == reachResume {
		go c.Launcher.ResumeOne(context.WithoutCancel(ctx), c.db, m.Target, c.toolCall.View())
	}
	return out, nil
}

// The ways in which a message reaches a session.
const (
	reachCall   = "next_tool_call"
	reachWake   = "wake"
	reachResume = "resume"
	reachNone   = "none"
)

// reach returns how a message will reach a session: with its next tool call, or earlier if attache can
// wake it or restart its agent. If its agent has ended and cannot be restarted, nothing reaches it.
func (c *call) reach(s *store.Session) string {
	switch {
	case c.Launcher.CanResume(s):
		return reachResume
	case s.State == store.Idle && s.Wakes:
		return reachWake
	case c.Launcher.NeverResumes(s):
		return reachNone
	}
	return reachCall
}

// A message is a message in the result of read_messages.
type message struct {
	ID   string `json:"message_id"`
	From sender `json:"from"`
	Kind string `json:"kind"`
	Sent string `json:"sent_at"`
	// Again means that the message may have been delivered before.
	Again bool   `json:"again,omitempty"`
	Body  string `json:"body"`
}

// A sender is the sender of a message, as the registry describes it.
type sender struct {
	SessionID  string `json:"session_id"`
	Title      string `json:"title"`
	AgentName  string `json:"agent_name"`
	Relation   string `json:"relation"`
	TrustLevel string `json:"trust_level"`
}

// An inbox is the result of read_messages.
type inbox struct {
	Note      string          `json:"note,omitempty"`
	Messages  []message       `json:"messages"`
	Remaining int             `json:"remaining"`
	Receipts  []store.Receipt `json:"receipts"`
}

const (
	maxWait       = 110 * time.Second
	waitEvery     = 100 * time.Millisecond
	serverEvery   = time.Second // if the database does not signal changes
	progressEvery = 15 * time.Second
)

func readMessages(ctx context.Context, c *call) (any, error) {
	var in struct {
		Wait int  `json:"wait_seconds"`
		Peek bool `json:"peek"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	wait := time.Duration(in.Wait) * time.Second
	if wait < 0 || wait > maxWait {
		return nil, store.Refusal("wait_seconds must be 0-110")
	}
	taking, err := c.await(ctx, wait, in.Peek)
	if err != nil {
		return nil, err
	}
	out := inbox{Messages: []message{}, Receipts: []store.Receipt{}}
	if taking == nil {
		return out, nil
	}
	out.Remaining = taking.Remaining
	for _, m := range taking.Messages {
		out.Note = teams.Provenance
		out.Messages = append(out.Messages, message{
			ID: m.ID, From: sender{m.From, m.Title, m.Agent, string(m.Relation), m.Trust},
			Kind: string(m.Kind), Sent: at(m.Sent), Again: m.Again, Body: teams.Clean(m.Body),
		})
	}
	if in.Peek {
		return out, nil // without receipts, because each is returned only once
	}
	receipts, err := c.db.Receipts(ctx, c.me.Ref)
	if err != nil && len(out.Messages) > 0 {
		return out, nil // an error would lose the messages, and the receipts come with the next call
	}
	out.Receipts = append(out.Receipts, receipts...)
	return out, err
}

// await waits until there are messages, or the given time has passed, and takes the messages. It polls
// the registry for changes. If ctx is cancelled, it takes nothing. If the client closes its end, await
// returns nil: a message that came later would be lost, because most clients then read no more.
func (c *call) await(ctx context.Context, wait time.Duration, peek bool) (*store.Taking, error) {
	until := time.Now().Add(wait)
	check, progress := time.Tick(waitEvery), time.Tick(progressEvery)
	var version store.Version
	for first := true; ; first = false {
		now, err := c.db.Version(ctx, serverEvery)
		if err != nil {
			return nil, err
		}
		late := !time.Now().Before(until)
		if first || late || now != version {
			taking, err := c.toolCall.Take(ctx, c.db, c.me, peek)
			if err != nil || late || len(taking.Messages) > 0 {
				return taking, err
			}
		}
		version = now
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.leaving.Done():
			return nil, nil
		case <-progress:
			c.progress(ctx, wait-time.Until(until), wait)
		case <-check:
		}
	}
}

// progress sends a progress notification, if the client asked for it.
func (c *call) progress(ctx context.Context, passed, of time.Duration) {
	if token := c.request.Params.GetProgressToken(); token != nil {
		_ = c.request.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: passed.Seconds(), Total: of.Seconds(),
		})
	}
}
