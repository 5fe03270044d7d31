// Package sqltest holds tests of single SQL functions, below the verbs.
package sqltest

import (
	"testing"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
