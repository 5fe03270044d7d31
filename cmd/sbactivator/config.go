package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"

	"github.com/pgsbroker/sbroker/internal/migrate"
	"github.com/pgsbroker/sbroker/internal/nearest"
)

const (
	envPrefix         = "SBACTIVATOR_"
	defaultConfigFile = "sbactivator.yaml"
)

// Config is everything that can be set. Its fields and sbactivator.example.yaml say what they mean.
type Config struct {
	Database   DatabaseConfig   `mapstructure:"database"`
	Log        LogConfig        `mapstructure:"log"`
	HTTP       HTTPConfig       `mapstructure:"http"`
	Activation ActivationConfig `mapstructure:"activation"`
	Handlers   []HandlerConfig  `mapstructure:"-"`
}

// DatabaseConfig says where sb lives.
type DatabaseConfig struct {
	URL            string        `mapstructure:"url"`             // empty = PG* variables
	Pooler         bool          `mapstructure:"pooler"`          // the URL leads through one, in transaction mode
	PoolSize       int           `mapstructure:"pool_size"`       // 0 = from the readers it needs
	StartupTimeout time.Duration `mapstructure:"startup_timeout"` // how long run waits for an unreachable database
}

// LogConfig is for the log on stderr.
type LogConfig struct {
	Level  slog.Level `mapstructure:"level"`
	Format string     `mapstructure:"format"` // text or json
}

// HTTPConfig is for /healthz, /readyz and /metrics.
type HTTPConfig struct {
	Listen string `mapstructure:"listen"` // host:port, empty = off
}

// ActivationConfig holds the activator's times.
type ActivationConfig struct {
	PollInterval    time.Duration `mapstructure:"poll_interval"`    // looks this often even when no notification comes
	IdleTimeout     time.Duration `mapstructure:"idle_timeout"`     // a reader without work ends after it
	HandlerTimeout  time.Duration `mapstructure:"handler_timeout"`  // one call of a handler, thus one transaction
	ShutdownTimeout time.Duration `mapstructure:"shutdown_timeout"` // for running handlers after SIGTERM
}

// defaults has every key. Its environment name is SBACTIVATOR_ and the key in capitals with _ for the dot.
var defaults = map[string]any{
	"database.url":                "",
	"database.pooler":             false,
	"database.pool_size":          0,
	"database.startup_timeout":    60 * time.Second,
	"log.level":                   "info",
	"log.format":                  "text",
	"http.listen":                 "127.0.0.1:8421",
	"activation.poll_interval":    5 * time.Second,
	"activation.idle_timeout":     5 * time.Second,
	"activation.handler_timeout":  30 * time.Second,
	"activation.shutdown_timeout": 30 * time.Second,
	handlersKey:                   "", // a list, in YAML or JSON; read by parseHandlers
}

const handlersKey = "handlers"

func envName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// flagKeys are the keys that have a flag too.
var flagKeys = map[string]string{
	"database-url": "database.url",
	"log-level":    "log.level",
	"log-format":   "log.format",
}

func addConfigFlags(flags *pflag.FlagSet) {
	flags.String("config", "", "configuration file (default "+defaultConfigFile+" where there is one)")
	flags.String("database-url", "", "libpq URL or key=value string (default: the PG* variables)")
	flags.String("log-level", "", "debug, info, warn or error (default info)")
	flags.String("log-format", "", "text or json (default text)")
}

// configError is an error in what the user has set; it never quotes a URL.
type configError struct{ error }

func (e *configError) Unwrap() error { return e.error }

func configErrorf(format string, args ...any) error {
	return &configError{fmt.Errorf("configuration: "+format, args...)}
}

// loadConfig gathers flags, environment and file, in this order of precedence.
func loadConfig(cmd *cobra.Command) (Config, error) {
	if err := checkEnv(os.Environ()); err != nil {
		return Config{}, err
	}
	v := viper.New()
	v.AllowEmptyEnv(true) // An empty SBACTIVATOR_DATABASE_URL means the PG* variables.
	for key, value := range defaults {
		v.SetDefault(key, value)
		if err := v.BindEnv(key, envName(key)); err != nil {
			return Config{}, err
		}
	}
	for flag, key := range flagKeys {
		if err := v.BindPFlag(key, cmd.Flags().Lookup(flag)); err != nil {
			return Config{}, err
		}
	}
	content, file, err := readConfigFile(cmd)
	if err != nil {
		return Config{}, err
	}
	tree, handlers, err := parseTree(content, file)
	if err != nil {
		return Config{}, err
	}
	if value, set := os.LookupEnv(envName(handlersKey)); set {
		handlers, err = parseHandlersText(envName(handlersKey), value)
	}
	if err != nil {
		return Config{}, err
	}
	if err := v.MergeConfigMap(tree); err != nil {
		return Config{}, configErrorf("%s: %w", file, err)
	}
	config := Config{Handlers: handlers}
	err = v.Unmarshal(&config, viper.DecodeHook(mapstructure.ComposeDecodeHookFunc(
		durationHook, mapstructure.TextUnmarshallerHookFunc())))
	if err != nil {
		// The last line is a reason, what comes before it only says that there are some.
		lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
		return Config{}, configErrorf("%s", strings.TrimSpace(lines[len(lines)-1]))
	}
	return config, config.validate()
}

func readConfigFile(cmd *cobra.Command) (content []byte, file string, err error) {
	named, err := cmd.Flags().GetString("config")
	if err != nil {
		return nil, "", err
	}
	named = cmp.Or(named, os.Getenv(envName("config")))
	file = cmp.Or(named, defaultConfigFile)
	content, err = os.ReadFile(file)
	if named == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, file, nil
	}
	if err != nil {
		return nil, file, configErrorf("%w", err)
	}
	return content, file, nil
}

// parseTree returns the settings of the file, with the handlers apart, and refuses keys it does not know.
func parseTree(content []byte, file string) (tree map[string]any, handlers []HandlerConfig, err error) {
	if err := yaml.Unmarshal(content, &tree); err != nil {
		return nil, nil, configErrorf("%s: not a YAML map of settings: %w", file, hideValues(err))
	}
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		section, isMap := tree[name].(map[string]any)
		switch {
		case name == handlersKey:
			delete(tree, name)
			// Once more: names in it keep their case, and errors know their lines.
			var document struct{ Handlers yaml.Node }
			if err := yaml.Unmarshal(content, &document); err != nil {
				return nil, nil, configErrorf("%s: %w", file, hideValues(err))
			}
			if handlers, err = parseHandlers(file, &document.Handlers); err != nil {
				return nil, nil, err
			}
			continue
		case !isSection(name):
			return nil, nil, unknownKey(file, name)
		case tree[name] == nil:
			delete(tree, name)
			continue
		case !isMap:
			return nil, nil, configErrorf("%s: %s holds further keys, such as %s", file, name,
				nearest.Of(name+".", slices.Collect(maps.Keys(defaults))))
		}
		for _, key := range slices.Sorted(maps.Keys(section)) {
			if _, known := defaults[name+"."+key]; !known {
				return nil, nil, unknownKey(file, name+"."+key)
			}
			if section[key] == nil {
				delete(section, key) // "key:" without a value means the default.
			}
		}
	}
	return tree, handlers, nil
}

// parseHandlersText reads the list of handlers from a text of its own; empty is none.
func parseHandlersText(source, text string) ([]HandlerConfig, error) {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		return nil, configErrorf("%s: not YAML: %w", source, hideValues(err))
	}
	if len(document.Content) == 0 {
		return nil, nil
	}
	return parseHandlers(source, document.Content[0])
}

func isSection(name string) bool {
	for key := range defaults {
		if strings.HasPrefix(key, name+".") {
			return true
		}
	}
	return false
}

// hideValues keeps only where a YAML error is and what kind: its text quotes values, and those may be URLs.
func hideValues(err error) error {
	var typeErr *yaml.TypeError
	if !errors.As(err, &typeErr) {
		return err // Syntax errors quote nothing.
	}
	place, _, _ := strings.Cut(typeErr.Errors[0], ": ")
	return fmt.Errorf("%s: a value of the wrong kind", place)
}

// knownKeys has all keys, and the sections that hold them.
func knownKeys() []string {
	keys := slices.Collect(maps.Keys(defaults))
	for key := range defaults {
		if section, _, isIn := strings.Cut(key, "."); isIn {
			keys = append(keys, section)
		}
	}
	return keys
}

func unknownKey(file, key string) error {
	return configErrorf("%s: unknown key %q, the nearest is %q", file, key, nearest.Of(key, knownKeys()))
}

// checkEnv finds misspelt variables. Far-off names with our prefix are left alone: Kubernetes makes
// some for a service that is called sbactivator.
func checkEnv(environ []string) error {
	known := []string{envName("config")}
	for key := range defaults {
		known = append(known, envName(key))
	}
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, envPrefix) || slices.Contains(known, name) {
			continue
		}
		if near := nearest.Of(name, known); nearest.Distance(name, near) <= 2 {
			return configErrorf("unknown variable %s, the nearest is %s", name, near)
		}
	}
	return nil
}

// durationHook accepts durations only with a unit: 5 would be five nanoseconds.
func durationHook(from, to reflect.Type, value any) (any, error) {
	if to != reflect.TypeFor[time.Duration]() || from == to {
		return value, nil
	}
	text, isText := value.(string)
	if !isText {
		return nil, fmt.Errorf("%v needs a unit, such as %vs", value, value)
	}
	return time.ParseDuration(text)
}

func (c Config) validate() error {
	if _, err := migrate.ParseURL(c.Database.URL); err != nil {
		return configErrorf("%w", err)
	}
	if c.Database.PoolSize < 0 {
		return configErrorf("database.pool_size: must not be negative")
	}
	if c.Log.Format != "text" && c.Log.Format != "json" {
		return configErrorf("log.format: %q is neither text nor json", c.Log.Format)
	}
	if err := checkListen(c.HTTP.Listen); err != nil {
		return configErrorf("http.listen: %w", err)
	}
	for key, value := range map[string]time.Duration{
		"activation.poll_interval":   c.Activation.PollInterval,
		"activation.handler_timeout": c.Activation.HandlerTimeout,
	} {
		if value <= 0 {
			return configErrorf("%s: must be greater than zero", key)
		}
	}
	for key, value := range map[string]time.Duration{
		"database.startup_timeout":    c.Database.StartupTimeout,
		"activation.idle_timeout":     c.Activation.IdleTimeout,
		"activation.shutdown_timeout": c.Activation.ShutdownTimeout,
	} {
		if value < 0 {
			return configErrorf("%s: must not be negative", key)
		}
	}
	return nil
}

// checkListen reports whether an address is host:port with a number for the port; an empty host is every address of
// the machine, port 0 any free one. Empty is off.
func checkListen(address string) error {
	if address == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%q is not an address with a port, such as 127.0.0.1:8421", address)
	}
	return nil
}

// newLogger logs to stderr as configured.
func newLogger(cmd *cobra.Command, config LogConfig) *slog.Logger {
	options := &slog.HandlerOptions{Level: config.Level}
	if config.Format == "json" {
		return slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), options))
	}
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), options))
}
