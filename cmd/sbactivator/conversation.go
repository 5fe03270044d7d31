package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/pgsbroker/sbroker/internal/screen"
	"github.com/pgsbroker/sbroker/sbroker"
)

func newConversationCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "conversation",
		Short: "List, draw and end conversations",
	}
	cmd.AddCommand(newConversationListCommand(), newConversationShowCommand(), newConversationEndCommand())
	return cmd
}

// handleFlag is a flag that takes a conversation handle; the zero value is none.
type handleFlag struct{ sbroker.Handle }

func (f *handleFlag) Set(text string) (err error) {
	f.Handle, err = parseHandle(text)
	return err
}

func (f *handleFlag) Type() string { return "uuid" }

func (f *handleFlag) String() string {
	if f.IsZero() {
		return ""
	}
	return f.Handle.String()
}

func parseHandle(text string) (sbroker.Handle, error) {
	h, err := sbroker.ParseHandle(text)
	if err != nil || h.IsZero() {
		return h, fmt.Errorf("%q is not a conversation handle", text)
	}
	return h, nil
}

// oneHandle is for commands whose argument is a handle: another one is wrong usage.
func oneHandle(cmd *cobra.Command, args []string) error {
	if err := oneArg("HANDLE", "conversation list")(cmd, args); err != nil {
		return err
	}
	_, err := parseHandle(args[0])
	return err
}

// stateFlag is a flag that takes the state of an endpoint, by its two letters or its name.
type stateFlag string

var endpointStates = [][2]string{
	{"SO", "STARTED_OUTBOUND"},
	{"CO", "CONVERSING"},
	{"DI", "DISCONNECTED_INBOUND"},
	{"DO", "DISCONNECTED_OUTBOUND"},
	{"ER", "ERROR"},
}

func (f *stateFlag) Set(text string) error {
	var known []string
	for _, state := range endpointStates {
		if strings.EqualFold(text, state[0]) || strings.EqualFold(text, state[1]) {
			*f = stateFlag(state[0])
			return nil
		}
		known = append(known, state[0])
	}
	return fmt.Errorf("%q is none of %s", text, strings.Join(known, ", "))
}

func (f *stateFlag) Type() string   { return "state" }
func (f *stateFlag) String() string { return string(*f) }

func newConversationListCommand() *cobra.Command {
	var (
		asJSON         bool
		queue, service string
		state          stateFlag
		limit          int
		olderThan      time.Duration
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show conversation endpoints",
		Long: `Show conversation endpoints: the sides of conversations whose queue the role may receive from.

When a conversation began is not recorded. --older-than is about the oldest message that waits: to be received by this
side, or in the transmission queue to leave it.`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case limit < 1:
				return errors.New("--limit must be at least 1")
			case olderThan < 0:
				return errors.New("--older-than must not be negative")
			}
			return cobra.NoArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withLook(cmd, func(ctx context.Context, conn *pgx.Conn) error {
				report := conversationList{limit: limit}
				err := inSnapshot(ctx, conn, func(tx pgx.Tx) error {
					services, err := servicesOf(ctx, tx, queue, service)
					if err != nil {
						return err
					}
					report.Endpoints, err = rowsOf[listedEndpoint](ctx, tx, `
select e.conversation_handle::text as conversation_handle, e.conversation_id::text as conversation_id, e.is_initiator,
       e.state, e.state_desc, s.name as service, e.far_service, q.name as queue,
       e.conversation_group_id::text as conversation_group_id, e.priority, e.lifetime, e.dialog_timer,
       e.send_sequence, r.messages as ready_messages, t.oldest is not null as is_waiting_to_leave,
       extract(epoch from clock_timestamp() - least(r.oldest, t.oldest))::float8 as oldest_seconds
  from (
    -- Limited here, where that can be: what computes the state would else run for all of them.
    select o.*
      from sb.conversation_endpoints as o
     where o.service_id = any ($1::integer[])
       and ($2::text = '' or o.state = $2::text)
       and ($3::float8 = 0 or o.conversation_handle = any (array(
         select a.conversation_handle
           from (
             select m.conversation_handle
               from sb.queue_messages as m
              where m.status = 1
                and m.message_enqueue_time < now() - $3::float8 * interval '1 second'
              group by m.conversation_handle
              limit 10000) as a
          union
         select b.conversation_handle
           from (
             select t.conversation_handle, t.enqueue_time
               from sb.transmission_queue as t
              limit 5000) as b
          where b.enqueue_time < now() - $3::float8 * interval '1 second')))
     limit $4::bigint
  ) as e
  join sb.services as s on s.service_id = e.service_id
  join sb.service_queues as q on q.queue_id = s.service_queue_id
 cross join lateral (
   select count(*) as messages, min(m.message_enqueue_time) as oldest
     from (
       select o.message_enqueue_time
         from sb.queue_messages as o
        where o.queue_name = q.name
          and o.conversation_handle = e.conversation_handle
          and o.status = 1
        limit 1000
     ) as m
 ) as r
  left join lateral (
    select o.enqueue_time as oldest
      from sb.transmission_queue as o
     where o.conversation_handle = e.conversation_handle
     limit 1
  ) as t on true
 order by e.service_id, e.state, oldest_seconds desc nulls last, e.conversation_handle`, services, state.String(), olderThan.Seconds(), limit)
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
	cmd.Flags().StringVar(&queue, "queue", "", "only of services of this queue")
	cmd.Flags().StringVar(&service, "service", "", "only of this service")
	cmd.Flags().Var(&state, "state", "only in this state: SO, CO, DI, DO or ER")
	cmd.Flags().IntVar(&limit, "limit", 50, "how many at most")
	cmd.Flags().DurationVar(&olderThan, "older-than", 0, "only with a message that has waited for longer")
	return cmd
}

// servicesOf is the ids of the services that the filters leave, so that the conversations of others are not looked at.
func servicesOf(ctx context.Context, tx pgx.Tx, queue, service string) (ids []int32, err error) {
	err = tx.QueryRow(ctx, `
select array(
  select s.service_id
    from sb.services as s
    join sb.service_queues as q on q.queue_id = s.service_queue_id
   where ($1::text = '' or q.name = $1::text)
     and ($2::text = '' or s.name = $2::text))`, queue, service).Scan(&ids)
	if err == nil && len(ids) == 0 && queue+service != "" {
		err = fmt.Errorf("there is no service%s%s, or this role may not see it; names are case-sensitive",
			quoted(" ", service), quoted(" of queue ", queue))
	}
	return ids, err
}

func quoted(prefix, name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("%s%q", prefix, name)
}

type conversationList struct {
	Endpoints []listedEndpoint `json:"conversation_endpoints"`
	limit     int
}

type listedEndpoint struct {
	ConversationHandle  string     `json:"conversation_handle"`
	ConversationID      string     `json:"conversation_id"`
	IsInitiator         bool       `json:"is_initiator"`
	State               string     `json:"state"`
	StateDesc           string     `json:"state_desc"`
	Service             string     `json:"service"`
	FarService          string     `json:"far_service"`
	Queue               string     `json:"queue"`
	ConversationGroupID string     `json:"conversation_group_id"`
	Priority            int16      `json:"priority"`
	Lifetime            *time.Time `json:"lifetime"`
	DialogTimer         *time.Time `json:"dialog_timer"`
	SendSequence        int64      `json:"send_sequence"`
	ReadyMessages       int64      `json:"ready_messages"` // counted up to 1000
	IsWaitingToLeave    bool       `json:"is_waiting_to_leave"`
	OldestSeconds       *float64   `json:"oldest_seconds"`
}

func (l conversationList) print(p *page) {
	var rows [][]screen.Cell
	for _, e := range l.Endpoints {
		arrow := "▶ "
		if !e.IsInitiator {
			arrow = "◀ "
		}
		ready := count(e.ReadyMessages, "")
		if e.ReadyMessages == 1000 {
			ready = "≥1000"
		}
		if e.IsWaitingToLeave {
			ready += "+"
		}
		row := cells(e.ConversationHandle, e.State, e.Service, arrow+e.FarService, ready, span(e.OldestSeconds))
		row[1].Color = endpointColor(e.State)
		rows = append(rows, row)
	}
	if rows == nil {
		p.line("", "No conversations.")
		return
	}
	p.table(rows, screen.Column{Heading: "HANDLE"}, screen.Column{Heading: "ST"}, screen.Column{Heading: "SERVICE", Shrinks: true},
		screen.Column{Heading: "FAR SERVICE", Shrinks: true}, screen.Column{Heading: "READY", Right: true},
		screen.Column{Heading: "OLDEST", Right: true})
	p.text(screen.Dim, "", "▶ began the conversation, ◀ did not. READY to be received by this side; + something of it waits to leave.")
	if len(rows) == l.limit {
		p.text(screen.Dim, "", fmt.Sprintf("There may be more than these %d: --limit.", l.limit))
	}
}

func endpointColor(state string) string {
	switch state {
	case "CO":
		return screen.Green
	case "ER":
		return screen.Red
	case "SO":
		return ""
	default:
		return screen.Yellow
	}
}

func newConversationShowCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show HANDLE",
		Short: "Draw both sides of a conversation, and what is on its way",
		Args:  oneHandle,
		RunE: func(cmd *cobra.Command, args []string) error {
			handle, err := parseHandle(args[0])
			if err != nil {
				return err
			}
			return withLook(cmd, func(ctx context.Context, conn *pgx.Conn) error {
				report, err := readConversation(ctx, conn, handle)
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

// conversation is both sides of one, as far as they exist and may be seen.
type conversation struct {
	At             time.Time            `json:"at"`
	ConversationID string               `json:"conversation_id"`
	Contract       *string              `json:"service_contract_name"`
	Initiator      *conversationSide    `json:"initiator"`
	Target         *conversationSide    `json:"target"`
	Messages       []messageOnItsWay    `json:"messages"`
	mostMessages   int                  // after which no more were read
	sides          [2]*conversationSide // initiator, target
}

type conversationSide struct {
	ConversationHandle  string     `json:"conversation_handle"`
	ConversationID      string     `json:"-"`
	IsInitiator         bool       `json:"-"`
	Contract            *string    `json:"-"`
	Service             string     `json:"service"`
	FarService          string     `json:"far_service"`
	Queue               string     `json:"queue"`
	QueueIsOn           bool       `json:"queue_is_on"`
	State               string     `json:"state"`
	StateDesc           string     `json:"state_desc"`
	ConversationGroupID string     `json:"conversation_group_id"`
	Priority            int16      `json:"priority"`
	Lifetime            *time.Time `json:"lifetime"`
	DialogTimer         *time.Time `json:"dialog_timer"`
	SendSequence        int64      `json:"send_sequence"`
	TransmissionStatus  string     `json:"transmission_status"`
}

// messageOnItsWay is a message that has not gone, or not without a trace.
type messageOnItsWay struct {
	ConversationHandle    string    `json:"conversation_handle"` // of the side that it is at
	Place                 string    `json:"place"`               // ready, received (retained), sent (retained), transmission queue
	MessageSequenceNumber int64     `json:"message_sequence_number"`
	MessageTypeName       *string   `json:"message_type_name"`
	BodyBytes             *int64    `json:"body_bytes"`
	EnqueueTime           time.Time `json:"enqueue_time"`
	Error                 *string   `json:"error,omitempty"` // code and description, in an Error message
	IsDue                 bool      `json:"is_due"`          // it came by the clock: a timer, or the end of the lifetime
}

func readConversation(ctx context.Context, conn *pgx.Conn, handle sbroker.Handle) (*conversation, error) {
	const mostMessages = 200
	c := &conversation{mostMessages: mostMessages}
	err := inSnapshot(ctx, conn, func(tx pgx.Tx) error {
		sides, err := rowsOf[conversationSide](ctx, tx, `
select e.conversation_handle::text as conversation_handle, e.conversation_id::text as conversation_id, e.is_initiator,
       c.name as contract, s.name as service, e.far_service, q.name as queue, q.is_receive_enabled as queue_is_on,
       e.state, e.state_desc, e.conversation_group_id::text as conversation_group_id, e.priority, e.lifetime,
       e.dialog_timer, e.send_sequence,
       coalesce(sb.get_transmission_status(e.conversation_handle), '') as transmission_status
  from sb.conversation_endpoints as e
  join sb.services as s on s.service_id = e.service_id
  join sb.service_queues as q on q.queue_id = s.service_queue_id
  left join sb.service_contracts as c on c.service_contract_id = e.service_contract_id
 where e.conversation_id = (
         select o.conversation_id
           from sb.conversation_endpoints as o
          where o.conversation_handle = $1::uuid)`, handle)
		if err != nil {
			return err
		}
		if len(sides) == 0 {
			return fmt.Errorf("there is no conversation endpoint %s, or this role may not see it; it goes when its side has ended", handle)
		}
		var handles, queues []string
		for i := range sides {
			s := &sides[i]
			handles, queues = append(handles, s.ConversationHandle), append(queues, s.Queue)
			c.ConversationID, c.Contract = s.ConversationID, cmp.Or(c.Contract, s.Contract)
			if s.IsInitiator {
				c.Initiator = s
			} else {
				c.Target = s
			}
		}
		c.sides = [2]*conversationSide{c.Initiator, c.Target}
		c.Messages, err = rowsOf[messageOnItsWay](ctx, tx, `
select m.conversation_handle::text as conversation_handle,
       case m.status when 1 then 'ready' when 0 then 'received' else 'sent' end as place,
       m.message_sequence_number, m.message_type_name, octet_length(m.message_body)::bigint as body_bytes,
       m.message_enqueue_time as enqueue_time,
       case when m.message_type_id = 1 and m.status = 1
            then sb.error_code(m.message_body) || ' ' || sb.error_description(m.message_body) end as error,
       m.message_type_id in (1, 5) and m.queuing_order = 0 as is_due
  from (
    select o.*
      from sb.queue_messages as o
     where o.conversation_handle = any ($1::text[]::uuid[])
       and o.queue_name = any ($2::text[])
     limit $3::integer
  ) as m
 union all
select t.conversation_handle::text, 'transmission queue', t.message_sequence_number, t.message_type_name,
       octet_length(t.message_body)::bigint, t.enqueue_time,
       case when t.is_conversation_error
            then sb.error_code(t.message_body) || ' ' || sb.error_description(t.message_body) end,
       false
  from (
    select o.*
      from sb.transmission_queue as o
     where o.conversation_handle = any ($1::text[]::uuid[])
     limit $3::integer
  ) as t
 order by enqueue_time, message_sequence_number`, handles, queues, mostMessages)
		if err != nil {
			return err
		}
		return tx.QueryRow(ctx, `select clock_timestamp()`).Scan(&c.At)
	})
	return c, err
}

func (c *conversation) print(p *page) {
	lifetime := "no lifetime"
	for _, s := range c.sides {
		if s != nil && s.Lifetime != nil {
			lifetime = "lifetime until " + s.Lifetime.Local().Format(time.DateTime)
		}
	}
	p.line(screen.Bold, "Conversation %s", c.ConversationID)
	p.text("", "  ", fmt.Sprintf("on contract %s, %s", orDash(c.Contract), lifetime))
	p.WriteString("\n")
	c.printSide(p, 0, "initiator")
	c.printSide(p, 1, "target")
	p.WriteString("\n")
	c.draw(p)
}

func (c *conversation) printSide(p *page, lane int, name string) {
	s, other := c.sides[lane], c.sides[1-lane]
	if s == nil {
		what := "its side has ended, or this role may not see it"
		if lane == 1 && (other.State == "SO" || other.TransmissionStatus != "") {
			what = "comes to be when the first message arrives"
		}
		p.line(screen.Bold, "%s %s", name, other.FarService)
		p.text(screen.Dim, "  ", what)
		return
	}
	p.line(screen.Bold, "%s %s", name, s.Service)
	queue := "queue " + s.Queue
	if !s.QueueIsOn {
		queue += " (off)"
	}
	p.text(endpointColor(s.State), "  ", s.StateDesc)
	p.text("", "  ", fmt.Sprintf("%s, priority %d", queue, s.Priority))
	p.text("", "  ", "handle "+s.ConversationHandle)
	p.text("", "  ", "group  "+s.ConversationGroupID)
	if s.DialogTimer != nil {
		if left := s.DialogTimer.Sub(c.At).Seconds(); left > 0 {
			p.text("", "  ", "timer due in "+span(&left))
		} else {
			left = -left
			p.text(screen.Yellow, "  ", "timer due for "+span(&left))
		}
	}
	if s.TransmissionStatus != "" {
		p.text(screen.Yellow, "  ", "transmission queue: "+s.TransmissionStatus)
	}
}

// draw draws what each side has sent: what was received as one arrow, what is on its way one by one.
func (c *conversation) draw(p *page) {
	const margin, mostGap, leastGap, room = 2, 44, 24, 30
	gap := mostGap
	if p.width > 0 {
		gap = min(mostGap, max(leastGap, p.width-margin-room))
	}
	seq := screen.Sequence{Lanes: 2, Margin: margin, Gap: gap, Color: p.color}
	note := func(text string) string {
		if p.width > 0 {
			return screen.Fit(screen.Clean(text), max(10, p.width-margin-gap-3))
		}
		return screen.Clean(text)
	}
	p.line(screen.Bold, "  %-*s%s", gap, "initiator", "target")
	p.WriteString(seq.Bars() + "\n")
	for lane := range c.sides {
		if label, text := c.received(lane); label != "" {
			p.WriteString(seq.Arrow("", lane, 1-lane, label, screen.Dim, note(text), false) + "\n")
		}
	}
	for _, m := range c.Messages {
		at := 0
		if c.Target != nil && m.ConversationHandle == c.Target.ConversationHandle {
			at = 1
		}
		age := c.At.Sub(m.EnqueueTime).Seconds()
		label := lastPart(orDash(m.MessageTypeName))
		if m.MessageSequenceNumber >= 0 {
			label = fmt.Sprintf("%d %s", m.MessageSequenceNumber, orDash(m.MessageTypeName))
		}
		if m.Error != nil {
			label = "Error " + *m.Error
		}
		if m.IsDue {
			p.WriteString(seq.Bars() + "  " + screen.Paint(p.color, screen.Yellow, note(label+" is due at the "+[]string{"initiator", "target"}[at])) + "\n")
			continue
		}
		from, color, lost := 1-at, screen.Cyan, false
		text := fmt.Sprintf("ready for %s", span(&age))
		switch m.Place {
		case "received":
			color, text = screen.Dim, "received, retained"
		case "sent":
			from, color, text = at, screen.Dim, "sent, retained"
		case "transmission queue":
			from, color, lost, text = at, screen.Yellow, true, fmt.Sprintf("not delivered for %s", span(&age))
		}
		if m.Error != nil {
			color = screen.Red
		}
		if m.BodyBytes != nil {
			text += ", " + screen.Plural(*m.BodyBytes, "byte")
		}
		p.WriteString(seq.Arrow("", from, 1-from, label, color, note(text), lost) + "\n")
	}
	p.WriteString(seq.Bars() + "\n")
	if len(c.Messages) >= c.mostMessages {
		p.text(screen.Dim, "  ", "There may be more on its way; see sbactivator queue peek --conversation.")
	}
}

// received says how many messages of a side have been received. Messages are received in the order of their numbers, so
// that is the lowest number of one that has not been.
func (c *conversation) received(lane int) (label, note string) {
	sender, receiver := c.sides[lane], c.sides[1-lane]
	next := int64(-1)
	for _, m := range c.Messages {
		isHere := receiver != nil && m.ConversationHandle == receiver.ConversationHandle && m.Place == "ready" ||
			sender != nil && m.ConversationHandle == sender.ConversationHandle && m.Place == "transmission queue"
		if isHere && m.MessageSequenceNumber >= 0 && (next < 0 || m.MessageSequenceNumber < next) {
			next = m.MessageSequenceNumber
		}
	}
	if next < 0 && sender != nil {
		next = sender.SendSequence
	}
	note = "received"
	if receiver == nil {
		note = "no longer here"
	}
	switch {
	case next <= 0:
		return "", ""
	case next == 1:
		return "0", note
	default:
		return fmt.Sprintf("0 to %d", next-1), note
	}
}

// lastPart is the end of a system message type's name, which is a web address.
func lastPart(name string) string { return name[strings.LastIndex(name, "/")+1:] }

func newConversationEndCommand() *cobra.Command {
	var (
		code         int32
		description  string
		cleanup, yes bool
	)
	cmd := &cobra.Command{
		Use:   "end HANDLE",
		Short: "End one side of a conversation",
		Long: `End one side of a conversation. The other side receives EndDialog, or with --error an Error, and has to end too.

What waits to be received by this side is removed. --cleanup removes this side in whatever state it is without telling
the other one: for conversations whose other side is gone for good.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("error") && code <= 0 {
				return errors.New("--error must be greater than 0")
			}
			if err := oneHandle(cmd, args); err != nil {
				return err
			}
			if !yes && !screen.IsTerminal(cmd.InOrStdin()) {
				return errors.New("there is no terminal to ask at: pass --yes")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			handle, err := parseHandle(args[0])
			if err != nil {
				return err
			}
			var errorCode, errorDescription any
			if cmd.Flags().Changed("error") {
				errorCode, errorDescription = code, description
			}
			return withLook(cmd, func(ctx context.Context, conn *pgx.Conn) error {
				before, err := readConversation(ctx, conn, handle)
				if err != nil {
					return err
				}
				if !yes {
					if err := confirm(ctx, cmd, before.question(handle, cleanup), "nothing was ended"); err != nil {
						return err
					}
				}
				var left string
				err = inTx(ctx, conn, pgx.ReadCommitted, func(tx pgx.Tx) error {
					_, err := tx.Exec(ctx, `
select sb.end_conversation(conversation_handle => $1::uuid, error_code => $2::integer, error_description => $3::text,
  cleanup => $4::boolean)`, handle, errorCode, errorDescription, cleanup)
					if err != nil {
						return err
					}
					return tx.QueryRow(ctx, `
select coalesce((
  select coalesce(nullif(sb.get_transmission_status(e.conversation_handle), ''), 'it is on its way.')
    from sb.conversation_endpoints as e
   where e.conversation_handle = $1::uuid), '')`, handle).Scan(&left)
				})
				if err != nil {
					return err
				}
				text := "The conversation has ended on this side."
				switch {
				case cleanup:
					text = "This side of the conversation is removed."
				case left != "":
					text = "This side has ended; its last message still has to leave: " + left
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), screen.Clean(text))
				return err
			})
		},
	}
	flags := cmd.Flags()
	flags.Int32Var(&code, "error", 0, "end with an Error of this code; needs --description")
	flags.StringVar(&description, "description", "", "the Error's description")
	flags.BoolVar(&cleanup, "cleanup", false, "remove this side without telling the other one")
	flags.BoolVar(&yes, "yes", false, "do not ask")
	cmd.MarkFlagsRequiredTogether("error", "description")
	cmd.MarkFlagsMutuallyExclusive("cleanup", "error")
	return cmd
}

// question says what is about to be ended.
func (c *conversation) question(handle sbroker.Handle, cleanup bool) string {
	side := c.Initiator
	if side == nil || side.ConversationHandle != handle.String() {
		side = c.Target
	}
	lost := int64(0)
	for _, m := range c.Messages {
		if m.ConversationHandle == side.ConversationHandle && m.Place == "ready" {
			lost++
		}
	}
	verb := "End"
	if cleanup {
		verb = "Remove, without telling the other side,"
	}
	return fmt.Sprintf("%s the side of %s in its conversation with %s (%s), %s unread?",
		verb, side.Service, side.FarService, side.StateDesc, screen.Plural(lost, "message"))
}

// confirm asks at the terminal. Everything but a yes is no, which the error says with what did not happen.
func confirm(ctx context.Context, cmd *cobra.Command, question, otherwise string) error {
	if _, err := io.WriteString(cmd.ErrOrStderr(), screen.Clean(question)+" [y/N] "); err != nil {
		return err
	}
	answer := make(chan string, 1)
	go func() { // ends with the process, should nobody answer
		line, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n') // what cannot be read is no
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return errors.New("interrupted; " + otherwise)
	case text := <-answer:
		if text == "y" || text == "yes" {
			return nil
		}
		return errors.New(otherwise)
	}
}
