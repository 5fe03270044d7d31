package activator

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Config configures an Activator. The zero value of a field is its documented default.
type Config struct {
	// DatabaseURL is a libpq URL or key=value string; the usual PG* variables, service file and password
	// file fill in what it leaves out. It must lead directly to the server, not through a transaction
	// pooler, unless Pooler is set. The role is an admin of sb (sb.grant_admin), a member of every execute_as role, and no superuser.
	DatabaseURL string
	// Pooler says that DatabaseURL leads through a pooler in transaction mode. Nothing is done then that needs a session of
	// its own: there is no LISTEN, so that messages are found every PollInterval, and neither activation procedures nor
	// programs are run here, only handlers. How soon the server notices a lost host is up to the pooler.
	Pooler bool
	// Name shows in sb.dm_broker_activated_tasks and in application_name; "" is host name and process id.
	// No two running activators may have the same.
	Name string
	// PoolSize limits the connections for handlers registered with Handle; 0 is as many as they have readers.
	// Activation procedures and programs have connections of their own, one for each reader.
	PoolSize int
	// PollInterval is how often the activator looks at its queues when nothing tells it to, ±20 %; 0 is
	// 5 s. Everything works, more slowly, by this alone.
	PollInterval time.Duration
	// IdleTimeout is how long the connection of an activation procedure or program is kept after its last call; 0 is
	// 5 s, negative keeps none.
	IdleTimeout time.Duration
	// HandlerTimeout limits one call of a Handler or activation function, which is also the time of
	// its transaction; 0 is 30 s. It does not limit procedures and programs, which have transactions of their own.
	HandlerTimeout time.Duration
	// ShutdownTimeout is how long running handlers may take to finish when Run is asked to end; what then
	// still runs is rolled back. 0 is 30 s, negative does not wait.
	ShutdownTimeout time.Duration
	// StartupTimeout is how long Run tries to reach the database at first; 0 is 60 s, negative tries once.
	// Later outages are waited out, however long.
	StartupTimeout time.Duration
	// Logger hears what happens; nil is silence. Message bodies and passwords are never logged.
	Logger *slog.Logger
	// Observer hears of everything that can be counted or measured; nil is none.
	Observer Observer
}

// Validate reports what is malformed or out of range.
func (c Config) Validate() error {
	if _, err := pgxpool.ParseConfig(c.DatabaseURL); err != nil {
		return fmt.Errorf("activator: %w", err) // pgx hides the password
	}
	switch {
	case c.PoolSize < 0 || c.PoolSize > math.MaxInt32:
		return errors.New("activator: Config.PoolSize is out of range")
	case c.PollInterval < 0:
		return errors.New("activator: Config.PollInterval is negative")
	case c.HandlerTimeout < 0:
		return errors.New("activator: Config.HandlerTimeout is negative")
	}
	return nil
}

// withDefaults fills in the defaults. Negative durations become 0.
func (c Config) withDefaults() Config {
	host, _ := os.Hostname() // only part of a name
	c.Name = cmp.Or(c.Name, fmt.Sprintf("%s/%d", cmp.Or(host, "localhost"), os.Getpid()))
	c.PollInterval = cmp.Or(c.PollInterval, 5*time.Second)
	c.IdleTimeout = max(0, cmp.Or(c.IdleTimeout, 5*time.Second))
	c.HandlerTimeout = cmp.Or(c.HandlerTimeout, 30*time.Second)
	c.ShutdownTimeout = max(0, cmp.Or(c.ShutdownTimeout, 30*time.Second))
	c.StartupTimeout = max(0, cmp.Or(c.StartupTimeout, time.Minute))
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Observer == nil {
		c.Observer = ObserverFunc(func(Event) {})
	}
	return c
}
