package main

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/pgsbroker/sbroker/internal/nearest"
	"github.com/pgsbroker/sbroker/internal/screen"
)

func newQueueCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "List, start, stop queues and look at their messages",
	}
	cmd.AddCommand(newQueueListCommand(), newQueueSwitchCommand(true), newQueueSwitchCommand(false), newQueuePeekCommand())
	return cmd
}

func newQueueListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show the queues, their settings and services",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withLook(cmd, func(ctx context.Context, conn *pgx.Conn) error {
				var report queueList
				err := inSnapshot(ctx, conn, func(tx pgx.Tx) (err error) {
					report.Queues, err = rowsOf[queueSettings](ctx, tx, `
select q.name, `+queueStateSQL+` as state, q.owner::text as owner, q.max_readers::bigint as max_readers,
       q.activation_procedure, q.execute_as::text as execute_as, q.is_activation_enabled,
       q.is_retention_enabled, q.is_poison_message_handling_enabled as is_poison_handling_enabled,
       array(
         select v.name
           from sb.services as v
          where v.service_queue_id = q.queue_id
          order by v.name collate "C") as services
  from sb.service_queues as q
 where not q.is_ms_shipped
 order by q.name collate "C"`)
					return err
				})
				if err != nil {
					return err
				}
				return show(cmd, asJSON, report)
			})
		},
	}
	addJSONFlag(cmd, &asJSON)
	return cmd
}

type queueList struct {
	Queues []queueSettings `json:"queues"`
}

type queueSettings struct {
	Name                    string   `json:"name"`
	State                   string   `json:"state"` // on, off, poison
	Owner                   string   `json:"owner"`
	MaxReaders              *int64   `json:"max_readers"`
	ActivationProcedure     *string  `json:"activation_procedure"`
	ExecuteAs               *string  `json:"execute_as"`
	IsActivationEnabled     bool     `json:"is_activation_enabled"`
	IsRetentionEnabled      bool     `json:"is_retention_enabled"`
	IsPoisonHandlingEnabled bool     `json:"is_poison_message_handling_enabled"`
	Services                []string `json:"services"`
}

func (l queueList) print(p *page) {
	var rows [][]screen.Cell
	for _, q := range l.Queues {
		readers, activation := "-", "-"
		if q.MaxReaders != nil {
			readers = count(*q.MaxReaders, "")
		}
		if q.ActivationProcedure != nil {
			activation = *q.ActivationProcedure
			if q.ExecuteAs != nil {
				activation += " as " + *q.ExecuteAs
			}
			if !q.IsActivationEnabled {
				activation += " (off)"
			}
		}
		var more []string
		if q.IsRetentionEnabled {
			more = append(more, "retention")
		}
		if !q.IsPoisonHandlingEnabled {
			more = append(more, "no poison handling")
		}
		row := cells(q.Name, q.State, strings.Join(q.Services, ", "), readers, activation, strings.Join(more, ", "))
		row[1].Color = stateColor(q.State)
		rows = append(rows, row)
	}
	if rows == nil {
		p.line("", "No queues that this role may see.")
	}
	p.table(rows, screen.Column{Heading: "QUEUE", Shrinks: true}, screen.Column{Heading: "STATE"},
		screen.Column{Heading: "SERVICES", Shrinks: true}, screen.Column{Heading: "READERS", Right: true},
		screen.Column{Heading: "ACTIVATION", Shrinks: true}, screen.Column{Heading: ""})
}

// errNoQueue is for a queue that does not exist as far as the role can see.
func errNoQueue(ctx context.Context, tx pgx.Tx, name string) error {
	near, err := nearestQueue(ctx, tx, name)
	if err != nil {
		return err
	}
	if near != "" {
		near = fmt.Sprintf(", the nearest is %q", near)
	}
	return fmt.Errorf("there is no queue %q, or this role may not see it%s; names are case-sensitive", name, near)
}

// nearestQueue returns that of the queues whose name is most like the one given; empty: there is none.
func nearestQueue(ctx context.Context, tx pgx.Tx, name string) (string, error) {
	rows, err := tx.Query(ctx, `select q.name from sb.service_queues as q where not q.is_ms_shipped`)
	if err != nil {
		return "", err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(names) == 0 {
		return "", err
	}
	return nearest.Of(name, names), nil
}

func newQueueSwitchCommand(on bool) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stop NAME",
		Short: "Switch a queue off: receives fail, and messages to it wait in the transmission queue",
		Args:  oneArg("NAME", "queue list"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withLook(cmd, func(ctx context.Context, conn *pgx.Conn) error {
				text, err := switchQueue(ctx, conn, args[0], on)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), screen.Clean(text))
				return err
			})
		},
	}
	if on {
		cmd.Use = "start NAME"
		cmd.Short = "Switch a queue on, also after poison handling, and deliver what waits for it"
	}
	return cmd
}

// switchQueue starts or stops a queue and says what that did.
func switchQueue(ctx context.Context, conn *pgx.Conn, name string, on bool) (text string, err error) {
	type state struct {
		State   string
		Waiting int64 // in the transmission queue, as far as sb.queue_statistics counts
		Ready   int64
	}
	read := func(tx pgx.Tx) (state, error) {
		rows, err := rowsOf[state](ctx, tx, `
select `+queueStateSQL+` as state, s.transmission_backlog as waiting, s.ready_messages as ready
  from sb.service_queues as q
  join sb.queue_statistics as s on s.queue_id = q.queue_id
 where q.name = $1::text`, name)
		if err == nil && len(rows) == 0 {
			err = errNoQueue(ctx, tx, name)
		}
		if err != nil {
			return state{}, err
		}
		return rows[0], nil
	}
	var before, after state
	err = inTx(ctx, conn, pgx.ReadCommitted, func(tx pgx.Tx) (err error) {
		if before, err = read(tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `select sb.alter_queue(name => $1::text, enabled => $2::boolean)`, name, on); err != nil {
			return err
		}
		after, err = read(tx)
		return err
	})
	if err != nil {
		return "", err
	}
	switch {
	case !on && before.State == "off":
		text = fmt.Sprintf("Queue %q was stopped already.", name)
	case !on:
		text = fmt.Sprintf("Queue %q is stopped, with %s in it. What is sent to it now waits in the transmission queue.",
			name, screen.Plural(after.Ready, "message"))
	case before.State == "poison":
		text = fmt.Sprintf("Queue %q, which poison handling had stopped, is started; rollbacks are counted anew.", name)
	case before.State == "on":
		text = fmt.Sprintf("Queue %q was started already.", name)
	default:
		text = fmt.Sprintf("Queue %q is started.", name)
	}
	if moved := before.Waiting - after.Waiting; on && moved > 0 {
		text += fmt.Sprintf(" Delivered from the transmission queue: %s.", screen.Plural(moved, "message"))
	}
	if on && after.Waiting > 0 {
		text += fmt.Sprintf(" Still waiting there: %s; see sbactivator status.", screen.Plural(after.Waiting, "message"))
	}
	return text, nil
}

// peekWindow is how many messages are put in order before the first are shown: sorting all could take long.
const peekWindow = 10000

func newQueuePeekCommand() *cobra.Command {
	var (
		asJSON       bool
		limit, bytes int
		conversation handleFlag
	)
	cmd := &cobra.Command{
		Use:   "peek NAME",
		Short: "Show messages of a queue without receiving or locking anything",
		Long: `Show messages of a queue, the next ones first, without receiving or locking anything.

Of a queue with more than 10,000 messages those shown need not be the very next. Bodies are shown as text where they
are text, else in hexadecimal digits.`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case limit < 1 || limit > peekWindow:
				return fmt.Errorf("--limit must be from 1 to %d", peekWindow)
			case bytes < 0 || bytes > 1<<20:
				return errors.New("--bytes must be from 0 to 1048576")
			}
			return oneArg("NAME", "queue list")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return withLook(cmd, func(ctx context.Context, conn *pgx.Conn) error {
				report := messageList{Queue: args[0]}
				err := inSnapshot(ctx, conn, func(tx pgx.Tx) (err error) {
					var exists bool
					err = tx.QueryRow(ctx, `select exists (select from sb.service_queues as q where q.name = $1::text)`, args[0]).Scan(&exists)
					if err == nil && !exists {
						err = errNoQueue(ctx, tx, args[0])
					}
					if err != nil {
						return err
					}
					report.Messages, err = rowsOf[peekedMessage](ctx, tx, `
select m.status, m.priority, m.queuing_order, m.conversation_handle::text as conversation_handle,
       m.conversation_group_id::text as conversation_group_id, m.message_sequence_number, m.service_name,
       m.service_contract_name, m.message_type_name, m.message_enqueue_time,
       octet_length(m.message_body) as body_bytes, substr(m.message_body, 1, $3::integer) as body
  from (
    select o.*
      from sb.queue_messages as o
     where o.queue_name = $1::text
       and ($2::uuid is null or o.conversation_handle = $2::uuid)
     limit $4::integer
  ) as m
 order by m.status desc, m.priority desc, m.queuing_order, m.message_sequence_number
 limit $5::integer`, args[0], conversation.Handle, bytes, peekWindow, limit)
					return err
				})
				if err != nil {
					return err
				}
				for i := range report.Messages {
					report.Messages[i].setBody()
				}
				return show(cmd, asJSON, report)
			})
		},
	}
	addJSONFlag(cmd, &asJSON)
	cmd.Flags().IntVar(&limit, "limit", 10, "how many messages at most")
	cmd.Flags().IntVar(&bytes, "bytes", 200, "how much of each body")
	cmd.Flags().Var(&conversation, "conversation", "only those of this conversation handle")
	return cmd
}

type messageList struct {
	Queue    string          `json:"queue"`
	Messages []peekedMessage `json:"messages"`
}

type peekedMessage struct {
	Status                int16     `json:"status"` // 1 ready, 0 received and retained, 3 retained copy of one sent
	Priority              int16     `json:"priority"`
	QueuingOrder          int64     `json:"queuing_order"`
	ConversationHandle    string    `json:"conversation_handle"`
	ConversationGroupID   string    `json:"conversation_group_id"`
	MessageSequenceNumber int64     `json:"message_sequence_number"`
	ServiceName           string    `json:"service_name"`
	ServiceContractName   *string   `json:"service_contract_name"`
	MessageTypeName       *string   `json:"message_type_name"`
	MessageEnqueueTime    time.Time `json:"message_enqueue_time"`
	BodyBytes             *int64    `json:"body_bytes"` // null without a body
	Body                  []byte    `json:"-"`
	BodyText              *string   `json:"body_text,omitempty" db:"-"`   // its beginning, where it is text
	BodyBase64            *string   `json:"body_base64,omitempty" db:"-"` // where it is not
	BodyIsCut             bool      `json:"body_is_cut" db:"-"`
}

func (m *peekedMessage) setBody() {
	if m.BodyBytes == nil {
		return
	}
	m.BodyIsCut = int64(len(m.Body)) < *m.BodyBytes
	if text, ok := textOf(m.Body, m.BodyIsCut); ok {
		m.BodyText = &text
	} else {
		encoded := base64.StdEncoding.EncodeToString(m.Body)
		m.BodyBase64 = &encoded
	}
}

// textOf is the body as text; false when it is something else. The last character of a body that was cut may be
// incomplete.
func textOf(body []byte, isCut bool) (string, bool) {
	for n := 0; isCut && n < utf8.UTFMax-1 && len(body) > 0 && !utf8.Valid(body); n++ {
		body = body[:len(body)-1]
	}
	text := string(body)
	return text, utf8.ValidString(text) &&
		strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }) < 0
}

func (m *peekedMessage) preview() string {
	var text string
	switch {
	case m.BodyBytes == nil:
		return "no body"
	case m.BodyText != nil:
		text = *m.BodyText
	default:
		text = `\x` + hex.EncodeToString(m.Body)
	}
	if m.BodyIsCut {
		text += " …"
	}
	return text
}

func (l messageList) print(p *page) {
	if len(l.Messages) == 0 {
		p.line("", "No messages.")
	}
	for i, m := range l.Messages {
		if i > 0 {
			p.WriteString("\n")
		}
		p.line(screen.Bold, "%s %s", sequenceNumber(m.MessageSequenceNumber), orDash(m.MessageTypeName))
		how := "ready"
		switch m.Status {
		case 0:
			how = "received, retained"
		case 3:
			how = "copy of what was sent, retained"
		}
		size := "no body"
		if m.BodyBytes != nil {
			size = screen.Plural(*m.BodyBytes, "byte")
		}
		p.text(screen.Dim, "  ", fmt.Sprintf("%s, %s, priority %d, since %s", how, size, m.Priority,
			m.MessageEnqueueTime.Local().Format("2006-01-02 15:04:05.000")))
		p.text(screen.Dim, "  ", fmt.Sprintf("to %s, conversation %s", m.ServiceName, m.ConversationHandle))
		if m.BodyBytes != nil {
			p.text("", "  ", m.preview())
		}
	}
}

// sequenceNumber is the number of a message; Error and DialogTimer have none.
func sequenceNumber(n int64) string {
	if n < 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func orDash(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}
