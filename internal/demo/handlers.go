package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/activator"
	"github.com/pgsbroker/sbroker/sbroker"
)

// outcomes is what may become of a report, for the employee who handed it in.
var outcomes = []string{
	"approved",
	"rejected",
	"failed",  // the expense service ended the dialog with an error: the report has to be corrected
	"invalid", // the broker dropped the message: its body is not what the message type demands
	"expired", // the dialog's lifetime passed before anybody answered
	"broken",  // any other error of the broker
}

// handleAnswer handles what comes back to an employee, who has left long since.
func handleAnswer(ctx context.Context, b *activator.Batch) error {
	for _, m := range b.Messages {
		if err := answer(ctx, b, m); err != nil {
			return err
		}
	}
	return nil
}

func answer(ctx context.Context, b *activator.Batch, m sbroker.Message) error {
	label, note := m.Kind().String(), ""
	switch m.Kind() {
	case sbroker.KindApplication:
		var body struct {
			Amount json.Number
			Reason string
		}
		if err := m.JSON(&body); err != nil {
			return err
		}
		outcome := "rejected"
		label, note = "Rejected", body.Reason
		if m.Type == "//expenses/Approved" {
			outcome, label, note = "approved", "Approved", body.Amount.String()+" EUR"
		}
		if err := record(ctx, b, outcome, body.Amount.String(), body.Reason, ""); err != nil {
			return err
		}
	case sbroker.KindEndDialog:
		if err := b.Broker.End(ctx, m.Conversation); err != nil {
			return err
		}
	case sbroker.KindError:
		info, err := m.ErrorInfo()
		if err != nil {
			return err
		}
		outcome := "broken"
		switch {
		case !info.ByBroker():
			outcome = "failed"
		case info.Code == -9615:
			outcome = "invalid"
		case info.Code == -8489:
			outcome = "expired"
		}
		label, note = fmt.Sprintf("Error %d", info.Code), info.Description
		if err := record(ctx, b, outcome, "", info.Description, m.Text()); err != nil {
			return err
		}
		if err := b.Broker.End(ctx, m.Conversation); err != nil {
			return err
		}
	}
	var number string
	err := b.Tx.QueryRow(ctx, `
select s.number from employee.submission as s where s.conversation_group_id = @group::uuid`,
		pgx.StrictNamedArgs{"group": b.Group}).Scan(&number)
	if err != nil {
		return err
	}
	return trace(ctx, b, number, "reports", "employee", label, note)
}

// record writes down what became of the report. The state's key is the conversation group.
func record(ctx context.Context, b *activator.Batch, outcome, amount, detail, errorMessage string) error {
	_, err := b.Tx.Exec(ctx, `
update employee.submission as s
   set outcome = @outcome::text, amount = nullif(@amount::text, '')::numeric, detail = nullif(@detail::text, ''),
       error_message = nullif(@error_message::text, '')
 where s.conversation_group_id = @group::uuid`,
		pgx.StrictNamedArgs{
			"outcome": outcome, "amount": amount, "detail": detail, "error_message": errorMessage, "group": b.Group,
		})
	return err
}

// desk is what an approver has before him, the state of the conversation group.
type desk struct {
	Number    string
	Amount    json.Number
	Approver  string
	Reminders int
}

// handleApproval is the approvers' handler. Some of them need reminding.
func handleApproval(ctx context.Context, b *activator.Batch) error {
	state := activator.StateOf[desk](b)
	d, _, err := state.Get(ctx)
	if err != nil {
		return err
	}
	for _, m := range b.Messages {
		var err error
		switch {
		case m.Kind() == sbroker.KindEndDialog, m.Kind() == sbroker.KindError:
			// The decision is no longer wanted. With its only conversation the group goes, and its state.
			if err := b.Broker.End(ctx, m.Conversation); err != nil {
				return err
			}
			return trace(ctx, b, d.Number, "approvals", "approver", m.Kind().String(), "")
		case m.Type == "//approval/Request":
			if err := m.JSON(&d); err != nil {
				return err
			}
			err = trace(ctx, b, d.Number, "approvals", "approver", "Request", d.Approver)
		case m.Type == "//approval/Reminder":
			d.Reminders++
			err = trace(ctx, b, d.Number, "approvals", "approver", "Reminder", d.Approver)
		}
		if err != nil {
			return err
		}
		answered, err := decide(ctx, b, m.Conversation, d)
		if err != nil || answered {
			return err
		}
	}
	return state.Set(ctx, d)
}

// decide answers if the approver is ready to, and ends the approver's side.
func decide(ctx context.Context, b *activator.Batch, h sbroker.Handle, d desk) (answered bool, err error) {
	var approves bool
	err = b.Tx.QueryRow(ctx, `
select p.approves_up_to >= @amount::text::numeric
  from approver.person as p
 where p.name = @approver::text
   and p.answers_after <= @reminders::integer`,
		pgx.StrictNamedArgs{"amount": d.Amount.String(), "approver": d.Approver, "reminders": d.Reminders}).Scan(&approves)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	decision := map[string]any{"approved": approves}
	note := "yes"
	if !approves {
		note = fmt.Sprintf("%s does not approve of it.", d.Approver)
		decision["reason"] = note
	}
	if err := b.Broker.SendJSON(ctx, h, "//approval/Decision", decision); err != nil {
		return false, err
	}
	if err := trace(ctx, b, d.Number, "approver", "approvals", "Decision", note); err != nil {
		return false, err
	}
	if err := b.Broker.End(ctx, h); err != nil {
		return false, err
	}
	return true, trace(ctx, b, d.Number, "approver", "approvals", "EndDialog", "")
}

// trace lets the drawing know, if and when the transaction commits.
func trace(ctx context.Context, b *activator.Batch, report, from, to, message, note string) error {
	_, err := b.Tx.Exec(ctx, `
select expenses.trace(report => @report::text, sender => @from::text, receiver => @to::text,
  message => @message::text, note => @note::text)`,
		pgx.StrictNamedArgs{"report": report, "from": from, "to": to, "message": message, "note": note})
	return err
}
