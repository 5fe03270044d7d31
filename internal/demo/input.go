package demo

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Input is what the application works on: the tables its services decide by, and the reports.
type Input struct {
	Rates       map[string]json.Number `json:"rates"` // euros for one unit of the currency
	Approvers   []Approver             `json:"approvers"`
	CostCenters []CostCenter           `json:"cost_centers"`
	Reports     []Report               `json:"reports"`
}

// Approver decides about what is over the limit of a cost center.
type Approver struct {
	Name         string      `json:"name"`
	ApprovesUpTo json.Number `json:"approves_up_to"`
	// AnswersAfter is how many reminders it takes; nil is for somebody who never answers.
	AnswersAfter *int `json:"answers_after"`
}

// CostCenter is what a report is charged to.
type CostCenter struct {
	Number              string      `json:"number"`
	Name                string      `json:"name"`
	SpendingLimit       json.Number `json:"spending_limit"`
	Approver            string      `json:"approver"`
	DecideWithinSeconds int         `json:"decide_within_seconds"`
}

// Report is one report, and what is expected to become of it.
type Report struct {
	Scene           string          `json:"scene"` // when it is handed in
	Kind            string          `json:"kind"`
	Expect          string          `json:"expect"`
	LifetimeSeconds int             `json:"lifetime_seconds"` // of the dialog; 0 is no limit
	Number          string          `json:"number"`           // of a raw report
	Raw             string          `json:"raw"`              // sent as it is
	Report          json.RawMessage `json:"report"`           // or this
}

// The scenes of the demonstration. A report is of one of them.
const (
	sceneGood    = "good"
	sceneUnknown = "unknown cost center"
	sceneSlow    = "slow approver"
	sceneStopped = "queue stopped"
	sceneOthers  = "all others"
)

var scenes = []string{sceneGood, sceneUnknown, sceneSlow, sceneStopped, sceneOthers}

// ParseInput reads the format of testdata/expense-reports.json.
func ParseInput(text []byte) (*Input, error) {
	var in Input
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, err
	}
	for i := range in.Reports {
		r := &in.Reports[i]
		var head struct{ Number string }
		if r.Raw == "" {
			if err := json.Unmarshal(r.Report, &head); err != nil {
				return nil, fmt.Errorf("report %d: %w", i+1, err)
			}
		}
		r.Number = cmp.Or(r.Number, head.Number)
		switch {
		case r.Number == "":
			return nil, fmt.Errorf("report %d: no number", i+1)
		case !slices.Contains(scenes, r.Scene):
			return nil, fmt.Errorf("report %d: scene %q is none of %q", i+1, r.Scene, scenes)
		case !slices.Contains(outcomes, r.Expect):
			return nil, fmt.Errorf("report %d: expects %q, which is none of %q", i+1, r.Expect, outcomes)
		}
	}
	return &in, nil
}

// body is what is sent.
func (r Report) body() string { return cmp.Or(r.Raw, string(r.Report)) }

// lifetime is an argument of employee.submit.
func (r Report) lifetime() *time.Duration {
	if r.LifetimeSeconds == 0 {
		return nil
	}
	return new(time.Duration(r.LifetimeSeconds) * time.Second)
}
