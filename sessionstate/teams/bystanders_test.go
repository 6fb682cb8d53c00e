package teams_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/sessionstate/teams"
)

// What some sessions do changes no row of others, in whatever state those are.
func TestBystanders(t *testing.T) {
	t.Parallel()
	for i, run := range []func(*bench){
		attach, proof, proofInTenant, onHosts, createInherits, createLimits, createKey, slotsComeBackOnce, resume, notStarted,
		whoMayWrite, sendLimits, sendKey, takeInOrder, takeWhatFits, takenAgain, unsure, receipts, end, list, wake,
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "teams.db")
			b := &bench{T: t, clock: time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)}
			b.Store = open(t, path, b.now)
			stay := b.bystanders()
			before := rowsOf(t, path, stay)
			run(b)
			after := rowsOf(t, path, stay)
			for i, row := range before {
				if len(after) != len(before) || row != after[i] {
					t.Fatalf("rows of bystanders were changed:\n%s\n\nbefore:\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
				}
			}
		})
	}
}

// bystanders makes sessions with runs and messages in many states, and returns their ids and workspace.
func (b *bench) bystanders() []string {
	const workspace = "bystanders"
	person := teams.Claim{Key: "a bystander", Workspace: workspace, Trust: "direct"}
	parent, peer := b.claim(person).Ref, b.person(workspace, "direct")
	running, lost := b.child(parent, "direct"), b.child(parent, "direct")
	b.check(b.MarkRunning(b.Context(), teams.RunRef{Ref: running, Run: 1}, "thread of a bystander"))
	finished := b.child(parent, "direct")
	_, err := b.EndRun(b.Context(), teams.RunRef{Ref: finished, Run: 1}, teams.Ending{Report: "done"})
	b.check(err)
	b.pass(teams.Lease - 10*time.Second)
	_, err = b.RenewRun(b.Context(), teams.RunRef{Ref: running, Run: 1})
	b.check(err)
	b.pass(20 * time.Second)
	b.check(b.Sweep(b.Context(), time.Hour)) // finds that lost is lost
	b.same([]any{b.session(lost).State, b.session(running).State}, []any{teams.Failed, teams.Working})
	b.claim(person) // its lease was over
	for _, to := range []teams.Ref{parent, running, finished} {
		b.write(peer, to, "carried")
		b.settle(b.take(to), teams.Arrived)
		b.write(peer, to, "waits")
	}
	b.take(running) // and holds its inbox
	return []string{workspace, parent.ID, peer.ID, running.ID, lost.ID, finished.ID}
}

// rowsOf returns the rows of a file in which one of the texts is a column.
func rowsOf(t *testing.T, path string, texts []string) (all []string) {
	db, err := sql.Open("sqlite", "file:"+path)
	check(t, err)
	defer db.Close()
	for _, table := range []string{"sessions", "messages", "attachments", "workspaces"} {
		found, err := db.Query(`SELECT * FROM ` + table)
		check(t, err)
		defer found.Close()
		columns, err := found.Columns()
		check(t, err)
		for found.Next() {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(sql.NullString)
			}
			check(t, found.Scan(values...))
			row, ours := table, false
			for i, v := range values {
				text := v.(*sql.NullString).String
				row += fmt.Sprintf(" %s=%s", columns[i], text)
				ours = ours || slices.Contains(texts, text)
			}
			if ours {
				all = append(all, row)
			}
		}
		check(t, found.Err())
	}
	slices.Sort(all)
	return all
}
