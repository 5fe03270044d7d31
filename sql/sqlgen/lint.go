package main

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const maxWidth = 140

var stringLineRE = regexp.MustCompile(`^ *'[^']*(''[^']*)*'[;,)]*$`)

// lint checks what a machine can check of the conventions: sources, migrations, registry.
func (r repo) lint() error {
	sources, err := r.sources()
	if err != nil {
		return err
	}
	list, err := r.migrations()
	if err != nil {
		return err
	}
	var l linter
	for _, s := range sources {
		l.source(s)
	}
	for _, m := range list {
		l.migration(m)
	}
	return errors.Join(l...)
}

type linter []error

func (l *linter) add(file string, line int, format string, args ...any) {
	place := file
	if line > 0 {
		place = fmt.Sprintf("%s:%d", file, line)
	}
	*l = append(*l, fmt.Errorf("%s: %s", place, fmt.Sprintf(format, args...)))
}

func (l *linter) source(s source) {
	file := "sql/" + s.path
	for i, line := range strings.Split(s.text, "\n") {
		switch {
		case strings.Contains(line, "\t"):
			l.add(file, i+1, "tab: indent by two spaces")
		case strings.TrimRight(line, " ") != line:
			l.add(file, i+1, "trailing space")
		// A line that is all one string, such as the text of a comment, reads no better when cut.
		case utf8.RuneCountInString(line) > maxWidth && !stringLineRE.MatchString(line):
			l.add(file, i+1, "longer than %d characters", maxWidth)
		}
	}
	tokens, err := scan(s.text)
	if err != nil {
		l.add(file, 0, "%v", err)
		return
	}
	l.words(file, tokens)
	statements := split(tokens)
	l.repeatable(file, statements)
	switch folder := strings.Split(s.path, "/")[0]; folder {
	case "functions":
		l.functions(file, s, statements)
	case "views":
		l.views(file, s.path, statements)
	}
}

// words checks every word outside comments, strings and quoted names.
func (l *linter) words(file string, tokens []token) {
	for i, t := range tokens {
		switch {
		case t.kind == word && strings.ToLower(t.text) != t.text:
			l.add(file, t.line, "%s: keywords and names are lower case", t.text)
		case t.text == "#" && i+1 < len(tokens) && tokens[i+1].text == "variable_conflict":
			l.add(file, t.line, "#variable_conflict silently returns wrong rows: qualify the names")
		case t.text == "raise" && i+2 < len(tokens) && tokens[i+1].text == "exception" && tokens[i+2].kind == literal:
			l.add(file, t.line, "bare raise exception: use sb_internal._raise with a registered code")
		}
	}
}

var repeatable = []string{
	"create or replace ", "comment on ", "revoke ", "grant ", "do ",
	"alter function ", "alter procedure ", "alter view ", "alter default privileges ",
}

// repeatable lets through only statements that may run twice, since a block may.
func (l *linter) repeatable(file string, statements []statement) {
	for _, st := range statements {
		ok := slices.ContainsFunc(repeatable, func(p string) bool { return strings.HasPrefix(st.text+" ", p) }) ||
			strings.HasPrefix(st.text, "insert into ") && strings.Contains(st.text, " on conflict ")
		if !ok {
			l.add(file, st.line, "%q may not run twice", firstWords(st.text))
		}
	}
}

var (
	routineRE = regexp.MustCompile(`^create or replace (function|procedure) (sb|sb_internal) \. (\w+) \(`)
	viewRE    = regexp.MustCompile(`^create or replace view (sb) \. (\w+) `)
)

func (l *linter) functions(file string, s source, statements []statement) {
	want := strings.TrimSuffix(path.Base(s.path), ".sql")
	schema := "sb"
	if strings.HasPrefix(want, "_") {
		schema = "sb_internal"
	}
	created := 0
	for _, st := range statements {
		m := routineRE.FindStringSubmatch(st.text)
		switch {
		case m != nil:
			created++
			l.header(file, m[1], m[2], st, unpinnedRE.MatchString(s.text), strictRE.MatchString(s.text))
			if m[2] != schema || m[3] != want {
				l.add(file, st.line, "%s.%s does not belong here: this file is for %s.%s", m[2], m[3], schema, want)
			}
		case strings.HasPrefix(st.text, "create or replace "):
			l.add(file, st.line, "%q in a file for functions", firstWords(st.text))
		}
	}
	if created == 0 {
		l.add(file, 0, "no create or replace function %s.%s", schema, want)
	}
	name := schema + " . " + want + " ("
	if count(statements, regexp.MustCompile(`^comment on (function|procedure|routine) `), name) < created {
		l.add(file, 0, "each overload needs its comment on function")
	}
	if count(statements, regexp.MustCompile(`^revoke (all|all privileges|execute) on (function|procedure|routine) .* from public$`), name) < created {
		l.add(file, 0, "each overload needs its revoke all … from public")
	}
}

func (l *linter) views(file, p string, statements []statement) {
	want := strings.TrimSuffix(path.Base(p), ".sql")
	created := 0
	for _, st := range statements {
		if m := viewRE.FindStringSubmatch(st.text); m != nil {
			created++
			if m[2] != want {
				l.add(file, st.line, "view %s does not belong here: this file is for %s", m[2], want)
			}
			if !strings.Contains(st.text, "security_barrier") {
				l.add(file, st.line, "view without security_barrier shows hidden rows to cheap functions")
			}
		}
	}
	if created != 1 {
		l.add(file, 0, "needs exactly one create or replace view sb.%s", want)
	}
	if count(statements, regexp.MustCompile(`^comment on view `), "sb . "+want+" ") == 0 {
		l.add(file, 0, "needs comment on view sb.%s", want)
	}
}

// count adds up how often name stands in the statements that match.
func count(statements []statement, re *regexp.Regexp, name string) int {
	n := 0
	for _, st := range statements {
		if re.MatchString(st.text) {
			n += strings.Count(st.text+" ", name)
		}
	}
	return n
}

type clause struct {
	name, what string
	re         *regexp.Regexp
}

// clauses is the fixed order of a function's header, one clause at the start of a line.
var clauses = []clause{
	{"returns", "returns", regexp.MustCompile(`^returns\b`)},
	{"language", "language", regexp.MustCompile(`^language (sql|plpgsql)$`)},
	{"volatility", "immutable, stable or volatile", regexp.MustCompile(`^(immutable|stable|volatile)$`)},
	{"parallel", "parallel safe, restricted or unsafe", regexp.MustCompile(`^parallel (safe|restricted|unsafe)$`)},
	{"security", "security definer or invoker", regexp.MustCompile(`^security (definer|invoker)$`)},
}

// unpinnedRE is how the comment of an invoker step that calls user code excuses it from set search_path.
var unpinnedRE = regexp.MustCompile(`(?m)^--.*\bno set clause`)

// strictRE is how the comment of a volatile function says that it is strict on purpose.
var strictRE = regexp.MustCompile(`(?m)^--.*\bstrict\b`)

// setRE is what may stand between security and the body, bodyRE where the body begins.
var (
	setRE  = regexp.MustCompile(`^(set|cost|rows|strict|leakproof|called on null input|returns null on null input|support)\b`)
	bodyRE = regexp.MustCompile(`^(as \$|begin atomic$|return\b)`)
)

// header checks one create statement: returns, language, volatility, parallel, security, set, body.
func (l *linter) header(file, kind, schema string, st statement, unpinned, mayBeStrict bool) {
	next := 0
	var rest []string // after security, before the body
	language, volatility, security := "", "", ""
	bodyFound := false
lines:
	for _, line := range st.header() {
		switch {
		case bodyRE.MatchString(line) && next > 0:
			bodyFound = true
			break lines
		case next == len(clauses):
			rest = append(rest, line)
		default:
			at := slices.IndexFunc(clauses[next:], func(c clause) bool { return c.re.MatchString(line) })
			if at < 0 {
				continue
			}
			for _, missing := range clauses[next : next+at] {
				if kind != "procedure" || missing.name == "language" || missing.name == "security" {
					l.add(file, st.line, "header: no line %q before %q (order: returns, language, volatility, parallel, security, set, body)", missing.what, line)
				}
			}
			switch next += at; clauses[next].name {
			case "language":
				language = line
			case "volatility":
				volatility = line
			case "security":
				security = line
			}
			next++
		}
	}
	if next < len(clauses) {
		l.add(file, st.line, "header: no line %q", clauses[next].what)
	}
	if !bodyFound {
		l.add(file, st.line, "header: the body must begin a line with as $$, begin atomic or return")
	}
	for _, line := range rest {
		if !setRE.MatchString(line) {
			l.add(file, st.line, "header: unexpected %q", line)
		}
	}
	strict := slices.Contains(rest, "strict") || slices.Contains(rest, "returns null on null input")
	if strict && volatility == "volatile" && !mayBeStrict {
		l.add(file, st.line, "no strict on anything with side effects")
	}
	const path = "set search_path = pg_catalog, pg_temp"
	pinned := slices.Contains(rest, path)
	switch {
	case unpinned && security == "security invoker":
	case schema == "sb_internal" && language == "language plpgsql" && !pinned:
		l.add(file, st.line, "header: no line %q", path)
	case security == "security definer" && !pinned:
		l.add(file, st.line, "header: security definer without %q", path)
	}
}

// migration checks that a file is one implicit transaction that gives up soon and stamps itself.
func (l *linter) migration(m migration) {
	for direction, text := range map[string]string{"up": m.up, "down": m.down} {
		file := m.file(direction)
		if text == "" {
			l.add(file, 0, "is missing or empty")
			continue
		}
		tokens, err := scan(text)
		if err != nil {
			l.add(file, 0, "%v", err)
			continue
		}
		statements := split(tokens)
		if len(statements) == 0 || !strings.HasPrefix(statements[0].text, "set local lock_timeout") {
			l.add(file, 1, "must begin with set local lock_timeout")
		}
		for _, st := range statements {
			switch firstWord, _, _ := strings.Cut(st.text, " "); firstWord {
			case "begin", "start", "commit", "end", "rollback", "abort":
				l.add(file, st.line, "%s: golang-migrate needs one implicit transaction", firstWord)
			}
			if strings.Contains(st.text, " concurrently ") {
				l.add(file, st.line, "concurrently cannot run in a transaction")
			}
		}
	}
	stamp := fmt.Sprintf(`insert into sb_internal.meta *\(version, name\) values \(%d, '%s'\);`, m.version, m.name)
	if n := len(regexp.MustCompile(stamp).FindAllString(m.up, -1)); n != 1 {
		l.add(m.file("up"), 0, "must stamp itself once: insert into sb_internal.meta (version, name) values (%d, '%s');", m.version, m.name)
	}
}

func firstWords(s string) string {
	words := strings.SplitN(s, " ", 5)
	return strings.Join(words[:min(4, len(words))], " ")
}
