package main

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/pgsbroker/sbroker/activator"
	"github.com/pgsbroker/sbroker/internal/nearest"
	"github.com/pgsbroker/sbroker/sbroker"
)

// HandlerConfig is one of the handlers. The zero value of a key that is left out means the default.
type HandlerConfig struct {
	Queue           string
	Type            string            // exec, http or program
	Command         []string          // exec, program: the program and its arguments
	Dir             string            // exec, program: where it runs; empty = where the activator does
	Env             map[string]string // exec, program: additions to the environment
	PassDatabase    bool              // exec, program: the environment leads to the database; default: program
	URL             string            // http
	Headers         map[string]string // http: additions to the request
	Batch           int               // exec, http: messages at most
	MaxQueueReaders int               // 0 = the queue's, else 4
	Timeout         time.Duration     // 0 = activation.handler_timeout, for a program none
	AutoEnd         bool              // exec, http: end what the peer has ended
}

// handlerKey is a key of a handler.
type handlerKey struct {
	types []string // that it is for; nil: all
	set   func(h *HandlerConfig, value *yaml.Node) error
}

var (
	handlerTypes = []string{"exec", "http", "program"}
	withCommand  = []string{"exec", "program"}
	withContract = []string{"exec", "http"}
	onlyHTTP     = []string{"http"}
)

// handlerKeys has every key.
var handlerKeys = map[string]handlerKey{
	"queue":   {nil, func(h *HandlerConfig, v *yaml.Node) (err error) { h.Queue, err = yamlText(v); return err }},
	"type":    {nil, func(h *HandlerConfig, v *yaml.Node) (err error) { h.Type, err = yamlText(v); return err }},
	"command": {withCommand, func(h *HandlerConfig, v *yaml.Node) (err error) { h.Command, err = yamlList(v); return err }},
	"dir":     {withCommand, func(h *HandlerConfig, v *yaml.Node) (err error) { h.Dir, err = yamlText(v); return err }},
	"env":     {withCommand, func(h *HandlerConfig, v *yaml.Node) (err error) { h.Env, err = yamlMap(v); return err }},
	"pass_database": {withCommand, func(h *HandlerConfig, v *yaml.Node) (err error) {
		h.PassDatabase, err = yamlBool(v)
		return err
	}},
	"url":     {onlyHTTP, func(h *HandlerConfig, v *yaml.Node) (err error) { h.URL, err = yamlText(v); return err }},
	"headers": {onlyHTTP, func(h *HandlerConfig, v *yaml.Node) (err error) { h.Headers, err = yamlMap(v); return err }},
	"batch": {withContract, func(h *HandlerConfig, v *yaml.Node) (err error) {
		h.Batch, err = yamlNumber(v, 1, 1_000_000)
		return err
	}},
	"max_queue_readers": {nil, func(h *HandlerConfig, v *yaml.Node) (err error) {
		h.MaxQueueReaders, err = yamlNumber(v, 0, 32767)
		return err
	}},
	"timeout":  {nil, func(h *HandlerConfig, v *yaml.Node) (err error) { h.Timeout, err = yamlDuration(v); return err }},
	"auto_end": {withContract, func(h *HandlerConfig, v *yaml.Node) (err error) { h.AutoEnd, err = yamlBool(v); return err }},
}

// parseHandlers reads the list. source is where it stands, for errors; they show positions, but no values, which may
// be secrets.
func parseHandlers(source string, list *yaml.Node) ([]HandlerConfig, error) {
	list = resolve(list)
	if list.Kind == yaml.ScalarNode && list.Tag == "!!null" {
		return nil, nil
	}
	if list.Kind != yaml.SequenceNode {
		return nil, configErrorf("%s:%d: handlers is not a list", source, list.Line)
	}
	var handlers []HandlerConfig
	queues := map[string]int{}
	for i, item := range list.Content {
		h, err := parseHandler(source, fmt.Sprintf("handlers[%d]", i), resolve(item))
		if err != nil {
			return nil, err
		}
		if first, twice := queues[h.Queue]; twice {
			return nil, configErrorf("%s:%d: handlers[%d].queue: handlers[%d] is for this queue already", source, item.Line, i, first)
		}
		queues[h.Queue] = i
		handlers = append(handlers, h)
	}
	return handlers, nil
}

func parseHandler(source, path string, item *yaml.Node) (HandlerConfig, error) {
	h := HandlerConfig{Batch: 10, AutoEnd: true}
	fail := func(at *yaml.Node, key, format string, args ...any) (HandlerConfig, error) {
		if key != "" {
			key = "." + key
		}
		return h, configErrorf("%s:%d: %s%s: %w", source, at.Line, path, key, fmt.Errorf(format, args...))
	}
	if item.Kind != yaml.MappingNode {
		return fail(item, "", "is not a map of settings")
	}
	given := map[string]*yaml.Node{}
	for i := 0; i < len(item.Content); i += 2 {
		key, value := item.Content[i], resolve(item.Content[i+1])
		known, isKnown := handlerKeys[key.Value]
		if !isKnown {
			return h, configErrorf("%s:%d: unknown key %q, the nearest is %q", source, key.Line, path+"."+key.Value,
				nearest.Of(key.Value, keysFor(item)))
		}
		if given[key.Value] != nil {
			return fail(key, key.Value, "is there twice")
		}
		given[key.Value] = key
		if value.Kind == yaml.ScalarNode && value.Tag == "!!null" {
			delete(given, key.Value) // "key:" without a value means the default.
			continue
		}
		if err := known.set(&h, value); err != nil {
			return fail(key, key.Value, "%w", err)
		}
	}
	switch {
	case given["queue"] == nil:
		return fail(item, "queue", "is missing")
	case h.Queue == "" || utf8.RuneCountInString(h.Queue) > 128:
		return fail(given["queue"], "queue", "must have 1 to 128 characters")
	case given["type"] == nil:
		return fail(item, "type", "is missing: %s", strings.Join(handlerTypes, ", "))
	case !slices.Contains(handlerTypes, h.Type):
		return fail(given["type"], "type", "there is no type %q, the nearest is %q", h.Type, nearest.Of(h.Type, handlerTypes))
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if types := handlerKeys[name].types; types != nil && !slices.Contains(types, h.Type) {
			return fail(given[name], name, "is not for type %s", h.Type)
		}
	}
	if given["pass_database"] == nil {
		h.PassDatabase = h.Type == "program"
	}
	main := "command"
	if h.Type == "http" {
		main = "url"
	}
	if given[main] == nil {
		return fail(item, main, "is missing")
	}
	if err := h.validate(); err != nil {
		return fail(item, "", "%w", err)
	}
	return h, nil
}

// keysFor returns the keys that a handler of the type that the map has may have; all where it has no such type.
func keysFor(item *yaml.Node) (keys []string) {
	handlerType := ""
	for i := 0; i < len(item.Content); i += 2 {
		if value := resolve(item.Content[i+1]); item.Content[i].Value == "type" && slices.Contains(handlerTypes, value.Value) {
			handlerType = value.Value
		}
	}
	for name, key := range handlerKeys {
		if key.types == nil || handlerType == "" || slices.Contains(key.types, handlerType) {
			keys = append(keys, name)
		}
	}
	return keys
}

// command is what exec and program run.
func (h HandlerConfig) command(config Config, logger *slog.Logger) activator.Command {
	return activator.Command{
		Args: h.Command, Dir: h.Dir, Env: h.Env, Logger: logger,
		PassDatabase: h.PassDatabase, DatabaseURL: config.Database.URL,
	}
}

func (h HandlerConfig) httpOptions() activator.HTTPOptions {
	return activator.HTTPOptions{URL: h.URL, Headers: h.Headers, KeepEnded: !h.AutoEnd}
}

func (h HandlerConfig) validate() error {
	if h.Type == "http" {
		return h.httpOptions().Validate()
	}
	return activator.ExecOptions{Command: h.command(Config{}, nil)}.Validate()
}

// registerHandlers gives the activator the handlers of the configuration. Programs that are not there are errors here,
// and not for commands that do not run them.
func registerHandlers(a *activator.Activator, config Config, logger *slog.Logger) error {
	for i, h := range config.Handlers {
		queue := sbroker.QueueName(h.Queue)
		command := h.command(config, logger.With("queue", h.Queue))
		if h.Type != "http" {
			if err := command.Check(); err != nil {
				return configErrorf("handlers[%d].command: %w", i, err)
			}
		}
		options := activator.HandlerOptions{MaxQueueReaders: h.MaxQueueReaders, Batch: h.Batch, Timeout: h.Timeout}
		switch h.Type {
		case "exec":
			a.Handle(queue, activator.ExecHandler(activator.ExecOptions{Command: command, KeepEnded: !h.AutoEnd}), options)
		case "http":
			a.Handle(queue, activator.HTTPHandler(h.httpOptions()), options)
		case "program":
			a.HandleProgram(queue, activator.ProgramOptions{
				Command: command, MaxQueueReaders: h.MaxQueueReaders, Timeout: h.Timeout,
			})
		}
	}
	return nil
}

// resolve follows an alias.
func resolve(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}

func yamlText(node *yaml.Node) (string, error) {
	if node.Kind != yaml.ScalarNode || node.Tag != "!!str" {
		return "", errors.New("is not a text; quote it if it should be one")
	}
	return node.Value, nil
}

func yamlBool(node *yaml.Node) (b bool, err error) {
	if node.Decode(&b) != nil || node.Tag != "!!bool" {
		return false, errors.New("is neither true nor false")
	}
	return b, nil
}

func yamlNumber(node *yaml.Node, low, high int) (n int, err error) {
	if node.Tag != "!!int" || node.Decode(&n) != nil || n < low || n > high {
		return 0, fmt.Errorf("is not a whole number from %d to %d", low, high)
	}
	return n, nil
}

func yamlDuration(node *yaml.Node) (time.Duration, error) {
	d, err := time.ParseDuration(node.Value)
	if err != nil || node.Tag != "!!str" || d <= 0 {
		return 0, errors.New("is not a time with a unit, greater than zero, such as 30s")
	}
	return d, nil
}

// yamlList reads a list of words. Numbers and the like are taken as they are written.
func yamlList(node *yaml.Node) (list []string, err error) {
	if node.Kind != yaml.SequenceNode || len(node.Content) == 0 {
		return nil, errors.New("is not a list of words, such as [python3, handler.py]")
	}
	for _, item := range node.Content {
		item = resolve(item)
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
			return nil, errors.New("is not a list of words only")
		}
		list = append(list, item.Value)
	}
	return list, nil
}

// yamlMap reads names and their values, which are taken as they are written.
func yamlMap(node *yaml.Node) (map[string]string, error) {
	if node.Kind != yaml.MappingNode {
		return nil, errors.New("is not a map of names to values")
	}
	m := map[string]string{}
	for i := 0; i < len(node.Content); i += 2 {
		name, value := node.Content[i].Value, resolve(node.Content[i+1])
		if value.Kind != yaml.ScalarNode || value.Tag == "!!null" {
			return nil, fmt.Errorf("%s has no value that is a text", name)
		}
		if _, twice := m[name]; twice {
			return nil, fmt.Errorf("%s is there twice", name)
		}
		m[name] = value.Value
	}
	return m, nil
}
