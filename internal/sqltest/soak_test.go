package sqltest

import (
	"os"
	"testing"
	"time"
)

// soakTime is how long each soak test runs: SBROKER_SOAK, which `make soak` sets. Without it they have no part in the run.
func soakTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("SBROKER_SOAK")
	if text == "" {
		t.Skip("SBROKER_SOAK holds no duration; the same loads run for a shorter time in the tests without Soak")
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestSoakOneVerb(t *testing.T) { stressOneVerb(t, soakTime(t)) }

func TestSoakMixture(t *testing.T) { stressMixture(t, soakTime(t)) }

func TestSoakToggles(t *testing.T) { stressToggles(t, soakTime(t)) }

func TestSoakKills(t *testing.T) { stressKills(t, soakTime(t)) }

func TestSoakMoves(t *testing.T) { stressMoves(t, soakTime(t)) }

func TestSoakWakeUps(t *testing.T) { stressWakeUps(t, 2, soakTime(t)) }
