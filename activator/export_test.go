package activator

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/pgsbroker/sbroker/sbroker"
)

// Deafen makes the activator drop every notification.
func (a *Activator) Deafen() { a.deaf = true }

// KeepsHouse reports whether this activator is the one that calls sb.maintain.
func (a *Activator) KeepsHouse() bool { return a.forwarder.leads.Load() }

// LimitAnswers sets the size of the largest answer, and returns what it was.
func LimitAnswers(n int) (before int) {
	before, answerLimit = answerLimit, n
	return before
}

// DecodeAnswer reads an answer, and returns the names of its actions.
func DecodeAnswer(text string) (state json.RawMessage, actions string, err error) {
	a, err := decodeAnswer([]byte(text))
	names := make([]string, len(a.actions))
	for i, action := range a.actions {
		names[i] = action.name
	}
	return a.state, strings.Join(names, " "), err
}

// EncodeRequest makes the request for messages of one group.
func EncodeRequest(queue sbroker.QueueName, messages []sbroker.Message, state json.RawMessage) (string, error) {
	text, err := encodeRequest(&Batch{Queue: queue, Group: messages[0].Group, Messages: messages}, state)
	return string(text), err
}

// IdempotencyKey is what names a batch.
func IdempotencyKey(messages []sbroker.Message) string {
	return idempotencyKey(&Batch{Group: messages[0].Group, Messages: messages})
}

// RetryAfter is for how long a response asks to be left alone.
func RetryAfter(h http.Header, now time.Time) time.Duration { return retryAfter(h, now) }
