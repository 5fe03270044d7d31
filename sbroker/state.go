package sbroker

import (
	"context"
	"encoding/json"
)

// State reads and writes the built-in state of conversation groups as values of type T, encoded as
// JSON. A reader that holds the group (Receive, GetConversationGroup) is alone with its state; the
// state of a group goes when its last conversation ends.
type State[T any] struct {
	b *Broker
}

// StateOf returns the State that works through b, within b's transaction if it has one.
func StateOf[T any](b *Broker) State[T] { return State[T]{b: b} }

// Get returns the state of the group and whether there is one.
func (s State[T]) Get(ctx context.Context, group GroupID) (state T, found bool, err error) {
	text, err := value[*string](ctx, s.b, "get_state", `
select sb.get_state(conversation_group_id => @conversation_group_id::uuid)::text`,
		args{"conversation_group_id": group})
	if err != nil || text == nil {
		return state, false, err
	}
	if err := json.Unmarshal([]byte(*text), &state); err != nil {
		return state, true, opError("get_state", err)
	}
	return state, true, nil
}

// Set replaces the state of the group. A state that encodes as JSON null removes it.
func (s State[T]) Set(ctx context.Context, group GroupID, state T) error {
	text, err := json.Marshal(state)
	if err != nil {
		return opError("set_state", err)
	}
	if string(text) == "null" {
		return s.Remove(ctx, group)
	}
	return s.set(ctx, group, string(text))
}

// Remove removes the state of the group, if there is one.
func (s State[T]) Remove(ctx context.Context, group GroupID) error { return s.set(ctx, group, nil) }

func (s State[T]) set(ctx context.Context, group GroupID, text any) error {
	// Through text, so that pgx does not encode what is JSON already.
	return s.b.exec(ctx, "set_state", `
select sb.set_state(
  conversation_group_id => @conversation_group_id::uuid,
  state => @state::text::jsonb)`,
		args{"conversation_group_id": group, "state": text})
}
