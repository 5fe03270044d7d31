package migrate

import (
	"errors"
	"strings"
	"testing"
)

func TestParseURL(t *testing.T) {
	for _, good := range []string{
		"",
		"host=localhost dbname=x password='hunter two'",
		"postgres://me:hunter2@localhost:5432/db?sslmode=disable",
		"postgresql://me:p%40ss%2Fw%23rd@localhost/db",
		"postgres:///db?host=/tmp",
		"postgres://me:hunter2@a:1,b:2/db?target_session_attrs=read-write",
	} {
		config, err := ParseURL(good)
		if err != nil {
			t.Errorf("%s: %v", good, err)
			continue
		}
		if config.ConnectTimeout == 0 {
			t.Errorf("%s: would wait for ever", good)
		}
	}
}

func TestParseURLHidesPasswords(t *testing.T) {
	for _, bad := range []string{
		"postgres://me:hun@ter2@localhost/db",
		"postgres://me:hun/ter2@localhost/db",
		"postgres://me:hun?ter2@localhost/db",
		"postgres://me:hun#ter2@localhost/db",
		"postgres://me:12/hunter2@localhost/db",
		"postgres://me:12?hunter2@localhost/db",
		"postgres://me:12#hunter2@localhost/db",
		"postgres://me:hun%ter2@localhost/db",
		"postgres://me:hunter2@local host/db",
		"postgres://me:hunter2@localhost:port/db",
		"postgres://me:hunter2@localhost/db?sslmode=bogus",
		"host=localhost password='hunter2",
		"host=localhost password=hunter2 sslmode=bogus",
		"host=localhost hunter2",
		"mysql://me:hunter2@localhost/db",
		"hunter2",
		"service=none password=hunter2",
	} {
		_, err := ParseURL(bad)
		if !errors.Is(err, ErrURL) {
			t.Errorf("%s: %v", bad, err)
			continue
		}
		for _, secret := range []string{"hunter2", "hun", "ter2"} {
			if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v", bad, err)
			}
		}
	}
}
